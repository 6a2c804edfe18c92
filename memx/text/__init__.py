"""Values read out of text, and the gate that makes any text safe to show."""
