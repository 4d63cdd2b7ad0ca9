"""Where candidates come from: a database, a list of one's own, a library, or the box."""
