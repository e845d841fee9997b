"""Limits of downloads: a host that sends without end, or hardly anything, makes the step fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from projections.kernel.sizes import MIB
from tests.support.step_hosts import Listener, order
from workers.job.download_limits import DownloadLimitReached, DownloadWatch
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer
from workers.ports.outbound import DownloadLimits


class Watched:
    """A watch with a clock and a disk that a test sets."""

    def __init__(self, tmp_path: Path, **limits: Any) -> None:
        self.now, self.free, self.looks = 0.0, 10**15, 0
        self.watch = DownloadWatch(DownloadLimits(**limits), tmp_path, clock=lambda: self.now, free_space=self._free)
        self.watch.begin(0)

    def _free(self, _: Path) -> int:
        self.looks += 1
        return self.free

    def refusal(self, act: Callable[[], None]) -> tuple[str, bool]:
        with pytest.raises(DownloadLimitReached) as reached:
            act()
        return str(reached.value), reached.value.final


def test_a_file_may_have_so_many_bytes(tmp_path: Path) -> None:
    watched = Watched(tmp_path, size=1000)
    watched.watch.expects(0, 1000)
    watched.watch.took(1000)
    too_large = ("The file has more than 1000 bytes, which is the limit.", True)
    assert watched.refusal(lambda: watched.watch.took(1)) == too_large
    assert watched.refusal(lambda: watched.watch.expects(0, 1001)) == too_large
    watched.watch.begin(990)
    assert watched.refusal(lambda: watched.watch.took(11)) == too_large, "what is there already counts"


def test_so_much_of_the_disk_stays_free(tmp_path: Path) -> None:
    watched = Watched(tmp_path, free=100 * MIB)
    full = ("The disk would have less than 104857600 bytes of free space.", False)
    watched.free = 300 * MIB
    watched.watch.expects(50 * MIB, 250 * MIB)
    assert watched.refusal(lambda: watched.watch.expects(49 * MIB, 250 * MIB)) == full
    watched.watch.took(MIB)
    watched.free, looks = 0, watched.looks
    for _ in range(63):
        watched.watch.took(MIB)
    assert watched.looks == looks
    assert watched.refusal(lambda: watched.watch.took(MIB)) == full


def test_a_host_must_send_so_fast_on_average(tmp_path: Path) -> None:
    watched = Watched(tmp_path, rate=1000)
    watched.watch.took(1)
    watched.now = 60.0
    watched.watch.took(1)
    watched.now = 61.0
    watched.watch.took(61_000)
    watched.now = 122.0
    assert watched.refusal(lambda: watched.watch.took(1)) == (
        "The host sends 500 bytes a second; at least 1000 are required.",
        False,
    )


def test_all_downloads_of_a_step_take_so_long_together(tmp_path: Path) -> None:
    watched = Watched(tmp_path, seconds=100, rate=0)
    watched.now = 99.0
    watched.watch.took(1)
    watched.watch.end()
    watched.now = 1000.0
    watched.watch.begin(0)
    watched.now = 1001.0
    watched.watch.took(1)
    watched.now = 1001.5
    assert watched.refusal(lambda: watched.watch.took(1)) == ("The download took longer than 100 s.", False)


@asynccontextmanager
async def endless() -> AsyncIterator[str]:
    """Serve a file without end and without a length."""

    async def serve(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"ETag": '"one"'})
        await answer.prepare(request)
        with suppress(ConnectionError):
            while True:
                await answer.write(bytes(MIB))
        return answer

    app = web.Application()
    app.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/file"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("limits", "ended"),
    [
        (DownloadLimits(size=8 * MIB), StepFailure("The file has more than 8388608 bytes, which is the limit.", final=True)),
        (DownloadLimits(free=2**60), StepFailure(f"The disk would have less than {2**60} bytes of free space.")),
        (DownloadLimits(seconds=0.2), StepFailure("The download took longer than 0.2 s.")),
    ],
    ids=["size", "disk", "time"],
)
async def test_a_download_without_end_fails_and_leaves_no_file(
    tmp_path: Path, limits: DownloadLimits, ended: StepFailure, step_server: ForkServer
) -> None:
    """Without limits, 1.5 GB were on the disk of the database after six seconds, and only the host could end the download."""
    pool = StepProcessPool(media_root=tmp_path, allow=[ip_network("127.0.0.1/32")], downloads=limits, fork_server=step_server)
    await pool.start()
    async with endless() as url, asyncio.timeout(120):
        assert await pool.run(order("fetch", workflow="http_fetch_verify", url=url), Listener()) == ended
    await pool.stop()
    assert not await asyncio.to_thread(lambda: list(tmp_path.rglob("download.part")))
