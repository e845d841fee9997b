"""Queries for the size of the database and its log, for operators."""

from __future__ import annotations

from typing import Final

SERVER: Final = "SELECT current_setting('server_version'), pg_database_size(current_database())"
"""A query for the version of PostgreSQL and the size of the database in bytes."""
LAST: Final = "SELECT last_position, recorded_at FROM commits ORDER BY last_position DESC LIMIT 1"
"""A query for the last position of the log and the time when it was recorded. It returns no row if the log is empty."""
