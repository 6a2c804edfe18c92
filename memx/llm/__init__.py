"""The one client to language models."""
