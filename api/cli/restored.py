"""`medialedger restored`: begin a new epoch of the log, after its database was restored or lost its latest commits."""

from __future__ import annotations

from argparse import Namespace

import psycopg

from api.cli.database import check_owner, open_database
from api.wiring.core import prepare
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from projections.consumers.timeline import BeyondTheLog, begin_epoch


async def run(args: Namespace, settings: Settings) -> int:
    """As the owner of the tables: the role of the running product may not begin an epoch."""
    async with open_database(settings) as found:
        check_owner(found)
        await prepare(found.url, owner=found.owner)
        async with await psycopg.AsyncConnection.connect(found.owner) as connection:
            try:
                epoch, since = await begin_epoch(connection, since=args.since, reason=args.reason)
            except BeyondTheLog as refusal:
                raise StartError(f"an epoch cannot begin after position {args.since}: {refusal}") from None
    print(f"epoch {epoch} of the log has begun after position {since}; start the API and the workers again")
    return 0
