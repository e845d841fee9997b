"""The workflow `http_fetch_verify` in real step processes, from a server that interrupts downloads, sends wrong ranges and changes
its file."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from domain.job.values import Output, Result
from tests.projections.log.helpers import until
from tests.support.step_hosts import Listener, order
from tests.workers.job.file_host import CHANGED, FileHost
from workers.job.media_paths import MediaPaths
from workers.job.protocol import Finished, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

BODY = bytes(range(256)) * 4_000
DIGEST = sha256(BODY).hexdigest()
OTHER = BODY[::-1]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared") / "media"


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[ip_network("127.0.0.1/32")], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


class Site:
    """A media root, and the steps of one job on it."""

    def __init__(self, hosts: StepProcessPool, root: Path) -> None:
        self.hosts = hosts
        self.places = MediaPaths(root, 17)
        self.root = root
        self.heard = Listener()

    async def fetch(self, url: str, *, run: int = 1, previous_run: int | None = None, **parameters: Any) -> Finished | StepFailure:
        given = order("fetch", run=run, previous_run=previous_run, workflow="http_fetch_verify", url=url, **parameters)
        return await self.hosts.run(given, self.heard)

    async def store(self, fetched: Finished, url: str, **parameters: Any) -> Finished | StepFailure:
        given = order("store", workflow="http_fetch_verify", url=url, **parameters)
        return await self.hosts.run(replace(given, task=3, results={"fetch": fetched.result.metadata}), self.heard)

    def publish(self, ended: Finished, *, task: int) -> None:
        for output in ended.outputs:
            place = self.root / output.name
            place.parent.mkdir(parents=True, exist_ok=True)
            (self.places.workspace(task, 1) / output.path).replace(place)

    def made(self, ended: Finished | StepFailure, *, run: int = 1) -> bytes:
        assert isinstance(ended, Finished)
        return (self.places.workspace(2, run) / ended.outputs[0].path).read_bytes()

    def part(self, run: int) -> Path:
        return self.places.workspace(2, run) / "download.part"

    @property
    def log_text(self) -> str:
        return "\n".join(message for _, message in self.heard.lines)


@pytest.fixture
def site(hosts: StepProcessPool, root: Path) -> Site:
    shutil.rmtree(root, ignore_errors=True)
    return Site(hosts, root)


async def test_a_file_is_fetched_and_stored(site: Site) -> None:
    async with FileHost(BODY) as host:
        url = f"{host.url}/films/a%20film.mp4?token=x"
        fetched = await site.fetch(url, size=len(BODY), sha256=DIGEST.upper())
    assert isinstance(fetched, Finished)
    assert fetched.outputs == (Output(path="download.part", name=".jobs/17/files/a film.mp4", size=len(BODY), sha256=DIGEST),)
    assert fetched.result.files == ()
    metadata = dict(fetched.result.metadata)
    assert metadata.pop("seconds") > 0
    assert metadata == {"size": len(BODY), "sha256": DIGEST, "contentType": "video/mp4"}
    assert site.heard.fractions[-1] == (1.0, f"{len(BODY)} bytes")

    site.publish(fetched, task=2)
    stored = await site.store(fetched, url)
    assert isinstance(stored, Finished)
    assert stored.outputs == (Output(path="a film.mp4", name="film/a film.mp4", size=len(BODY), sha256=DIGEST),)
    assert (stored.result.files, stored.result.metadata) == (("film/a film.mp4",), fetched.result.metadata)
    site.publish(stored, task=3)
    assert await asyncio.to_thread((site.root / "film/a film.mp4").read_bytes) == BODY


async def test_an_empty_file_is_a_file(site: Site) -> None:
    async with FileHost(b"") as host:
        assert site.made(await site.fetch(f"{host.url}/empty", size=0)) == b""


async def test_a_fetched_file_that_is_gone_fails_the_next_step(site: Site) -> None:
    ended = await site.store(Finished(Result()), "http://127.0.0.1/x")
    assert ended == StepFailure("The file x, which an earlier step kept, no longer exists. Run the job again.", final=True)


# -- going on, in one run -------------------------------------------------------------------------------------------------


async def test_a_broken_download_continues(site: Site) -> None:
    async with FileHost(BODY, breaks=[100_000, 50_000, 200_000]) as host:
        assert site.made(await site.fetch(host.url, sha256=DIGEST)) == BODY
    assert [request.get("range") for request in host.asked] == [None, "bytes=100000-", "bytes=150000-", "bytes=350000-"]
    assert {request.get("if-range") for request in host.asked[1:]} == {'"one"'}
    assert "Continuing at 100000 bytes." in site.log_text


async def test_a_file_that_changes_is_fetched_again(site: Site) -> None:
    host = FileHost(BODY, breaks=[100_000])

    def change() -> None:
        if host.asked:
            host.body, host.etag = OTHER, '"two"'

    host.before = change
    async with host:
        assert site.made(await site.fetch(host.url)) == OTHER
    assert len(host.asked) == 2


@pytest.mark.parametrize("ranges", ["from another place", "of another version", "without a tag"])
async def test_a_wrong_range_is_fetched_again(site: Site, ranges: str) -> None:
    async with FileHost(BODY, breaks=[100_000], ranges=ranges) as host:
        assert site.made(await site.fetch(host.url)) == BODY
    assert [request.get("range") for request in host.asked] == [None, "bytes=100000-", None]
    assert "starting again" in site.log_text


async def test_a_host_that_ignores_if_range_is_detected_by_its_tag(site: Site) -> None:
    host = FileHost(BODY, breaks=[100_000], ranges="for any version")

    def change() -> None:
        if host.asked:
            host.body, host.etag = OTHER, '"two"'

    host.before = change
    async with host:
        assert site.made(await site.fetch(host.url)) == OTHER


@pytest.mark.parametrize(
    ("etag", "last_modified", "continues"),
    [
        ('W/"weak"', None, False),
        (None, None, False),
        (None, CHANGED, True),
        (None, "nonsense", False),
        ('"not ascii: ü"', None, False),
    ],
)
async def test_only_a_strong_validator_continues_a_download(
    site: Site, etag: str | None, last_modified: str | None, continues: bool
) -> None:
    async with FileHost(BODY, etag=etag, last_modified=last_modified, breaks=[100_000]) as host:
        ended = await site.fetch(host.url)
    if continues:
        assert site.made(ended) == BODY
    else:
        assert ended == StepFailure("The host closed the connection before its answer was complete.")


async def test_a_download_without_progress_fails(site: Site) -> None:
    async with FileHost(BODY, breaks=[100_000, 0]) as host:
        assert await site.fetch(host.url) == StepFailure("The host closed the connection before its answer was complete.")
    assert len(host.asked) == 2


# -- going on, in a later run ---------------------------------------------------------------------------------------------


async def test_a_later_run_continues_with_a_copy(site: Site) -> None:
    async with FileHost(BODY, breaks=[100_000, 0]) as host:
        assert isinstance(await site.fetch(host.url), StepFailure)
        assert site.made(await site.fetch(host.url, run=2, previous_run=1, sha256=DIGEST), run=2) == BODY
    assert host.asked[-1]["range"] == "bytes=100000-"
    assert site.part(1).stat().st_size == 100_000, "somebody may still write there"
    assert "Continuing at 100000 bytes, which the previous run had." in site.log_text


async def test_a_later_run_starts_over_after_a_change(site: Site) -> None:
    async with FileHost(BODY, breaks=[100_000, 0]) as host:
        assert isinstance(await site.fetch(host.url), StepFailure)
        host.body, host.etag = OTHER, '"two"'
        assert site.made(await site.fetch(host.url, run=2, previous_run=1), run=2) == OTHER
    assert host.asked[-1]["if-range"] == '"one"'


async def test_a_later_run_starts_over_without_such_a_range(site: Site) -> None:
    async with FileHost(BODY, breaks=[100_000, 0]) as host:
        assert isinstance(await site.fetch(host.url), StepFailure)
        host.body = BODY[:50_000]
        assert site.made(await site.fetch(host.url, run=2, previous_run=1), run=2) == BODY[:50_000]


@pytest.mark.parametrize("damage", ["no version", "no file", "other version"])
async def test_a_partial_file_without_its_version_is_not_used(site: Site, damage: str) -> None:
    async with FileHost(BODY, breaks=[100_000, 0]) as host:
        assert isinstance(await site.fetch(host.url), StepFailure)
        version = site.part(1).with_name("download.json")
        if damage == "no file":
            site.part(1).unlink()
        else:
            version.write_text("{" if damage == "no version" else json.dumps({"validator": None, "total": 1, "content_type": ""}))
        assert site.made(await site.fetch(host.url, run=2, previous_run=1), run=2) == BODY
    assert "range" not in host.asked[-1]


async def test_a_cancelled_download_leaves_its_part_for_the_next_run(site: Site, step_server: ForkServer) -> None:
    """The host sends a part of the file, and then nothing."""
    hosts = StepProcessPool(media_root=site.root, allow=[ip_network("127.0.0.1/32")], fork_server=step_server)
    await hosts.start()
    silent = asyncio.Event()
    async with FileHost(BODY, pauses=silent) as host:
        interrupted = Site(hosts, site.root)
        running = asyncio.create_task(interrupted.fetch(host.url))
        await until(lambda: interrupted.heard.fractions)
        hosts.drain()
        assert await running == StepFailure("The step was asked to end.", interrupted=True)
        await hosts.stop()
        silent.set()
        host.pauses = None
        assert site.made(await site.fetch(host.url, run=2, previous_run=1, sha256=DIGEST), run=2) == BODY
    assert host.asked[-1]["range"].startswith("bytes=")


# -- what is wrong --------------------------------------------------------------------------------------------------------


async def test_a_wrong_digest_fails_and_its_bytes_are_not_used_again(site: Site) -> None:
    async with FileHost(OTHER) as host:
        ended = await site.fetch(host.url, sha256=DIGEST)
        assert ended == StepFailure(f"Expected SHA-256 {DIGEST}, received {sha256(OTHER).hexdigest()}.")
        host.body = BODY
        assert site.made(await site.fetch(host.url, run=2, previous_run=1, sha256=DIGEST), run=2) == BODY
    assert "range" not in host.asked[-1]


@pytest.mark.parametrize(
    ("size", "says_length", "reason"),
    [
        (10, True, "The file is larger than the 10 bytes that were expected."),
        (2_000_000, True, "Expected 2000000 bytes, the host has 1024000."),
        (10, False, "The file is larger than the 10 bytes that were expected."),
        (2_000_000, False, "Expected 2000000 bytes, received 1024000."),
    ],
)
async def test_another_size_is_a_failure(site: Site, size: int, says_length: bool, reason: str) -> None:
    async with FileHost(BODY, says_length=says_length) as host:
        assert await site.fetch(host.url, size=size) == StepFailure(reason)
    assert not site.part(1).exists()


@pytest.mark.parametrize(
    ("status", "final"), [(404, True), (403, True), (410, True), (408, False), (425, False), (429, False), (503, False)]
)
async def test_a_status_says_whether_to_try_again(site: Site, status: int, final: bool) -> None:
    async with FileHost(BODY, statuses=[status]) as host:
        assert await site.fetch(f"{host.url}/x?token=S3cret") == StepFailure(f"The host answered {status}.", final=final)


async def test_an_address_that_is_not_permitted_is_final(site: Site) -> None:
    ended = await site.fetch("http://127.0.0.2:9/S3cret")
    assert ended == StepFailure("The address is not public and not in an allowed network.", final=True)


async def test_a_redirect_to_a_private_address_is_final(site: Site) -> None:
    async with FileHost(BODY, moved={"/a": "http://169.254.169.254/latest/S3cret"}) as host:
        ended = await site.fetch(f"{host.url}/a")
    assert ended == StepFailure("The address is not public and not in an allowed network.", final=True)


async def test_a_refused_connection_is_not_final(site: Site) -> None:
    async with FileHost(BODY) as host:
        pass
    assert await site.fetch(host.url) == StepFailure("The host cannot be reached: Connection refused.")
