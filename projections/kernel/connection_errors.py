"""What an error says about the connection to the database."""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolTimeout


def of_lost_connection(fault: BaseException | None) -> bool:
    """Whether it is the end of a connection, or that none can be made. The breaker logs it, once for the whole process."""
    while fault is not None:
        if isinstance(fault, psycopg.OperationalError) and not isinstance(fault, PoolTimeout):
            return (fault.sqlstate or "57P").startswith(("57P", "08"))
        fault = fault.__cause__
    return False
