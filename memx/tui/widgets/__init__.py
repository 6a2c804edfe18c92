"""Panes and bars that the screens are made of."""
