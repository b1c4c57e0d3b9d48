"""The builder of WikiMIA-like sets: pages of a wiki by their dates."""
