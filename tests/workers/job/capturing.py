"""Runs `vod_capture` in a real step process."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.support.step_hosts import Listener, order
from tests.workers.job.streamed import Streamed
from workers.job.media_paths import MediaPaths
from workers.job.protocol import Finished, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer


@dataclass
class Studio:
    """A media root, a pool of step processes, and streams that are made once."""

    hosts: StepProcessPool
    root: Path
    streamed: Streamed
    listener: Listener = field(default_factory=Listener)
    texts: dict[str, Path] = field(default_factory=dict)
    """The texts of the last capture, by their names."""

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
    ) -> Finished | StepFailure:
        if previous_run is None:
            for earlier in (self.root / ".jobs").glob("*"):  # processes keep the directory itself
                shutil.rmtree(earlier)
        self.listener = Listener()
        self.given = given | {"sources": list(sources), "start": start, "end": end}
        ordered = order("record", run=run, previous_run=previous_run, workflow="vod_capture", **self.given)
        return await self.hosts.run(ordered, self.listener)

    async def captured(self, sources: Sequence[str], start: str, end: str, **given: Any) -> Path:
        """Capture a stream, and return the new file, in its workspace."""
        ended = await self.ended(sources, start, end, **given)
        assert isinstance(ended, Finished), (ended, self.log_text)
        self.gaps = ended.result.metadata["gaps"]
        places = MediaPaths(self.root, 17)
        for output in ended.outputs:
            kept_file = self.root / output.name
            kept_file.parent.mkdir(parents=True, exist_ok=True)
            (places.workspace(2, given.get("run", 1)) / output.path).replace(kept_file)
        joining = replace(order("join", workflow="vod_capture", **self.given), task=3)
        made = await self.hosts.run(joining, self.listener)
        assert isinstance(made, Finished), (made, self.log_text)
        self.made = made.result.metadata
        folder = places.workspace(3, 1)
        self.texts = {text["name"]: folder / text["file"] for text in self.made["texts"]}
        [output] = [output for output in made.outputs if output.name.endswith(".mp4")]
        return folder / output.path

    @property
    def log_text(self) -> str:
        return "\n".join(message for _, message in self.listener.lines)


@pytest.fixture(scope="module")
async def studio(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> AsyncIterator[Studio]:
    folder = tmp_path_factory.mktemp("capture")
    hosts = StepProcessPool(media_root=folder / "media", allow=[ip_network("127.0.0.1/32")], fork_server=step_server)
    await hosts.start()
    yield Studio(hosts, folder / "media", Streamed(folder))
    await hosts.stop()
