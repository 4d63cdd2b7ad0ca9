"""What a run is to do: its options, the protocol that fills in the rest, and what is too much."""
