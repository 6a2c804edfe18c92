"""Measures: from traces to values."""
