"""The home of a PostgreSQL server that has run and was stopped: a copy takes a fraction of the time of a first start."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest

from workers.adapters.embedded_postgres import EmbeddedPostgres


def made_once(run: Path, name: str, *, make: Callable[[Path], None]) -> Path:
    """A folder below that of the run, which the first process that needs it makes, for all of them. The others wait for it."""
    folder = run / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            draft = folder.with_suffix(".part")
            rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=0o700)  # as the product makes a home; a copy has the same mode and access control list
            make(draft)
            draft.rename(folder)
    return folder


def _server(home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    try:
        postgres.start()
    finally:
        postgres.stop()


@pytest.fixture(scope="session")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory.getbasetemp(), "initialised", make=_server)


def copied(initialised: Path, home: Path) -> Path:
    subprocess.run(["cp", "-a", f"{initialised}/.", str(home)], check=True)
    return home
