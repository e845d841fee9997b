"""A loose index scan: distinct values by one look-up in an index for each value."""

from __future__ import annotations


def distinct(column: str, *, table: str, where: str = "true") -> str:
    """Return a query for the distinct values of a column that an index begins with. SELECT DISTINCT would read every row."""
    return f"""
WITH RECURSIVE found (value) AS (
    (SELECT {column} FROM {table} WHERE {where} ORDER BY {column} LIMIT 1)
    UNION ALL
    SELECT (SELECT t.{column} FROM {table} t WHERE {where} AND t.{column} > found.value ORDER BY t.{column} LIMIT 1)
    FROM found WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL
"""
