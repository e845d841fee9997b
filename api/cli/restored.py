"""`medialedger restored`: begins a new epoch of the log after its database was restored or lost its latest commits."""

from __future__ import annotations

from argparse import Namespace

import psycopg

from api.cli.run.database import check_owner, open_database
from api.wiring.core import prepare
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from projections.consumers.timeline import BeyondTheLog, begin_epoch


async def run(args: Namespace, settings: Settings) -> int:
    """Begin the epoch as the owner of the tables: the role of the running product may not."""
    async with open_database(settings) as database:
        check_owner(database)
        await prepare(database.url, owner=database.owner)
        async with await psycopg.AsyncConnection.connect(database.owner) as connection:
            try:
                epoch, since = await begin_epoch(connection, since=args.since, reason=args.reason)
            except BeyondTheLog as refusal:
                raise StartError(f"an epoch cannot begin after position {args.since}: {refusal}") from None
    print(f"epoch {epoch} of the log has begun after position {since}; start the API and the workers again")
    return 0
