"""`medialedger destination` and `medialedger publish`, as a person calls them, with the workers of this process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from api.cli.main import main
from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import Mp4State
from domain.kernel.ids import new_id
from domain.kernel.ports import Invocation
from projections.publication.queries import PublicationQueries
from tests.api.asking import logged
from tests.support.engine import ENGINE, SOON, process
from workers.adapters.step_account import program_account

Migrated = tuple[str, str | None]
Said = tuple[int, str, str]
Call = Callable[..., Awaitable[Said]]
FILM = bytes(range(256)) * 400
MARKED = "sk-marked"
S3 = {"endpoint": "http://127.0.0.1:9", "bucket": "films", "accessKeyId": "AK", "secretAccessKey": MARKED}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The root of FILESYSTEM destinations."""
    root = tmp_path / "published"
    (root / "out").mkdir(parents=True)
    (root / "out").chmod(0o777)  # for the account of steps, which tries and uploads
    program_account(root / "out")
    return root


@pytest.fixture
def call(
    database_url: str, tmp_path: Path, published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))
    monkeypatch.setenv("MEDIALEDGER_FILESYSTEM_ROOT", str(published))
    monkeypatch.setenv("MEDIALEDGER_OUTBOUND_ALLOW", "127.0.0.0/8")
    (tmp_path / "master.key").write_bytes(bytes(32))
    (tmp_path / "master.key").chmod(0o600)

    async def called(*words: object, typed: str = "") -> Said:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = await asyncio.to_thread(main, [str(word) for word in words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


async def added(call: Call, name: str, target: str, **config: str) -> str:
    code, output, error = await call("destination", "add", name, "--target", target, "--config", "-", typed=json.dumps(config))
    assert (code, error) == (0, "")
    return output.split()[1]


async def film(inner: Core, *, mp4: Mp4State = Mp4State.AVAILABLE) -> UUID:
    """Add an Event that claims to have a film."""
    event = new_id()
    await inner.executor.execute(AddOrUpdateEvent(event, {}, mp4_state=mp4, new=True), invocation=Invocation.by("admin"))
    return event


async def test_destinations_are_added_tested_and_listed(inner: Core, call: Call, tmp_path: Path, published: Path) -> None:
    config = tmp_path / "s3.json"
    config.write_text(json.dumps(S3))
    config.chmod(0o600)
    words = ("destination", "add", "Archive", "--target", "s3", "--config", config)
    code, output, error = await call(*words)
    assert (code, error) == (0, "")
    archive = output.split()[1]
    share = await added(call, "Share", "FILESYSTEM", path="out")
    code, refused, error = await call("destination", "test", "Archive")
    assert (code, refused) == (1, "")
    assert error.startswith("medialedger: action required: ")
    tested = await call("destination", "test", share)
    assert tested == (0, "Share is active: the target was reached with this configuration\n", "")
    assert list((published / "out").iterdir()) == []
    table = (await call("destination", "list"))[1]
    assert [line.split() for line in table.splitlines()[1:]] == [
        [archive, "Archive", "S3", "no"],
        [share, "Share", "FILESYSTEM", "yes"],
    ]
    listed = (await call("destination", "list", "--json"))[1]
    assert json.loads(listed)[1] == {"id": share, "name": "Share", "target": 8, "targetString": "FILESYSTEM", "active": True}
    config.chmod(0o644)
    code, _, open_to_others = await call(*words)
    assert code == 1
    assert "chmod 600" in open_to_others
    shown = (output, error, table, listed, open_to_others, await logged(inner))
    assert not [text for text in shown if MARKED in str(text)]


async def test_an_invalid_destination_is_refused_with_a_reason(inner: Core, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for target, config, reason in (
        ("S3", "{}", "destinationJson.bucket: "),
        ("S3", "[]", "destinationJson: "),
        ("SFTP", '{"path": "../up"}', "destinationJson.path: may not contain `..`"),
    ):
        code, output, error = await call("destination", "add", "Archive", "--target", target, "--config", "-", typed=config)
        assert (code, output) == (1, "")
        assert reason in error
    assert (await call("destination", "test", "nowhere"))[2] == "medialedger: the destination 'nowhere' does not exist\n"
    monkeypatch.delenv("MEDIALEDGER_FILESYSTEM_ROOT")
    code, _, error = await call("destination", "add", "Share", "--target", "FILESYSTEM", "--config", "-", typed='{"path": "out"}')
    assert code == 1
    assert "MEDIALEDGER_FILESYSTEM_ROOT" in error
    for words in (("Archive", "--target", "FTP"), (" ", "--target", "S3"), ("x" * 601, "--target", "S3")):
        assert (await call("destination", "add", *words, "--config", "-"))[0] == 2
    assert not [event for event in await logged(inner) if event.topic.startswith("destination.")]


async def test_an_impossible_publication_is_refused_with_a_reason(inner: Core, call: Call) -> None:
    await added(call, "Share", "FILESYSTEM", path="out")
    for event, name, text, reason in (
        (new_id(), "Share", "{}", "no event"),
        (await film(inner, mp4=Mp4State.NONE), "Share", "{}", "has no MP4 file that is available"),
        (await film(inner), "Nowhere", "{}", "the destination 'Nowhere' does not exist"),
        (await film(inner), "Share", '{"title": 1}', "publications[0].publicationJson.title: must be a string"),
    ):
        code, output, error = await call("publish", event, name, "--text", "-", typed=text)
        assert (code, output) == (1, "")
        assert reason in error
    code, output, error = await call("publish", await film(inner), "Share")
    assert (code, output.split()[0]) == (1, "publication")
    assert error == "medialedger: the publication is FailedDestination: the destination is not active\n"


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, media_root: Path, published: Path) -> AsyncIterator[Core]:
    roles = (*ENGINE, "outcomes")
    async with process(database_url, migrated[1], media_root=media_root, roles=roles, filesystem_root=published) as inner:
        yield inner


async def test_a_film_is_published_and_followed(engine: Core, call: Call, media_root: Path, published: Path) -> None:
    await added(call, "Share", "FILESYSTEM", path="out")
    assert (await call("destination", "test", "Share"))[0] == 0
    event = await film(engine)
    (media_root / str(event)).mkdir()
    (media_root / str(event)).chmod(0o755)
    (media_root / str(event) / f"{event}.mp4").write_bytes(FILM)
    (media_root / str(event) / f"{event}.mp4").chmod(0o644)
    code, output, error = await call("publish", event, "Share", "--follow", "--text", "-", typed='{"title": "Final"}')
    assert (code, error) == (0, "")
    [file] = (published / "out").iterdir()
    assert file.read_bytes() == FILM
    assert output.splitlines()[-2:] == ["Completed", file.name]
    assert "publication_upload of admin is completed" in output
    (media_root / str(event) / f"{event}.mp4").unlink()
    code, output, error = await call("publish", event, "Share")
    assert (code, error) == (0, "")
    publication, job = output.splitlines()[0].split()[1], output.splitlines()[1].split()[5].rstrip(":")
    assert output.splitlines()[1].endswith(f"`medialedger jobs watch {job}` shows its progress")
    publication_row = await PublicationQueries(engine.database).find(UUID(publication))
    assert publication_row is not None
    assert (publication_row.job, publication_row.client) == (int(job), "admin")


async def test_an_interrupted_command_leaves_the_upload(inner: Core, database_url: str, call: Call, tmp_path: Path) -> None:
    """No worker is running, so the command waits."""
    await added(call, "Share", "FILESYSTEM", path="out")
    assert (await call("destination", "test", "Share"))[0] == 0
    event = await film(inner)
    words = ("publish", str(event), "Share", "--follow")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "api.cli.main", *words, stdout=pipe, stderr=pipe, env=os.environ
    )
    try:
        async with asyncio.timeout(SOON):
            assert process.stdout is not None
            publication = UUID((await process.stdout.readline()).decode().split()[1])
            assert b"publication_upload of admin is queued" in await process.stdout.readline()
            process.send_signal(signal.SIGINT)
            error = (await process.communicate())[1].decode()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 130
    row = await PublicationQueries(inner.database).find(publication)
    assert row is not None
    assert row.state.name == "Processing"
    assert error == f"medialedger: the upload continues; `medialedger jobs watch {row.job}` shows its progress\n"
