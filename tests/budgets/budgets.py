"""The budgets: their file, and the comparison with what was counted."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.budgets.counting import Counts

FILE: Final = Path(__file__).with_name("budgets.toml")
PYTHON: Final = (3, 11)
"""The version of Python that the calls and the memory in the file belong to. Other versions make other calls for the same code."""
_WRITE: Final = "python -m tests.budgets --write"
_SHOWN: Final = 25
_WIDTH: Final = 180


_BELOW: Final = 0.4
"""The share of a budget by which a count may be below it. A budget that is much higher than the cost guards nothing."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter, and the share of a budget by which a count may be above it: versions of packages differ a little, a busy machine
    delivers a response in two parts, and a page of an index is sometimes split. A small budget may be exceeded by `few`."""

    name: str
    unit: str
    above: float
    few: int = 0
    depends_on_python: bool = False

    @property
    def is_comparable(self) -> bool:
        return not self.depends_on_python or sys.version_info[:2] == PYTHON

    def verdict(self, budget: float, counts: Counts, *, tolerance: float = 0) -> str:
        """Return what is wrong with a count; an empty text if it is within its budget. `tolerance` is that of what is counted."""
        counted = number(self, counts)
        change = f"{shown(budget)} {self.unit} before, {shown(counted)} now"
        if counted > budget + max(budget * max(self.above, tolerance), self.few):
            return f"{change}: that is more.\n{self._largest(counts)}If it is worth its cost: {_WRITE}"
        if counted < budget * (1 - _BELOW):
            return f"{change}: that is less. Lower the budget, so that it stays: {_WRITE}"
        return ""

    def _largest(self, counts: Counts) -> str:
        """Return lines with the largest counts by function or statement."""
        by_name = {"calls": counts.calls, "statements": counts.statements}.get(self.name, {})
        largest = sorted(by_name.items(), key=lambda item: -item[1])[:_SHOWN]
        return "".join(f"{shown(times):>10}  {name[:_WIDTH]}\n" for name, times in largest if times > 0)


COUNTERS: Final = (
    Counter("calls", "calls of Python functions", 0.1, depends_on_python=True),
    Counter("statements", "SQL statements", 0.1),
    Counter("wal_bytes", "bytes of write-ahead log", 0.1),
    Counter("peak_bytes", "bytes of memory at one time", 0.6, depends_on_python=True),
    Counter("wakeups", "wake-ups", 0.2, few=2),
)


def number(counter: Counter, counts: Counts) -> float:
    """Return the count of a counter."""
    count = getattr(counts, counter.name)
    return float(sum(count.values()) if isinstance(count, Mapping) else count)


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"


def budgets() -> dict[str, dict[str, Any]]:
    """Return the file: for each name a sentence, and the budgets by counter."""
    return tomllib.loads(FILE.read_text())


def written(counted: Mapping[str, Counts]) -> str:
    """Return the text of the file with these counts as the budgets. Comments and sentences stay."""
    lines, name = [], ""
    for line in FILE.read_text().splitlines():
        key = line.partition(" ")[0]
        if line.startswith("["):
            name = line.strip("[]")
        counter = next((each for each in COUNTERS if each.name == key), None)
        if counter is not None and counter.is_comparable:
            lines.append(f"{key} = {_rounded(number(counter, counted[name]))}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _rounded(value: float) -> str:
    return str(round(value)) if value >= 100 or value == int(value) else f"{value:.2f}"
