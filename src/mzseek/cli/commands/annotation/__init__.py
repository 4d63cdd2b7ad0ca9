"""Commands that annotate, and the model bundles that they do it with."""
