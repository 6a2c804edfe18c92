"""The terminal UI; reads the run store."""
