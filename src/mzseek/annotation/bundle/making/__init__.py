"""Making bundles: of a fitted run, or of data sets from their tables on."""
