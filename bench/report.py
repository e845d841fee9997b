"""The result of a benchmark, as tables to read and as JSON to compare runs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Target:
    """A target and the measured value. A miss does not fail the run, because it also depends on the machine."""

    what: str
    seen: float
    wanted: float
    unit: str = "x"
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.seen <= self.wanted if self.at_most else self.seen >= self.wanted

    def row(self) -> list[str]:
        sign = "<=" if self.at_most else ">="
        return [
            self.what,
            f"{sign} {_figure(self.wanted)} {self.unit}",
            f"{_figure(self.seen)} {self.unit}",
            "yes" if self.met else "no",
        ]


@dataclass(slots=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append([_figure(cell) if isinstance(cell, float) else str(cell) for cell in cells])

    def show(self) -> None:
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        print(f"\n{self.title}")
        for cells in (self.columns, ["-" * width for width in widths], *self.rows):
            first, *others = zip(cells, widths, strict=True)
            print("  " + "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip(), flush=True)


@dataclass(slots=True)
class Result:
    """The result of one benchmark: its tables, its targets, and the raw figures of every round."""

    name: str
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def show(self) -> None:
        for table in self.tables:
            table.show()


def middle(values: Sequence[float]) -> float:
    return float(median(values)) if values else float("nan")


def show_targets(results: Sequence[Result]) -> None:
    table = Table("Targets", ("what", "target", "seen", "met"))
    table.rows += [target.row() for result in results for target in result.targets]
    if table.rows:
        table.show()


def write(results: Sequence[Result], *, quick: bool) -> Path:
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    machine = {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_at_end": os.getloadavg(),
    }
    content = {"at": now.isoformat(), "quick": quick, "machine": machine, "results": [asdict(result) for result in results]}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def _figure(value: float) -> str:
    if value != value:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 20 else f"{value:.2f}"
