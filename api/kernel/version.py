"""The version of the product."""

from __future__ import annotations

import re
from functools import cache


@cache
def product_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # a third of the imports of a short command

    try:
        return version("medialedger")
    except PackageNotFoundError:
        return "0+source"


def four_part(version: str) -> str:
    """Return the numbers at the start of a version as four parts: `0.1.0` becomes `0.1.0.0`."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    parts = numbers.group().split(".") if numbers else []
    return ".".join((parts + ["0"] * 4)[:4])
