"""The papers' experiments at full scale: settings files, and finished runs in their tables."""
