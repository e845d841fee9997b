"""Runs `vod_capture` in a real step process."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.workers.jobs.hosting import Listener, order
from tests.workers.jobs.streamed import Streamed
from workers.jobs.protocol import Failed, Finished
from workers.jobs.step_process_pool import StepProcessPool


@dataclass
class Studio:
    """One media root, a pool of step processes, and streams that are made once."""

    hosts: StepProcessPool
    root: Path
    streamed: Streamed

    def files(self, *names: str) -> dict[str, Any]:
        return {path: body for name in names for path, body in self.streamed.files(name).items()}

    async def ended(
        self,
        sources: Sequence[str],
        start: str | None,
        end: str | None,
        *,
        run: int = 1,
        previous_run: int | None = None,
        **given: Any,
    ) -> Finished | Failed:
        if previous_run is None:
            shutil.rmtree(self.root / ".jobs", ignore_errors=True)
        self.listener = Listener()
        given |= {"sources": list(sources), "start": start, "end": end}
        ordered = order("capture", run=run, previous_run=previous_run, workflow="vod_capture", **given)
        return await self.hosts.run(ordered, self.listener)

    async def captured(self, sources: Sequence[str], start: str, end: str, **given: Any) -> Path:
        """The file that was made, in its workspace."""
        result = await self.ended(sources, start, end, **given)
        assert isinstance(result, Finished), (result, self.told)
        self.result = result.result
        film, metadata = result.outputs
        assert (film.name, metadata.name) == ("film/film.mp4", "film/metadata.json")
        workspace = self.root / f".jobs/17/2/{given.get('run', 1)}"
        self.described = json.loads((workspace / metadata.path).read_text())
        return workspace / film.path

    @property
    def told(self) -> str:
        return "\n".join(message for _, message in self.listener.lines)


@pytest.fixture(scope="module")
async def studio(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Studio]:
    folder = tmp_path_factory.mktemp("capture")
    hosts = StepProcessPool(media_root=folder / "media", allow=[ip_network("127.0.0.1/32")])
    await hosts.start()
    yield Studio(hosts, folder / "media", Streamed(folder))
    await hosts.stop()
