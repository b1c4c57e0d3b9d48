"""Partitions of datasets, the hub, the authors' files, the papers' printed numbers."""
