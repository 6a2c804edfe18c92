"""Loopback HTTP doubles that follow the wire formats of hosted memory systems."""
