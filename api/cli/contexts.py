"""Contexts: the installations that a person works with, by name, with their addresses and API keys. The file is readable by its
owner only."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from api.wiring.startup import StartError

_OPEN: Final = 0o077


@dataclass(frozen=True, slots=True)
class Context:
    """An installation. `key` is its API key; None where it needs none."""

    url: str
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Contexts:
    """All of them. `used` is the name of the one that commands go to when nothing else is said."""

    all: Mapping[str, Context]
    used: str | None = None

    def named(self, name: str) -> Context:
        if name not in self.all:
            raise StartError(f"there is no context {name}; there are {', '.join(self.all) or 'none yet'}")
        return self.all[name]

    def having(self, name: str, context: Context) -> Contexts:
        """The first one is used at once."""
        return Contexts({**self.all, name: context}, self.used if self.all else name)

    def using(self, name: str | None) -> Contexts:
        if name is not None:
            self.named(name)
        return replace(self, used=name)

    def without(self, name: str) -> Contexts:
        self.named(name)
        return Contexts({one: found for one, found in self.all.items() if one != name}, None if self.used == name else self.used)


def contexts_file(environment: Mapping[str, str]) -> Path:
    given = environment.get("XDG_CONFIG_HOME", "")
    base = Path(given) if given.startswith("/") else Path(environment.get("HOME") or "~").expanduser() / ".config"
    return base / "medialedger" / "contexts.json"


def read_contexts(path: Path) -> Contexts:
    """None are there where there is no file."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read()
    except FileNotFoundError:
        return Contexts({})
    except OSError as error:
        raise StartError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if mode & _OPEN:
        raise StartError(f"{path} has API keys and is open to other users (mode {mode:04o}): chmod 600 {path}")
    try:
        return _parsed(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StartError(f"{path} is damaged; `medialedger context add` makes a new one when it is gone") from None


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Whole or not at all, mode 0600."""
    document = {"used": contexts.used, "contexts": {name: asdict(one) for name, one in contexts.all.items()}}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=".contexts", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(json.dumps(document, indent=2) + "\n")
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise StartError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None


def _parsed(document: Any) -> Contexts:
    found = {str(name): Context(str(one["url"]), one.get("key")) for name, one in document["contexts"].items()}
    used = document.get("used")
    return Contexts(found, used if used in found else None)
