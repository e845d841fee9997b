"""`medialedger log` and `medialedger audit verify --file`, as a person calls them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from api.cli.main import main
from api.wiring.core import core
from projections.log.limits import LogLimits
from projections.log.statement import WriteSet
from tests.projections.log.helpers import event, rows
from tests.support import feeding
from tests.support.feeding import as_superuser
from tests.support.postgres import new_database

Said = Callable[..., "asyncio.Future[tuple[int, str, str]]"]


@pytest.fixture
async def log(postgres: str, migrated_template: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The address of a log of 9 events in partitions of 7."""
    with new_database(postgres, "log_command", template=migrated_template) as url:
        as_superuser(url, "SELECT log_make_partitions(7, 7)")
        wired = core(url, role="medialedger_app", limits=LogLimits(partition=7))
        await wired.start()
        for stream in ("a", "b", "c"):
            await wired.appender.append(WriteSet([event(f"test:{stream}", version) for version in (1, 2, 3)]))
        await wired.stop()
        monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", url)
        yield url


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command and return its exit code and its output."""

    async def run(*line: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, line)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run  # type: ignore[return-value]


async def test_a_partition_is_listed_sealed_exported_and_verified(log: str, call: Said, tmp_path: Path) -> None:
    code, out, _ = await call("log", "partitions")
    listed = out.splitlines()
    assert code == 0
    assert [[*line.split()[:3], line.split()[-2]] for line in listed[1:]] == [["1", "7", "7", "full"], ["8", "14", "2", "open"]]
    path = tmp_path / "events-1.gz"
    code, _, err = await call("log", "export", "1", "--output", str(path))
    assert (code, err) == (1, "medialedger: the partition from position 1 is not sealed; run `medialedger log seal` first\n")
    [(chain_hash,)] = rows(log, "SELECT encode(chain_hash, 'hex') FROM commits WHERE number = 3")
    code, out, _ = await call("log", "seal")
    assert (code, chain_hash in out) == (0, True)
    assert await call("log", "seal") == (0, "there is no full partition without a seal\n", "")
    code, out, _ = await call("log", "export", "1", "--output", str(path))
    assert (code, out) == (0, f"{path}: events 1 to 9, {path.stat().st_size} bytes\nchain hash {chain_hash}\n")
    code, out, _ = await call("audit", "verify", "--file", str(path), "--chain-hash", chain_hash)
    assert (code, out.startswith(f"{path} is whole: events 1 to 9 of log ")) == (0, True)
    assert await call("audit", "verify", "--since-seal") == (
        0,
        "the log is intact after position 9, where the last seal ends: 0 events\n",
        "",
    )


async def test_an_invalid_request_is_one_line(log: str, call: Said, tmp_path: Path) -> None:
    await call("log", "seal")
    path = tmp_path / "events-1.gz"
    code, _, err = await call("log", "export", "2", "--output", str(path))
    assert (code, err) == (1, "medialedger: no partition begins at position 2; `medialedger log partitions` lists them\n")
    code, _, err = await call("log", "export", "1", "--output", str(tmp_path / "absent" / "events-1.gz"))
    assert (code, err.count("\n"), "cannot be written: No such file or directory" in err) == (1, 1, True)
    code, _, err = await call("audit", "verify", "--file", str(path))
    assert (code, err) == (1, f"medialedger: {path} cannot be read: No such file or directory\n")
    assert (await call("log", "export", "1", "--output", str(path)))[0] == 0
    code, _, err = await call("log", "export", "1", "--output", str(path))
    assert (code, err) == (1, f"medialedger: {path} already exists and is not overwritten\n")
    code, out, _ = await call("audit", "verify", "--file", str(path), "--chain-hash", "00" * 32)
    assert (code, "is whole, but its chain hash is" in out) == (3, True)
    path.write_bytes(path.read_bytes()[:-20])
    code, out, _ = await call("audit", "verify", "--file", str(path))
    assert (code, out.startswith(f"{path}: it cannot be read after line")) == (3, True)


async def test_a_damaged_partition_is_not_sealed(log: str, call: Said) -> None:
    as_superuser(log, "UPDATE events SET topic = 'test.edited' WHERE position = 5")
    code, _, err = await call("log", "seal")
    assert (code, err.startswith("medialedger: the log is damaged at position 4: the stored bytes")) == (1, True)


async def test_a_replay_says_whether_the_views_show_what_the_events_give(
    postgres: str, migrated_template: str, monkeypatch: pytest.MonkeyPatch, call: Said
) -> None:
    with new_database(postgres, "replay_command", template=migrated_template) as url:
        wired = core(url, role="medialedger_app")
        await wired.start()
        key = await feeding.event(wired, 1, title="Final")
        await feeding.event(wired, 2, title="Semi-final")
        await wired.stop()
        monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", url)
        single, every = ("--id", str(key).upper()), ("--all",)
        same = f"event:{key}: 1 event gives what the views show\n"
        assert await call("audit", "replay", "--aggregate", "event", *single) == (0, same, "")
        code, out, _ = await call("audit", "replay", "--aggregate", "event", *every)
        assert (code, out) == (0, "2 events of 2 aggregates give what the views show\n")
        as_superuser(url, f"UPDATE event_view SET title = 'Other' WHERE id = '{key}'")
        differs = f"event:{key}, 1 events: event_view.title differs\n"
        assert await call("audit", "replay", "--aggregate", "event", *single) == (3, differs, "")
        code, out, _ = await call("audit", "replay", "--aggregate", "event", *every)
        assert (code, out) == (3, f"{differs}1 of 2 aggregates differ\n")
        for kind, unknown in (("event", "7"), ("film", "7")):
            code, out, error = await call("audit", "replay", "--aggregate", kind, "--id", unknown)
            assert (code, out) == (1, ""), error
            assert len(error.splitlines()) == 1
