"""Formats of media and descriptions of sources: pure functions and readers of files. All other packages that handle media use
them."""
