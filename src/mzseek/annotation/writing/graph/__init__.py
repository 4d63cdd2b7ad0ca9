"""Molecular networks: read as GNPS and MZmine write them, written with annotations joined."""
