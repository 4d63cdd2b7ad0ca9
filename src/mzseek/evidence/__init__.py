"""Evidence: what speaks for a candidate, channel by channel, and how much each counts."""
