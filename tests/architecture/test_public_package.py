"""The package `medialedger` is what other packages build on: its names and their signatures are frozen in a file.

A line that is new is added to the file, and to docs/reference/plugins.md. A line that changes or goes breaks the packages of
others: that waits for the next major version."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, get_args

from pydantic import BaseModel

from tests.architecture.sources import ROOT

MODULES = ("encoders", "targets", "workflows")
FROZEN = ROOT / "tests" / "golden" / "medialedger.txt"
PAGE = ROOT / "docs" / "reference" / "plugins.md"


def published() -> list[str]:
    """Without the addresses of functions in memory."""
    return [re.sub(r" at 0x[0-9a-f]+", "", line) for line in _lines()]


def _lines() -> Iterator[str]:
    for module in MODULES:
        loaded = import_module(f"medialedger.{module}")
        for name in sorted(loaded.__all__):
            yield from described(f"{module}.{name}", getattr(loaded, name))


def described(name: str, what: Any) -> Iterator[str]:
    """A line for what it is, and one for each public member."""
    if not inspect.isclass(what):
        yield f"{name} = {sorted(map(str, get_args(what))) or what}"
        return
    yield f"{name}{signature(what) if constructed(what) else ''}"
    if is_dataclass(what):
        yield from (f"{name}.{one.name}: {one.type}" for one in fields(what))
    elif issubclass(what, BaseModel):
        yield from (f"{name}.{key}: {one.annotation}" for key, one in what.model_fields.items())
    for key, member in sorted(vars(what).items()):
        if inspect.isfunction(member) and (not key.startswith("_") or key == "__call__"):
            yield f"{name}.{key}{signature(member)}"
        elif isinstance(member, property) and not key.startswith("_"):
            yield f"{name}.{key}: property"
    for key, kind in sorted(vars(what).get("__annotations__", {}).items()):
        if not is_dataclass(what) and not issubclass(what, BaseModel) and not key.startswith("_"):
            yield f"{name}.{key}: {kind}"


def constructed(what: type) -> bool:
    """Whether others make instances of it: a port has none, and a library's constructor is the library's."""
    return "__init__" in vars(what) and not getattr(what, "_is_protocol", False)


def signature(what: Any) -> str:
    return str(inspect.signature(what)).replace("self, ", "").replace("(self)", "()")


def test_names_and_signatures_are_as_they_were() -> None:
    assert published() == FROZEN.read_text(encoding="utf-8").splitlines()


def test_every_name_is_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = {name for module in MODULES for name in import_module(f"medialedger.{module}").__all__}
    assert sorted(name for name in names if f"`{name}`" not in page) == []
