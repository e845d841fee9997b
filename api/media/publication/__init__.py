"""Publications: contents at destinations."""
