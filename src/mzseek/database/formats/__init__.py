"""Lists of molecules, one file a format."""
