"""Queries of how large the database and its log are, for operators."""

from __future__ import annotations

from typing import Final

SERVER: Final = "SELECT current_setting('server_version'), pg_database_size(current_database())"
"""The version of PostgreSQL, and the bytes of the database."""
LAST: Final = "SELECT last_position, recorded_at FROM commits ORDER BY last_position DESC LIMIT 1"
"""The last position of the log, and when it was recorded; no row in an empty log."""
