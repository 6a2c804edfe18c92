"""Judges: from a candidate to a verdict."""
