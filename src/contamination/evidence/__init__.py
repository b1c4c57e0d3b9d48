"""The four methods side by side: the room that may use every method's room."""
