"""Formats of media and the descriptions of sources: pure, or by reading files. Everything that handles media asks it."""
