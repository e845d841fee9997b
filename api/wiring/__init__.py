"""The composition root: the only place that knows every room. `rooms` lists them; the rest builds a process from that list."""
