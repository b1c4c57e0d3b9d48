"""Data Contamination Quiz: Golchin & Surdeanu, arXiv:2311.06233."""
