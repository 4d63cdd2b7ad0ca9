"""What is asked about a feature: ions it may be, how near a mass must be, molecules that fit."""
