"""Detectors of rows that were read, and the protocol that is the same for all of them."""
