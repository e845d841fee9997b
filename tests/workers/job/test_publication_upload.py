"""Uploads of publications by the engine: real steps, real servers, and secrets that leak nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from domain.asset.values import CaptionKind
from domain.job.outcome import JobOutcome, outcome
from domain.kernel.mapper import EventMapper
from projections.job.queue import JobNumberSequence, QueuedRun
from projections.job.upload_states import UploadStates, UploadTaken
from projections.kernel.database.database import Database
from projections.log.reader import read
from tests.support.engine import Engine, once, process
from tests.support.s3 import SECRET
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.step_hosts import Listener, order
from tests.support.targets.facebook_server import TOKEN as PAGE_TOKEN
from tests.support.targets.stages import PASSWORD, TOKEN, Stage, in_bucket, in_ssh, on_facebook, on_web, on_youtube
from tests.support.targets.youtube_server import CLIENT_SECRET, REFRESH
from tests.workers.media.captions.test_tracks import MASTER
from workers.adapters.targets.sftp import PART
from workers.job.protocol import Finished, StepFailure
from workers.job.publication_uploads import PublicationUploads
from workers.job.step_process_pool import StepProcessPool
from workers.job.workflows.publication_upload import Rate
from workers.kernel.fork_client import ForkServer
from workers.media.captions.tracks import TextTrack, in_playlist
from workers.ports.targets import OpenedDestination, PublicationOrder, ServiceAddresses, TargetFailed, TextTarget

LOOPBACK = [ip_network("127.0.0.0/8")]
FILM = bytes(range(256)) * 2_000
UPLOAD = "publication_upload"
Migrated = tuple[str, str | None]
SECRETS = (PASSWORD, TOKEN, SECRET, "marked-option-44aa", CLIENT_SECRET, REFRESH, PAGE_TOKEN, "marked-access", "upload_id")
"""The secrets, including the tokens and the upload sessions that YouTube issues."""


@dataclass
class Destinations:
    """Implements the port `OpenDestination` with the destinations of a test."""

    configured: dict[UUID, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    content: str = "match"

    def add(self, target: int, config: Mapping[str, Any]) -> UUID:
        key = uuid4()
        self.configured[key] = (target, config)
        return key

    async def __call__(self, publication: UUID, *, job: int) -> OpenedDestination:
        if publication not in self.configured:
            raise TargetFailed("destination", "The destination is not active.")
        target, config = self.configured[publication]
        return OpenedDestination(target, config, PublicationOrder(publication, self.content, options={"key": SECRETS[3]}))


@dataclass(frozen=True)
class Product:
    engine: Engine
    destinations: Destinations
    root: Path
    published: Path
    owner: str
    """The owner of the tables."""
    services: Mapping[int, Stage]
    """YouTube and Facebook, by the numbers of their targets."""


@pytest.fixture
async def product(database_url: str, migrated: Migrated, tmp_path: Path) -> AsyncIterator[Product]:
    media, published, destinations = tmp_path / "media", tmp_path / "published", Destinations()
    for folder in (media / "match", published / "out"):
        folder.mkdir(parents=True)
    (media / "match" / "match.mp4").write_bytes(FILM)
    (published / "out").chmod(0o777)  # for the account of steps
    async with AsyncExitStack() as stack:
        services = {2: await stack.enter_async_context(on_youtube()), 0: await stack.enter_async_context(on_facebook())}
        youtube, facebook = (f"http://127.0.0.1:{stage.wire.port}" for stage in services.values() if stage.wire is not None)
        addresses = ServiceAddresses(youtube, f"{youtube}/token", f"{facebook}/graph/v1.0", f"{facebook}/video/v1.0")
        given: dict[str, Any] = {"media_root": media, "opens": destinations, "filesystem_root": published, "services": addresses}
        inner = await stack.enter_async_context(process(database_url, migrated[1], outbound_allow=LOOPBACK, **given))
        engine = Engine(inner, JobNumberSequence(inner.database))
        await engine.set("retry_limit", 0)
        yield Product(engine, destinations, media, published, database_url, services)


async def uploaded(product: Product, publication: UUID) -> JobOutcome:
    number = await product.engine.accept(UPLOAD, publication=str(publication))
    job, inner = await product.engine.ended(number), product.engine.inner
    last = (await read(inner.database, 0))[-1]
    event = EventMapper(inner.catalogue).read(last.topic, stream=last.stream, version=last.version, state=last.state)
    result = outcome(event, job)
    assert result is not None
    return result


def config_of(stage: Stage) -> Mapping[str, Any]:
    return stage.target()._config  # type: ignore[attr-defined, no-any-return]  # the configuration of the stage's server


async def everything_stored(database: Database) -> str:
    """Return all rows of all tables, as text."""
    tables = await database.rows(
        "SELECT quote_ident(relname) FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
    )
    texts = []
    for (table,) in tables:
        texts += [str(row) for row in await database.rows(f"SELECT t::text FROM {table} t")]
    return "\n".join(texts)


def arguments() -> str:
    """Return the arguments of all processes of the machine."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


async def test_a_film_is_uploaded_everywhere_and_no_secret_is_kept(
    product: Product, moto_endpoint: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        stages = {
            **product.services,
            5: await stack.enter_async_context(in_bucket(moto_endpoint)),
            6: await stack.enter_async_context(in_ssh(tmp_path / "ssh")),
            7: await stack.enter_async_context(on_web()),
        }
        keys = [product.destinations.add(target, config_of(stage)) for target, stage in stages.items()]
        keys.append(product.destinations.add(8, {"path": "out"}))
        watching = asyncio.create_task(asyncio.to_thread(arguments))
        ends = [await uploaded(product, key) for key in keys]
        watched = await watching + arguments()
        for result in ends:
            assert result.metadata["details"]["sha256"] == result.metadata["sha256"] == sha256(FILM).hexdigest()
        assert [list(stage.files().values()) for stage in stages.values()] == [[FILM]] * 5
        assert [path.read_bytes() for path in (product.published / "out").iterdir()] == [FILM]
        for stage in stages.values():
            for target in stage.opened:
                await target.close()
    output = "\n".join(str(end) for end in ends) + caplog.text + watched
    async with Database.of_owner(product.owner, size=1) as database:
        stored = await everything_stored(database)
    assert str(keys[0]) in stored, "the rows that are searched have the jobs"
    for secret in SECRETS:
        assert secret not in stored
        assert secret not in output


async def test_captions_go_along_with_a_film(product: Product, moto_endpoint: str, tmp_path: Path) -> None:
    texts = {}
    tracks = [
        TextTrack(name="Deutsch", language="de", kind=CaptionKind.CAPTIONS, stem="a"),
        TextTrack(name="Deutsch", language="de", kind=CaptionKind.SUBTITLES, stem="b"),
        TextTrack(name="English", language="en-GB", kind=CaptionKind.SUBTITLES, stem="c", folder="subtitles"),
    ]
    for track in tracks:
        path = product.root / "match" / track.file
        path.parent.mkdir(exist_ok=True)
        texts[track.stem] = f"WEBVTT\n\n00:00.000 --> 00:01.000\n{track.stem}\n".encode()
        path.write_bytes(texts[track.stem])
    (product.root / "match" / "clear").mkdir()
    playlist = in_playlist(in_playlist(MASTER, tracks[2:], folder="subtitles"), tracks[:2])
    (product.root / "match" / "clear" / "master.m3u8").write_text(playlist)
    async with AsyncExitStack() as stack:
        stages = {
            5: await stack.enter_async_context(in_bucket(moto_endpoint)),
            6: await stack.enter_async_context(in_ssh(tmp_path / "ssh")),
            7: await stack.enter_async_context(on_web()),
        }
        for number, stage in stages.items():
            key = product.destinations.add(number, config_of(stage))
            result = await uploaded(product, key)
            assert result.kind == "completed", result.reason
            files = {name.rpartition("/")[2]: content for name, content in stage.files().items()}
            film = next(name for name, content in files.items() if content == FILM)
            stem = film.removesuffix(".mp4")
            assert {name.removeprefix(stem): content for name, content in files.items()} == {
                ".mp4" if film.endswith(".mp4") else "": FILM,
                ".en-GB.vtt": texts["c"],
                ".de.vtt": texts["a"],
                ".de.subtitles.vtt": texts["b"],
            }, number
            target = stage.make()
            for text in result.metadata["details"]["texts"]:
                assert isinstance(target, TextTarget)
                await target.remove_text(PublicationOrder(key, "match"), text)
            assert list(stage.files().values()) == [FILM]
            await target.close()
            for opened in stage.opened:
                await opened.close()
        result = await uploaded(product, product.destinations.add(8, {"path": "out"}))
        assert sorted(path.name.partition(".")[2] for path in (product.published / "out").iterdir()) == [
            "de.subtitles.vtt",
            "de.vtt",
            "en-GB.vtt",
            "mp4",
        ]
        result = await uploaded(product, product.destinations.add(0, config_of(product.services[0])))
        assert (result.kind, result.metadata["details"]["texts"]) == ("completed", [])


FAILURES = [
    (8, {"path": "missing"}, "destination"),
    (4, {"cstm_streamUrl": "rtmp://127.0.0.1:9/a", "cstm_streamName": SECRETS[3]}, "destination"),
    (5, {"endpoint": "http://127.0.0.1:9", "bucket": "b", "accessKeyId": "k", "secretAccessKey": SECRET}, "publication"),
]


async def test_a_failure_says_whose_fault_it_is(product: Product) -> None:
    for target, config, cause in FAILURES:
        result = await uploaded(product, product.destinations.add(target, config))
        assert (result.kind, result.cause) == ("failed", cause)
        assert not any(secret in result.reason for secret in SECRETS)
    result = await uploaded(product, uuid4())
    assert (result.cause, "not active" in result.reason) == ("destination", True)
    (product.root / "match" / "match.mp4").unlink()
    result = await uploaded(product, product.destinations.add(8, {"path": "out"}))
    assert (result.cause, "no MP4" in result.reason) == ("media", True)


async def test_a_later_run_goes_on_where_a_killed_one_ended(
    database_url: str, migrated: Migrated, tmp_path: Path, step_server: ForkServer
) -> None:
    root, publication, content = tmp_path / "media", uuid4(), bytes(3 * PART)
    (root / "film").mkdir(parents=True)
    (root / "film" / "film.mp4").write_bytes(content)
    hosts = StepProcessPool(media_root=root, allow=LOOPBACK, fork_server=step_server)
    await hosts.start()
    async with Database(database_url, role=migrated[1], size=2) as database, in_ssh(tmp_path / "ssh") as stage:
        destinations = Destinations({publication: (6, config_of(stage))}, content="film")
        states = UploadStates(database)
        uploads = PublicationUploads(states, opens=destinations)

        async def run(number: int) -> Finished | StepFailure:
            wanted = order("upload", workflow=UPLOAD, run=number, publication=str(publication))
            return await hosts.run(wanted, Listener(), more=uploads.answers(publication, QueuedRun(17, 1, number)))

        first = asyncio.create_task(run(1))
        await once(lambda: database.row("SELECT 1 FROM publication_uploads WHERE state IS NOT NULL"))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        ended = await run(2)
        assert isinstance(ended, Finished), ended
        assert list(stage.files().values()) == [content]
        assert stage.sent() <= len(content) + PART + 1_000_000
        with pytest.raises(UploadTaken):
            await states.save(publication, {}, job=17, run=1)
        with pytest.raises(UploadTaken):
            await states.take(publication, job=17, run=1)
    await hosts.stop()


def test_the_rate_is_that_of_the_last_seconds() -> None:
    rate = Rate()
    assert [rate.after(0, at=0.0), rate.after(100_000, at=0.1)] == ["", ""]
    assert rate.after(2_000_000, at=1.0) == ", 2.0 MB/s"
    assert [rate.after(second * 10_000_000, at=float(second)) for second in range(2, 12)][-1] == ", 10.0 MB/s"
    assert [rate.after(50_000_000, at=12.0), rate.after(51_000_000, at=13.0)] == ["", ", 1.0 MB/s"]
