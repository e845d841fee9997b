"""Films that follow from what happens to Events."""
