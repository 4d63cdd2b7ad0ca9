"""Feature tables of other programs: read by their headers, written with annotations beside."""
