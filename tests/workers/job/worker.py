"""A worker for tests that kill or freeze it: it runs one step that never ends, and records its processes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from domain.job.values import Severity
from tests.support.step_hosts import Listener, order
from workers.job.step_process_pool import StepProcessPool


class _Scribe(Listener):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def log(self, severity: Severity, message: str) -> None:
        made = self._file.with_suffix(".new")
        made.write_text(message)
        os.replace(made, self._file)


async def main(place: Path, lease_seconds: float) -> None:
    hosts = StepProcessPool(media_root=place, allow=[], lease_seconds=lease_seconds)
    await hosts.start()
    await hosts.run(order("is_deaf"), _Scribe(place / "pids"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))
