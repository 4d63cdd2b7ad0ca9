"""The molecule database: built from any list of molecules, looked up by mass, formula or likeness."""
