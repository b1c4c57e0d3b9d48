"""One's own model and data: settings, plan with its cost, checks, and what each method says."""
