"""The error of the embedded server."""

from __future__ import annotations


class EmbeddedPostgresError(Exception):
    """Raised when the embedded server does not run. The text is one line with the reason, and never contains the password."""
