"""The job engine as it is deployed, on one machine. Two processes of the API, of the controller and of the
scheduler, four that run steps, and the workflows of `tests/plugins`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from faults.processes import Supervised
from faults.stage import EACH, Stage
from tests.platform.waiting import ROOT

LEASE: Final = 4
"""Seconds after which a worker that is not heard of has lost its steps: shorter than in use, so that much can happen in a while."""

_PLUGINS: Final = ROOT / "tests" / "plugins"
_LATE: Final = (b"is stopped: its lease", b"what it made is thrown away")


class JobStage(Stage):
    """`media_root` is where steps publish."""

    WORKERS: ClassVar[Mapping[str, int]] = {"relay": EACH, "controller": 2, "scheduler": 2, "work": 4}

    def __init__(self, folder: Path, *, kafka: bool, dice: random.Random) -> None:
        super().__init__(folder, kafka=kafka, dice=dice)
        self.media_root = folder / "media"
        self.media_root.mkdir(parents=True)

    def _process(self, role: str, number: int, more: dict[str, str]) -> Supervised:
        ours = {
            "PYTHONPATH": f"{ROOT}:{_PLUGINS}",
            "MEDIALEDGER_MEDIA_ROOT": str(self.media_root),
            "MEDIALEDGER_LEASE_SECONDS": str(LEASE),
        }
        if role not in ("api", "relay"):
            ours["MEDIALEDGER_LOG_LEVEL"] = "INFO"  # where a worker says that it came too late
        return super()._process(role, number, more | ours)

    def late(self) -> int:
        """How often a worker stopped a run that was not its own any more, or was refused what it said of one."""
        return sum(log.read_bytes().count(said) for log in self._logs.glob("work-*.log") for said in _LATE)
