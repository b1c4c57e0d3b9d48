"""Replication with the ICL judge: Golchin & Surdeanu, arXiv:2308.08493 (Time Travel in LLMs)."""
