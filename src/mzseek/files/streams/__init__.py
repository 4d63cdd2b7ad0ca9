"""Records out of streams: JSON, XML, and tables in text with their cells."""
