"""The outside world coming in: memory systems, datasets, sources."""
