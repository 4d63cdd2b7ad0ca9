"""Tables of features: read as MZmine and MS-DIAL write them, written with annotations beside."""
