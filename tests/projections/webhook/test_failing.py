"""All pending deliveries of a webhook fail in chunks. Each chunk reads its own rows only, also without statistics of the table."""

from __future__ import annotations

from uuid import UUID

import psycopg

from api.wiring.core import Core
from projections.webhook.store import _FAIL, CONSUMER
from tests.projections.log.helpers import rows

HOOK = UUID(int=7)
_FILL = """
INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at)
SELECT %s, n, 'event:' || n %% 50, 0, 0, '{}', now(), now() FROM generate_series(1, 20000) AS n
"""


async def test_a_chunk_of_pending_deliveries_is_found_by_its_positions(inner: Core, database_url: str) -> None:
    given = {"shards": [0], "epochs": [1], "consumer": CONSUMER, "member": HOOK, "webhook": HOOK, "error": "x", "chunk": 5000}
    with psycopg.connect(database_url) as connection, psycopg.ClientCursor(connection) as cursor:
        cursor.execute("ALTER TABLE pending_deliveries SET (autovacuum_enabled = off)")
        cursor.execute(_FILL, (HOOK,))
        cursor.execute(f"EXPLAIN {_FAIL}".encode(), {**given, "version": None})
        plan = "\n".join(line for (line,) in cursor.fetchall())
        connection.rollback()
    deleted = plan[plan.index("Delete on pending_deliveries") :]
    assert '("position" = ANY' in deleted, plan
    assert "Join" not in deleted[: deleted.index("Subquery Scan")], plan
    assert rows(database_url, "SELECT count(*) FROM pending_deliveries") == [(0,)]
