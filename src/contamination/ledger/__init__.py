"""Scores of lab models that were trained beforehand, by row number and without any text."""
