"""`medialedger media`: brings a file of this machine into the product, as a film of a new Event."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path
from stat import S_ISREG
from typing import Final
from uuid import UUID

from api.cli import incoming, shell
from api.cli.job_watch import watch
from api.cli.remote.progress import INTERVAL
from api.cli.run.core import open_vault
from api.wiring.assembly import services_of
from api.wiring.container import Container
from api.wiring.core import Core
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.channel.placeholders import packaging
from domain.channel.streams import StreamProtocol
from domain.event.changes import EventChanges
from domain.event.handlers import EventHandlers
from domain.event.values import EventState
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers, NewJob
from domain.job.values import JobState
from domain.kernel.errors import DomainError
from projections.event.queries import EventQueries
from projections.job.board import BoardQueries
from projections.job.queries import JobQueries

_BEFORE: Final = frozenset({EventState.PRE_VOD, EventState.VOD_INGESTING})


async def run(args: Namespace, settings: Settings) -> int:
    await asyncio.to_thread(_check, args.file)
    try:
        async with open_vault(settings) as (wired, _):
            return await _ingest(wired, services_of(wired, settings), args, settings)
    except DomainError as refusal:
        raise StartError(str(refusal)) from None


def _check(file: Path) -> None:
    """Raise `StartError` if the file cannot be read. A pipe is not opened: that would wait for its writer."""
    try:
        if not S_ISREG(file.stat().st_mode):
            raise StartError(f"{file} is {'a directory' if file.is_dir() else 'not a regular file'}")
        file.open("rb").close()
    except FileNotFoundError:
        raise StartError(f"the file {file} does not exist") from None
    except OSError as error:
        raise StartError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from None


async def _ingest(wired: Core, services: Container, args: Namespace, settings: Settings) -> int:
    """Create an Event from the file and follow its job. On an interruption the workers continue the job and its source stays."""
    event = await _add_event(services, args)
    print(f"Event {event}", flush=True)
    source = await incoming.bring_in(args.file, settings, event=event)
    number = await _submit(services, event, args, file=source)
    await watch(JobQueries(wired.database), BoardQueries(wired.database), ids=[number])
    await incoming.remove(source, settings, event=event)
    job = await wired.streams.load(Job.stream(number))
    assert isinstance(job, Job)
    if job.failed or job.state is not JobState.COMPLETED:
        raise StartError(job.reason or "the job was cancelled")
    await _wait_for_event(services.get(EventQueries), event)
    playlist = f"{event}/{packaging(StreamProtocol.HLS, vod_drm=args.drm)}/master.m3u8"
    print(f"{settings.media_root}/{playlist}")
    if args.publish and settings.media_serve is not False:
        print(f"{settings.public_url or base_url(settings.host, port=settings.port)}/media/{playlist}")
    return 0


async def _wait_for_event(queries: EventQueries, event: UUID) -> None:
    """Wait until the Event shows the end of its job: before that, the printed addresses cannot be opened."""
    while True:
        row = await queries.by_id(event)
        if row is None or row.details.state not in _BEFORE:
            return
        await asyncio.sleep(INTERVAL)


async def _add_event(services: Container, args: Namespace) -> UUID:
    handlers = services.get(EventHandlers)
    changes = EventChanges({"title": args.title, "vod_drm": args.drm, "state": EventState.PRE_VOD})
    outcome = await handlers.add_or_update_event(None, changes, invocation=shell.invocation())
    return UUID(outcome.aggregate.key)


async def _submit(services: Container, event: UUID, args: Namespace, *, file: str) -> int:
    handlers = services.get(JobHandlers)
    parameters = {"content_id": str(event), "file": file, "publish": args.publish}
    job = NewJob(client=args.client, workflow="vod_ingest", parameters=parameters)
    return (await handlers.submit_job(job, invocation=shell.invocation())).aggregate.number
