"""Commands that annotate, and the models that they do it with."""
