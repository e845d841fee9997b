"""A reference from one aggregate to another."""

from __future__ import annotations

Link = tuple[str, str]
"""A kind and an id."""
