"""Commands about annotation: the model bundle."""
