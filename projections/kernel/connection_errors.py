"""Classifies errors of the connection to the database."""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolTimeout


def of_lost_connection(fault: BaseException | None) -> bool:
    """Return True if the error means that a connection broke or could not be made. The breaker logs such errors once for the whole
    process."""
    while fault is not None:
        if isinstance(fault, psycopg.OperationalError) and not isinstance(fault, PoolTimeout):
            return (fault.sqlstate or "57P").startswith(("57P", "08"))
        fault = fault.__cause__
    return False
