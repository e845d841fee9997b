"""The results of the trials of media programs on this machine. `medialedger doctor --media` writes them, and the search for a
program reads them.

A verdict applies to exactly the file that was tried, and to the libraries that it reported to be linked with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NAME: Final = "media-programs.json"
_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ProgramVerdict:
    """The result of the trials of a program. `faults` are sentences; it is empty if every trial passed."""

    faults: Sequence[str]

    @property
    def passed(self) -> bool:
        return not self.faults


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts that are stored in a home. A file that cannot be read counts as empty."""

    home: Path

    def of(self, program: Path, *, version: str) -> ProgramVerdict | None:
        stored = self._stored().get(str(program.resolve()))
        if not isinstance(stored, dict) or not isinstance(stored.get("faults"), list):
            return None
        same = {name: stored.get(name) for name in ("size", "mtime", "version")} == _identity(program, version)
        return ProgramVerdict([str(each) for each in stored["faults"]]) if same else None

    def note(self, program: Path, *, version: str, faults: Sequence[str]) -> None:
        """Store a verdict. Raises `OSError`."""
        verdicts = self._stored() | {str(program.resolve()): {**_identity(program, version), "faults": list(faults)}}
        written = self.home / f".{NAME}.{os.getpid()}"
        written.write_text(json.dumps(verdicts, indent=1) + "\n")
        written.chmod(0o600)
        written.replace(self.home / NAME)

    def _stored(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            path = self.home / NAME
            if path.stat().st_size <= _MOST:
                document = json.loads(path.read_text())
                return document if isinstance(document, dict) else {}
        return {}


def _identity(program: Path, version: str) -> dict[str, Any]:
    try:
        status = program.resolve().stat()
    except OSError:
        return {}
    return {"size": status.st_size, "mtime": status.st_mtime_ns, "version": version}
