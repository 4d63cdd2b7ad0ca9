"""Commands that run tables of many models."""
