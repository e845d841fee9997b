"""The composition root: the only package that knows every room. `rooms` lists them; the other modules build a process from that
list."""
