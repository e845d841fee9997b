"""Functions that wait for other processes, always for a condition and never for a fixed time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[2]


def until(condition: Callable[[], object], *, seconds: float = 120) -> None:
    deadline = monotonic() + seconds
    pause = threading.Event()
    for length in pauses():
        if condition():
            return
        assert monotonic() < deadline, f"not within {seconds} s"
        pause.wait(length)


def pauses() -> Iterator[float]:
    """Yield increasing pauses in seconds between checks of a condition, because each check takes the processor from the awaited
    process."""
    length = 0.005
    while True:
        yield length
        length = min(1.2 * length, 0.2)


def python(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start this interpreter as a process that finds the product. It sees only the given MEDIALEDGER_… variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEDIALEDGER_")}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=inherited | {"PYTHONPATH": str(ROOT)} | dict(environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
