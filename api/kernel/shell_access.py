"""The key of the home's own shells: commands of who may read the home call the running product with it, as `shell:<user>`.

It is made at every start, in a file that only the owner of the home can read. Who can read that has the master key and the database
as well, so the key opens nothing that is not open already.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

PREFIX: Final = "shell:"
_KEY: Final = re.compile(r"(shell:[A-Za-z0-9._@-]{1,64}):([A-Za-z0-9_-]{43})")
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Running:
    """The product that runs on a home. `database` is the hash of an external database's address; empty for the embedded one."""

    pid: int
    url: str
    database: str
    secret: str = field(repr=False)

    def key(self, actor: str) -> str:
        return f"{actor}:{self.secret}"

    @property
    def lives(self) -> bool:
        return Path(f"/proc/{self.pid}").exists()


def database_hash(url: str | None) -> str:
    return "" if url is None else hashlib.sha256(url.strip().encode()).hexdigest()


def announce(home: Path, *, url: str, database: str | None) -> None:
    """Tell commands on this home where the product is. Only the process that has locked the home does: `medialedger up`."""
    pid = os.getpid()
    if _locked_by(home) != pid:
        return
    running = Running(pid, url, database_hash(database), secrets.token_urlsafe(_SECRET_BYTES))
    draft = home / f".running.{pid}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(json.dumps(asdict(running)))
    os.replace(draft, _file(home))


def running_product(home: Path) -> Running | None:
    """None where none runs on this home, or where the caller may not know."""
    try:
        found = Running(**json.loads(_file(home).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.lives and _locked_by(home) == found.pid else None


class ShellKeys:
    """Finds the user of such a key, on the home of this process."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def user(self, key: str) -> str | None:
        """`shell:<user>`, or None for a key that is not right."""
        found = _KEY.fullmatch(key)
        running = None if found is None else running_product(self._home)
        if found is None or running is None or not hmac.compare_digest(found[2], running.secret):
            return None
        return found[1]


def _file(home: Path) -> Path:
    return home / "running.json"


def _locked_by(home: Path) -> int | None:
    try:
        return int((home / "lock").read_text())
    except (OSError, ValueError):
        return None
