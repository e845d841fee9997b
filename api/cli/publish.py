"""`medialedger publish`: publishes the film of an Event at a destination, and follows the upload."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from functools import partial
from uuid import UUID

from api.cli import shell
from api.cli.job_watch import watch
from api.cli.printable import printable
from api.cli.remote.progress import INTERVAL, retry_unavailable
from api.cli.run.core import named_record, open_vault
from api.cli.shell import secret_text
from api.wiring.assembly import services_of
from api.wiring.container import Container
from api.wiring.core import Core
from api.wiring.quiet import quiet_mode
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.errors import DomainError
from domain.publication.aggregate import Publication
from domain.publication.handlers import NewPublication, PublicationHandlers
from domain.publication.row import PublicationRow
from domain.publication.values import RUNNING, PublicationState
from domain.record.kinds.destination import Destination
from projections.job.board import BoardQueries
from projections.job.queries import JobQueries
from projections.publication.queries import PublicationQueries
from projections.record.queries import RecordQueries
from workers.kernel.quiet import QuietMode

_NO_TEXT = "{}"
_ADMIN = "admin"


async def run(args: Namespace, settings: Settings) -> int:
    text = _NO_TEXT if args.text is None else await asyncio.to_thread(secret_text, args.text)
    try:
        async with open_vault(settings) as (wired, _):
            services = services_of(wired, settings)
            services.give(QuietMode, await quiet_mode(wired.database))
            publication = await _publish(services, args, text=text)
            print(f"publication {publication.id}", flush=True)
            return await _follow(wired, publication) if args.follow or publication.job is None else _report_job(publication)
    except DomainError as refusal:
        raise StartError(str(refusal)) from None


async def _publish(services: Container, args: Namespace, *, text: str) -> PublicationRow:
    destination = await named_record(services.get(RecordQueries), Destination, args.destination)
    new = NewPublication(str(args.event), UUID(destination.id), text, client=args.client or _ADMIN)
    outcome = await services.get(PublicationHandlers).publish_event(args.event, [new], invocation=shell.invocation())
    publication = outcome.aggregates[outcome.result["places"][0]]
    assert isinstance(publication, Publication)
    return PublicationRow.of(publication)


def _report_job(publication: PublicationRow) -> int:
    print(f"the upload is the job {publication.job}: {_watch_hint(publication)}")
    return 0


def _watch_hint(publication: PublicationRow) -> str:
    return f"`medialedger jobs watch {publication.job}` shows its progress"


async def _follow(wired: Core, publication: PublicationRow) -> int:
    """Follow the upload to its end and return the exit code. On an interruption the workers continue the upload."""
    try:
        ended = await _wait_for_end(wired, publication)
    except asyncio.CancelledError:
        print(f"medialedger: the upload continues; {_watch_hint(publication)}", file=sys.stderr)
        raise
    if ended.state is not PublicationState.Completed:
        raise StartError(f"the publication is {ended.state.name}: {ended.reason}")
    print(ended.state.name)
    if ended.details and isinstance(link := ended.details.get("link"), str):
        print(printable(link))
    return 0


async def _wait_for_end(wired: Core, publication: PublicationRow) -> PublicationRow:
    """Return the publication once it has ended. It shows the end of its job a moment later than the job, and another job may repeat
    the upload by then."""
    publications, watched = PublicationQueries(wired.database), set[int]()
    while True:
        row = await retry_unavailable(partial(publications.find, publication.id))
        if row is None:
            raise StartError("the publication was deleted")
        if row.state not in RUNNING:
            return row
        if row.job is not None and row.job not in watched:
            watched.add(row.job)
            await watch(JobQueries(wired.database), BoardQueries(wired.database), ids=[row.job])
        else:
            await asyncio.sleep(INTERVAL)
