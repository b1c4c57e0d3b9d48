"""Min-k% Prob and its baselines: neighbours, scores of passages, and what no model explains."""
