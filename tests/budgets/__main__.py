"""`python -m tests.budgets`: show today's counts beside the budgets, or write them as the budgets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.budgets.budgets import COUNTERS, FILE, budgets, number, shown, written
from tests.budgets.counting import Counts
from tests.budgets.measures import measure
from tests.support.postgres import migrated_server


def _table(counted: Mapping[str, Counts], given: Mapping[str, Mapping[str, float]]) -> Sequence[str]:
    rows = [("", *(counter.name for counter in COUNTERS))]
    for name, counts in counted.items():
        budget = given.get(name, {})
        cells = (
            shown(number(counter, counts)) + (f" of {shown(budget[counter.name])}" if counter.name in budget else "")
            for counter in COUNTERS
        )
        rows.append((name, *cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _parts(counts: Counts) -> Sequence[str]:
    """Return every function and statement with its count."""
    parts = [*counts.calls.items(), *counts.statements.items()]
    return [f"{times:10.2f}  {name}" for name, times in sorted(parts, key=lambda part: -part[1]) if times > 0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.budgets", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write the counts to {FILE.name}")
    parser.add_argument("--parts", metavar="NAME", help="show every function and statement of one of the budgets")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="medialedger-budgets-") as folder:
        home = Path(folder)
        migrated_server(home)
        counted = measure(home)
    lines = _table(counted, budgets()) if given.parts is None else _parts(counted[given.parts])
    print("\n".join(lines))
    if given.write:
        FILE.write_text(written(counted))


if __name__ == "__main__":
    main()
