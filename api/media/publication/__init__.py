"""Publications of contents at destinations."""
