"""Memory systems, one file each."""
