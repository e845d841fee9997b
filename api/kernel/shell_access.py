"""The key of shells on this home: commands of a user that may read the home call the running product with it, as `shell:<user>`.

It is made at every start, in a file that only the owner of the home can read. The owner also has the master key and the
database, so the key grants nothing more.

A command sends it only to the process that has locked the home and announced its address. A process id alone proves nothing:
another process may have it by now, and a program of another user may have the port.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

PREFIX: Final = "shell:"
_KEY: Final = re.compile(r"(shell:[A-Za-z0-9._@-]{1,64}):([A-Za-z0-9_-]{43})")
_SECRET_BYTES: Final = 32
_LONGEST: Final = 10_000


@dataclass(frozen=True, slots=True)
class RunningProduct:
    """The product that runs on a home. `database` is the hash of an external database's address; empty for the embedded
    database. `network` is its network namespace: in another namespace the same address is another machine's."""

    pid: int
    url: str
    database: str
    secret: str = field(repr=False)
    network: str

    def key(self, actor: str) -> str:
        return f"{actor}:{self.secret}"


def database_hash(url: str | None) -> str:
    return "" if url is None else hashlib.sha256(url.strip().encode()).hexdigest()


def announce(home: Path, *, url: str, database: str | None) -> None:
    """Write the address of the product for commands on this home. Only the process that has locked the home does so:
    `medialedger up`. `url` must hold an IP address, because a name might later resolve to another host."""
    pid = os.getpid()
    if not _has_locked(pid, home):
        return
    running = RunningProduct(pid, url, database_hash(database), secrets.token_urlsafe(_SECRET_BYTES), _network())
    draft = home / f".running.{secrets.token_hex(8)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(json.dumps(asdict(running)))
    os.replace(draft, _file(home))


def holder_text(pid: int) -> str:
    """Return the text that a process writes into the file `lock` of its home: its id, for people, and a text that no other
    process ever has."""
    return f"{pid}\n{_identity(pid)}\n"


def withdraw(home: Path) -> None:
    """Delete the announcement of a product that no longer runs on this home, and its key."""
    for path in (_file(home), *home.glob(".running.*")):
        with suppress(OSError):
            path.unlink()


def running_product(home: Path) -> RunningProduct | None:
    """Return the product that runs on this home and in this network; None if there is none or the caller may not read it."""
    product = _announced(home)
    return product if product is not None and _has_locked(product.pid, home) and product.network == _network() else None


class ShellKeys:
    """Checks shell keys on the home of this process."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def user(self, key: str) -> str | None:
        """Return `shell:<user>`; None for a wrong key."""
        match = _KEY.fullmatch(key)
        running = None if match is None else _announced(self._home)
        if match is None or running is None or not hmac.compare_digest(match[2], running.secret):
            return None  # checked before costlier steps: anyone can send a wrong key
        return match[1] if _has_locked(running.pid, self._home) else None


def _file(home: Path) -> Path:
    return home / "running.json"


def _announced(home: Path) -> RunningProduct | None:
    """Return the announced product, which may have ended by now."""
    try:
        return _read(home)
    except (OSError, ValueError, RecursionError):
        return None


def _read(home: Path) -> RunningProduct:
    """Read the announcement. Raise ValueError for a file that other users can read or write, and for unexpected content."""
    with open(os.open(_file(home), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise ValueError("other users have access to it")
        content: Any = json.loads(file.read(_LONGEST))
    kinds = {"pid": int, "url": str, "database": str, "secret": str, "network": str}
    if not isinstance(content, dict) or {name: type(value) for name, value in content.items()} != kinds:
        raise ValueError("it has unexpected content")
    if not content["secret"].isascii():
        raise ValueError("it has unexpected content")
    return RunningProduct(**content)


def _has_locked(pid: int, home: Path) -> bool:
    """Return True if this process is alive and has locked the home. Trying to take the lock would disturb a starting process, so
    the content of the file is compared: it names the process that took the lock, and the lock ends with that process."""
    try:
        with open(os.open(home / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
            return file.read(_LONGEST) == holder_text(pid)
    except (OSError, ValueError):
        return False


def _identity(pid: int) -> str:
    """Return the start times of the machine and of the process, which differ if another process gets the same id. Raises
    `OSError`."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]  # starttime of proc(5)
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {started}"


def _network() -> str:
    status = os.stat("/proc/self/ns/net")
    return f"{status.st_dev}:{status.st_ino}"
