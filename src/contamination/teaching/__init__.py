"""Checks of what students write in the exercises."""
