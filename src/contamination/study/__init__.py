"""Detectors of rows that were read, one protocol for all, and the ledger of their scores."""
