"""Categories and their custom properties."""
