"""Tables of an annotation, in text: one file each."""
