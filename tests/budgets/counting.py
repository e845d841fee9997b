"""Counters that give the same result on every machine: calls of Python functions, SQL statements, bytes of write-ahead log, and
memory."""

from __future__ import annotations

import asyncio
import re
import selectors
import threading
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from cProfile import Profile
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Final

import psycopg

_ROOT: Final = Path(__file__).parents[2]
_HERE: Final = str(Path(__file__).parent)
_INLINED: Final = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""Functions of Python 3.11 that Python 3.12 does not call."""
_FILES_OF_THE_LOOP: Final = ("base_events.py", "events.py", "selector_events.py", "unix_events.py", "transports.py")
_LOOP: Final = (*(str(Path(asyncio.__file__).parent / name) for name in _FILES_OF_THE_LOOP), str(selectors.__file__))
"""The files of the event loop. The product uses uvloop, which is not written in Python."""
_STATEMENT: Final = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)", re.DOTALL)
_RECORD: Final = "\x1e"
_OWN: Final = "counting"
_SEGMENT, _PAGE, _FIRST_HEADER, _HEADER = 16 * 1024 * 1024, 8192, 40, 24

SERVER_SETTINGS: Final[Mapping[str, str]] = {
    "log_statement": "all",
    "log_parameter_max_length": "0",
    "log_line_prefix": f"{_RECORD}%a|",
    "autovacuum": "off",
    "checkpoint_timeout": "1d",
    "full_page_writes": "off",
    "fsync": "off",
}
"""The settings of the server: its log has every statement, and nothing writes but the product."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The results of the counters. Calls are by function, and statements by purpose of the connection and text."""

    calls: Mapping[str, float]
    statements: Mapping[str, float]
    wal_bytes: float
    peak_bytes: int
    wakeups: float

    def without(self, other: Counts) -> Counts:
        return Counts(
            {name: times - other.calls.get(name, 0) for name, times in self.calls.items()},
            {text: times - other.statements.get(text, 0) for text, times in self.statements.items()},
            self.wal_bytes - other.wal_bytes,
            self.peak_bytes,
            self.wakeups - other.wakeups,
        )

    def times(self, factor: float) -> Counts:
        return Counts(
            {name: factor * times for name, times in self.calls.items()},
            {text: factor * times for text, times in self.statements.items()},
            factor * self.wal_bytes,
            self.peak_bytes,
            factor * self.wakeups,
        )


class ServerCounter:
    """Counts at the server: the statements in its log, and the bytes of its write-ahead log."""

    def __init__(self, url: str, log: Path) -> None:
        self._log = log
        self.connection = psycopg.connect(url, autocommit=True, application_name=_OWN)

    def close(self) -> None:
        self.connection.close()

    @property
    def mark(self) -> int:
        """The present end of the server's log."""
        return self._log.stat().st_size

    def statements(self, mark: int) -> Counter[str]:
        """Return the statements since the mark."""
        with self._log.open("rb") as file:
            file.seek(mark)
            records = file.read().decode().split(_RECORD)
        totals: Counter[str] = Counter()
        for record in records:
            purpose, _, rest = record.partition("|")
            match = _STATEMENT.match(rest)
            if match is not None and purpose != _OWN:
                totals[f"{purpose.removeprefix('medialedger').strip() or 'pool'}: {' '.join(match[1].split())}"] += 1
        return totals

    @property
    def wal(self) -> int:
        """The bytes of all records of the write-ahead log so far, without the headers of its pages."""
        row = self.connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").fetchone()
        assert row is not None
        position = int(row[0])
        return position - (position // _PAGE + 1) * _HEADER - (position // _SEGMENT + 1) * (_FIRST_HEADER - _HEADER)


def function_name(code: CodeType) -> str:
    """Return the name of a function with its module."""
    path = Path(code.co_filename)
    parts = path.with_suffix("").parts
    if "site-packages" in parts:
        parts = parts[parts.index("site-packages") + 1 :]
    elif path.is_relative_to(_ROOT):
        parts = path.relative_to(_ROOT).with_suffix("").parts
    else:
        parts = parts[next((place + 1 for place, part in enumerate(parts) if part.startswith("python3")), -1) :]
    return f"{'.'.join(part for part in parts if part != '__init__')}.{code.co_qualname}"


def _is_counted(code: CodeType) -> bool:
    return code.co_name not in _INLINED and code.co_filename not in _LOOP and not code.co_filename.startswith(_HERE)


class CallCounter:
    """Counts the calls of Python functions in the thread that starts it, and in threads that begin after it was made. A coroutine
    that goes on counts as a call."""

    def __init__(self) -> None:
        self._in_threads: Counter[CodeType] = Counter()
        self._profile: Profile | None = None
        threading.setprofile(self._called)

    def start(self) -> None:
        self._in_threads.clear()
        self._profile = Profile(builtins=False)
        self._profile.enable()

    def stop(self) -> Counter[str]:
        assert self._profile is not None
        self._profile.disable()
        called, self._profile = self._profile, None
        totals: Counter[str] = Counter()
        for entry in called.getstats():
            if isinstance(entry.code, CodeType) and _is_counted(entry.code):
                totals[function_name(entry.code)] += entry.callcount
        for code, times in self._in_threads.items():
            if _is_counted(code):
                totals[function_name(code)] += times
        return totals

    def __enter__(self) -> None:
        """Stop counting for a moment."""
        assert self._profile is not None
        self._profile.disable()

    def __exit__(self, *_: object) -> None:
        assert self._profile is not None
        self._profile.enable()

    def end(self) -> None:
        threading.setprofile(None)

    def _called(self, frame: Any, event: str, _: object) -> None:
        if event == "call" and self._profile is not None:
            self._in_threads[frame.f_code] += 1


class PeakCounter:
    """Measures how much memory is allocated at one time, beyond what was before."""

    def __init__(self) -> None:
        self._before = 0

    def start(self) -> None:
        tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]

    def stop(self) -> int:
        peak = tracemalloc.get_traced_memory()[1] - self._before
        tracemalloc.stop()
        return peak
