"""Pages: what is known of one question, as lines of text. The UI scrolls them, the plain printer prints them."""
