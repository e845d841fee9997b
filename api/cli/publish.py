"""`medialedger publish`: publishes the film of an Event at a destination, and follows the upload."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from functools import partial
from uuid import UUID

from api.cli import shell
from api.cli.job_watch import watch
from api.cli.named_record import named_record
from api.cli.open_vault import open_vault
from api.cli.polling import INTERVAL, retry_unavailable
from api.cli.printable import printable
from api.cli.secret_text import secret_text
from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.job_handlers import job_handlers
from api.wiring.publishing_targets import publishing_targets, refused_targets
from api.wiring.quiet import quiet_mode
from api.wiring.rooms.destination import destination_handlers
from api.wiring.rooms.publication import publication_handlers
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.errors import DomainError
from domain.publication.aggregate import Publication
from domain.publication.handlers import NewPublication, PublicationHandlers
from domain.publication.row import PublicationRow
from domain.publication.values import RUNNING, PublicationState
from domain.records.kinds.destination import Destination
from projections.job.board import BoardQueries
from projections.job.queries import JobQueries
from projections.publication.queries import PublicationQueries
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.kernel.quiet import QuietMode
from workers.syndication.contents import TargetContents
from workers.syndication.trial import TargetTrials

_NO_TEXT = "{}"
_ADMIN = "admin"


async def run(args: Namespace, settings: Settings) -> int:
    text = _NO_TEXT if args.text is None else await asyncio.to_thread(secret_text, args.text)
    try:
        async with open_vault(settings) as (wired, vault):
            handlers = _handlers(wired, vault, settings, quiet=await quiet_mode(wired.database))
            made = await _published(wired, args, text=text, handlers=handlers)
            print(f"publication {made.id}", flush=True)
            return await _followed(wired, made) if args.follow or made.job is None else _left(made)
    except DomainError as refusal:
        raise StartError(str(refusal)) from None


def _handlers(wired: Core, vault: Vault, settings: Settings, *, quiet: QuietMode) -> PublicationHandlers:
    records, targets = RecordQueries(wired.database, RECORDS), publishing_targets(settings, quiet)
    destinations = destination_handlers(
        wired.database,
        wired.executor,
        streams=wired.streams,
        records=records,
        vault=vault,
        trial=TargetTrials(targets, refused=refused_targets(settings)),
    )
    jobs = job_handlers(wired.database, wired.executor, streams=wired.streams, records=records, vault=vault, clock=wired.clock)
    return publication_handlers(
        wired.database,
        wired.executor,
        records=records,
        jobs=jobs,
        vault=vault,
        contents=TargetContents(targets, records, destinations=destinations, vault=vault),
        clock=wired.clock,
    )


async def _published(wired: Core, args: Namespace, *, text: str, handlers: PublicationHandlers) -> PublicationRow:
    destination = await named_record(RecordQueries(wired.database, RECORDS), Destination, args.destination)
    wanted = NewPublication(str(args.event), UUID(destination.id), text, client=args.client or _ADMIN)
    outcome = await handlers.publish_event(args.event, [wanted], invocation=shell.invocation())
    made = outcome.aggregates[outcome.result["places"][0]]
    assert isinstance(made, Publication)
    return PublicationRow.of(made)


def _left(made: PublicationRow) -> int:
    print(f"its upload is the job {made.job}: {_look(made)}")
    return 0


def _look(made: PublicationRow) -> str:
    return f"`medialedger jobs watch {made.job}` shows how far it is"


async def _followed(wired: Core, made: PublicationRow) -> int:
    """Interrupted, it leaves the upload to the workers."""
    try:
        ended = await _ended(wired, made)
    except asyncio.CancelledError:
        print(f"medialedger: the upload goes on; {_look(made)}", file=sys.stderr)
        raise
    if ended.state is not PublicationState.Completed:
        raise StartError(f"the publication is {ended.state.name}: {ended.reason}")
    print(ended.state.name)
    if ended.details and isinstance(link := ended.details.get("link"), str):
        print(printable(link))
    return 0


async def _ended(wired: Core, made: PublicationRow) -> PublicationRow:
    """It shows the end of its job a moment after that; by then another job may repeat it."""
    publications, seen = PublicationQueries(wired.database), set[int]()
    while True:
        row = await retry_unavailable(partial(publications.find, made.id))
        if row is None:
            raise StartError("the publication was deleted")
        if row.state not in RUNNING:
            return row
        if row.job is not None and row.job not in seen:
            seen.add(row.job)
            await watch(JobQueries(wired.database), BoardQueries(wired.database), ids=[row.job])
        else:
            await asyncio.sleep(INTERVAL)
