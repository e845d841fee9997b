"""`medialedger settings`: the settings with their values, origins and meanings."""

from __future__ import annotations

from argparse import Namespace

from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    rows = [("NAME", "VALUE", "FROM", "MEANING")]
    rows += [(line.name, line.value or "-", line.origin, line.meaning) for line in settings.listing()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]))
    return 0
