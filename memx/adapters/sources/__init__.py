"""Things that can be ingested."""
