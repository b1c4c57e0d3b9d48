"""An audit of one's own model and dataset: the room that puts the methods' rooms to use."""
