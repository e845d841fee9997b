"""Homes whose database server has been made before: a copy takes a fraction of the time of a first start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from workers.adapters.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a server that has run and was stopped."""
    home = tmp_path_factory.mktemp("initialised")
    postgres = EmbeddedPostgres(home)
    postgres.start()
    postgres.stop()
    return home


def copied(initialised: Path, home: Path) -> Path:
    subprocess.run(["cp", "-a", f"{initialised}/.", str(home)], check=True)
    return home
