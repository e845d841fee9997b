"""Step hosts for tests, and a plug-in that is really installed: a folder with the metadata of a distribution, on the path."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from domain.job.values import Severity
from workers.job.protocol import StepOrder
from workers.job.registry import installed

TRIAL = "tests.support.steps:TRIAL"


@contextmanager
def plugin(place: Path, **entries: str) -> Iterator[None]:
    """Install workflows of another package, by the names of their entry points."""
    lines = "\n".join(f"{name} = {value}" for name, value in entries.items())
    place.chmod(0o755)  # for the account of steps
    metadata = place / "plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[medialedger.workflows]\n{lines}\n")
    sys.path.append(str(place))
    installed.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(place))
        installed.cache_clear()


@dataclass
class Listener:
    """Collects the log lines and progress of a step."""

    lines: list[tuple[Severity, str]] = field(default_factory=list)
    fractions: list[tuple[float, str]] = field(default_factory=list)

    def progress(self, fraction: float, message: str) -> None:
        self.fractions.append((fraction, message))

    def log(self, severity: Severity, message: str) -> None:
        self.lines.append((severity, message))


def order(step: str, *, run: int = 1, previous_run: int | None = None, workflow: str = "trial", **parameters: Any) -> StepOrder:
    return StepOrder(
        job=17,
        task=2,
        run=run,
        workflow=workflow,
        step=step,
        client="admin",
        content_id="film",
        parameters={"content_id": "film", **parameters},
        results=RESULTS,
        previous_run=previous_run,
    )


RESULTS: Mapping[str, Mapping[str, Any]] = {"before": {"size": 3}}
