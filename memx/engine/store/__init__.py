"""The run store: one SQLite file."""
