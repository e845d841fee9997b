"""Faults: kills, freezes and outages under load, and the count of what was lost. `python -m faults`."""
