"""mzTab-M 2.0: the format in which metabolomics reports what was found, and how sure it is."""
