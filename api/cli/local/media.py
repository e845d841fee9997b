"""`medialedger media ingest`: creates an Event from a file of this machine, and has the file packaged. The source is stored below
the media root, where steps can read it, until its job has ended."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Coroutine
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, TypeVar

from api.cli.remote.jobs import INTERVAL, job_state, submit, watch
from api.cli.remote.rest_api import RestApi
from api.cli.run.runner import settings_of_process
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.channel.placeholders import packaging
from domain.channel.streams import StreamProtocol
from domain.kernel.errors import DomainError
from projections.kernel.sizes import MIB
from workers.job import folders
from workers.job.media_paths import segment_fault

if TYPE_CHECKING:
    from workers.ports.buckets import ObjectStore

T = TypeVar("T")

_BEFORE: Final = ("PRE_VOD", "VOD_INGESTING")
_INCOMING: Final = "incoming"
_PART: Final = 64 * MIB
"""The bytes of a part of an upload, which has at most 10,000 parts."""


def check_file(file: Path) -> None:
    """Raise `StartError` if the file cannot be read. A pipe is not opened: that would wait for its writer."""
    try:
        if not S_ISREG(file.stat().st_mode):
            raise StartError(f"{file} is {'a directory' if file.is_dir() else 'not a regular file'}")
        file.open("rb").close()
    except FileNotFoundError:
        raise StartError(f"the file {file} does not exist") from None
    except OSError as error:
        raise StartError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from None


def ingest_film(api: RestApi, file: Path, *, title: str, drm: bool, publish: bool, client: str) -> None:
    """Create an Event from the file and follow its job. On an interruption the workers continue the job and its source stays."""
    settings = settings_of_process()
    event = str(api.call("POST", "/api/event/", body={"title": title, "vodDrm": drm, "eventState": _BEFORE[0]}).document["id"])
    print(f"Event {event}", flush=True)
    source = _run(bring_in(file, settings, event=event))
    parameters = {"content_id": event, "file": source, "publish": publish}
    number = submit(api, {"workflow": "vod_ingest"}, parameters, client=client)
    watch(api, [number], client=None)
    _run(remove_source(source, settings, event=event))
    job = {**api.document(f"/engine/jobs/{number}"), **api.document(f"/engine/jobs/{number}/tasks")}
    if job_state(job) != "completed":
        raise StartError(job.get("reason") or "the job was cancelled")
    _wait_for_event(api, event)
    playlist = f"{event}/{packaging(StreamProtocol.HLS, vod_drm=drm)}/master.m3u8"
    print(f"{settings.media_root}/{playlist}")
    if publish and settings.media_serve is not False:
        print(f"{settings.public_url or base_url(settings.host, port=settings.port)}/media/{playlist}")


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except DomainError as refusal:
        raise StartError(str(refusal)) from None


def _wait_for_event(api: RestApi, event: str) -> None:
    """Wait until the Event shows the end of its job: before that, the printed addresses cannot be opened."""
    while (shown := api.get(f"/api/event/{event}")) is not None and shown.get("stateString") in _BEFORE:
        time.sleep(INTERVAL)


async def bring_in(file: Path, settings: Settings, *, event: str) -> str:
    """Return the path below the media root: of the file itself if it is stored there, else of a copy."""
    name = file.name if segment_fault(file.name) is None else "source"
    store = _store(settings)
    if store is None:
        return str(await asyncio.to_thread(_copy, file, settings.media_directory, event, name))
    key = f"{_INCOMING}/{event}/{name}"
    await _upload(store, key, file)
    return key


async def remove_source(path: str, settings: Settings, *, event: str) -> None:
    """Delete the copy. A file that was below the media root before stays."""
    store = _store(settings)
    if store is not None:
        await store.delete([path])
    else:
        await asyncio.to_thread(folders.remove, settings.media_directory, (_INCOMING, event))


def _store(settings: Settings) -> ObjectStore | None:
    if settings.media_bucket is None:
        return None
    from workers.adapters.s3_bucket import S3Bucket

    return S3Bucket(settings.media_bucket)


async def _upload(store: ObjectStore, key: str, file: Path) -> None:
    upload, tags = await store.begin_upload(key, sha256=""), list[str]()
    try:
        with file.open("rb") as source:
            while (content := await asyncio.to_thread(source.read, _PART)) or not tags:
                tags.append(await store.upload_part(key, upload, number=len(tags) + 1, content=content))
        await store.complete_upload(key, upload, parts=tags)
    except BaseException:
        await store.end_upload(key, upload)
        raise


def _copy(file: Path, root: Path, event: str, name: str) -> Path:
    inside = file.resolve()
    if inside.is_relative_to(root.resolve()):
        return inside.relative_to(root.resolve())
    with folders.folder(root, (_INCOMING, event), make=True) as place:
        copy = os.open(name, folders.NEW_FILE, 0o600, dir_fd=place)
        with file.open("rb") as original, open(copy, "wb") as made:
            shutil.copyfileobj(original, made, 1_048_576)
            folders.open_to_group(copy, os.stat(root).st_gid)
    return Path(_INCOMING, str(event), name)
