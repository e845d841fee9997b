"""Which version of the product this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def product_version() -> str:
    try:
        return version("medialedger")
    except PackageNotFoundError:
        return "0+source"
