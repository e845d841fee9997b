"""Deliveries that are finished by hand: a pending row becomes a finished one."""

from __future__ import annotations


def finishing(
    condition: str = "true",
    *,
    state: str = "1",
    attempts: str = "attempts",
    finished_at: str = "greatest(clock_timestamp(), created_at)",
    error: str = "error",
) -> str:
    """The statement, with SQL expressions over the pending row."""
    return f"""
    WITH taken AS (DELETE FROM pending_deliveries WHERE {condition} RETURNING *)
    INSERT INTO finished_deliveries
        (webhook, position, ordering_key, source, shard, payload, sealed_url, state, attempts, created_at, finished_at, error)
    SELECT webhook, position, ordering_key, source, shard, payload, sealed_url, {state}, {attempts},
        least(created_at, {finished_at}), {finished_at}, {error} FROM taken
    """
