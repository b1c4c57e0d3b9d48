"""A small world whose truth is known: text with recorded membership, models trained on it."""
