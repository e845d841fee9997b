"""Free space: the log messages when it gets low, the metric, and the cause that the breaker of the database names."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from api.cli.main import main
from api.wiring.core import Core
from api.wiring.parts import directories
from api.wiring.providers import free_space
from api.wiring.settings import Settings
from projections.kernel.sizes import MIB
from tests.projections.log.helpers import until
from workers.adapters.free_space import FreeSpace, free_bytes

HOME, MEDIA = Path("/home"), Path("/media")


def test_what_gets_low_is_logged_once_and_again_after_it_was_enough(caplog: pytest.LogCaptureFixture) -> None:
    free = {HOME: 1000 * MIB, MEDIA: 1000 * MIB}
    space = FreeSpace({"home": HOME, "media": MEDIA}, registry=CollectorRegistry(), free=free.__getitem__)
    with caplog.at_level(logging.WARNING):
        for now in (1000, 500, 400, 1000, 100):
            free[HOME] = now * MIB
            space.look()
    assert [record.getMessage() for record in caplog.records] == [
        "the disk of the home directory /home is nearly full: 500.0 MiB free",
        "the disk of the home directory /home is nearly full: 100.0 MiB free",
    ]


def test_the_directory_without_space_is_named() -> None:
    free = {HOME: 1000 * MIB, MEDIA: 1000 * MIB}
    space = FreeSpace({"home": HOME, "media": MEDIA}, registry=CollectorRegistry(), free=free.__getitem__)
    assert space.shortage() == ""
    free[MEDIA] = 4096
    assert space.shortage() == "no space left on /media (4.0 KiB free)"


def test_the_metric_is_what_is_free_at_the_scrape() -> None:
    free = {HOME: 1000}
    registry = CollectorRegistry()
    FreeSpace({"home": HOME}, registry=registry, free=free.__getitem__)
    for free[HOME] in (1000, 17):
        assert registry.get_sample_value("medialedger_free_bytes", {"directory": "home"}) == free[HOME]


def test_a_directory_that_is_not_there_yet_has_what_its_parent_has(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") > 0


async def test_it_looks_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    free = {HOME: 1000 * MIB}
    space = FreeSpace({"home": HOME}, registry=CollectorRegistry(), free=free.__getitem__, every=0.0)
    await space.start()
    free[HOME] = 0
    await until(lambda: "nearly full" in caplog.text)
    await space.stop()


async def test_the_breaker_of_a_process_names_the_cause(inner: Core, tmp_path: Path) -> None:
    space = free_space(inner.database, directories(Settings.from_env({"MEDIALEDGER_HOME": str(tmp_path)})), registry=inner.registry)
    assert inner.database.availability.explain == space.shortage
    for directory in ("home", "media", "database"):
        assert inner.registry.get_sample_value("medialedger_free_bytes", {"directory": directory})


@pytest.mark.parametrize("command", ["up", "migrate", "client add a --role admin"])
def test_a_database_that_does_not_fit_is_not_begun(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("api.cli.run.database.free_bytes", {tmp_path / "home": 20 * MIB}.__getitem__)
    assert main(command.split()) == 1
    assert capsys.readouterr().err.endswith(f"medialedger: {tmp_path / 'home'} has 20.0 MiB free; a new database needs 128.0 MiB\n")
    assert not (tmp_path / "home" / "postgres").exists()
