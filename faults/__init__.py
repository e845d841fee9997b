"""Fault injection: kills, freezes and outages under load, and counts of what was lost. Run it with `python -m faults`."""
