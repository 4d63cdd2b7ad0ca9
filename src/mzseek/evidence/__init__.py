"""Evidence for candidates: scoring channels, cross-fitting, and the ranker that combines them."""
