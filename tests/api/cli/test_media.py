"""`medialedger media ingest`, as a person calls it, with the workers of another process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from api.cli.main import main
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState
from projections.job.queue import JobNumberSequence
from tests.support.engine import ENGINE, Engine, once, process
from tests.support.s3 import client, new_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.sources.numbered_frames import film, numbers
from workers.ports.buckets import BucketAddress

Migrated = tuple[str, str | None]
Said = tuple[int, str, str]
Call = Callable[..., Awaitable[Said]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "media"
    root.mkdir()
    root.chmod(0o755)  # for the account of steps
    return root


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, root: Path) -> AsyncIterator[Engine]:
    async with process(database_url, migrated[1], media_root=root, roles=(*ENGINE, "outcomes")) as inner:
        yield Engine(inner, JobNumberSequence(inner.database))


@pytest.fixture
def call(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))

    async def called(*words: object) -> Said:
        code = await asyncio.to_thread(main, ["media", *map(str, words)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


async def test_a_file_becomes_a_public_film(call: Call, engine: Engine, root: Path, tmp_path: Path) -> None:
    film(tmp_path / "final cut.mkv", frames=50)
    code, output, error = await call("ingest", tmp_path / "final cut.mkv", "--title", "The film", "--publish")
    assert (code, error) == (0, "")
    event_id = output.splitlines()[0].removeprefix("Event ")
    assert "vod_ingest" in output
    assert output.splitlines()[-2:] == [
        f"{root}/{event_id}/clear/master.m3u8",
        f"http://127.0.0.1:8080/media/{event_id}/clear/master.m3u8",
    ]
    assert numbers(root / event_id / "clear/master.m3u8") == list(range(50))
    assert not (root / "incoming" / event_id).exists()
    event = await engine.inner.streams.load(MediaEvent.stream(event_id))
    assert isinstance(event, MediaEvent)
    assert (event.details.title, event.details.state) == ("The film", EventState.VOD_PUBLIC), "when the address is printed"


def _folders(bucket: BucketAddress) -> set[str]:
    """The first folders below the media root."""
    objects = client(bucket).list_objects_v2(Bucket=bucket.bucket).get("Contents", ())
    return {each["Key"].removeprefix(f"{bucket.prefix}/").split("/")[0] for each in objects}


@pytest.mark.long
async def test_a_file_becomes_a_film_in_a_bucket(
    call: Call, database_url: str, migrated: Migrated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moto_endpoint: str
) -> None:
    bucket = new_bucket(moto_endpoint)
    keys = {"S3_ACCESS_KEY": bucket.access_key, "S3_SECRET_KEY": bucket.secret_key}
    for name, value in {"MEDIA_ROOT": bucket, "S3_ENDPOINT": bucket.endpoint, **keys}.items():
        monkeypatch.setenv(f"MEDIALEDGER_{name}", str(value))
    film(tmp_path / "film.mkv", frames=25)
    async with process(database_url, migrated[1], media_root=tmp_path / "work", media_bucket=bucket, roles=(*ENGINE, "outcomes")):
        code, output, error = await call("ingest", tmp_path / "film.mkv", "--title", "The film")

        async def tidy() -> bool:
            return ".jobs" not in _folders(bucket)

        await once(tidy)  # that is done after the end of the job is told
    assert (code, error) == (0, "")
    event_id = output.splitlines()[0].removeprefix("Event ")
    assert output.splitlines()[-1] == f"{bucket}/{event_id}/clear/master.m3u8"
    assert _folders(bucket) == {event_id, ".published"}
    objects = client(bucket).list_objects_v2(Bucket=bucket.bucket)["Contents"]
    assert f"{bucket.prefix}/{event_id}/metadata.json" in {each["Key"] for each in objects}


async def test_what_cannot_be_packaged_is_said_in_one_line(call: Call, engine: Engine, root: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none.mp4"
    assert await call("ingest", missing, "--title", "x") == (1, "", f"medialedger: the file {missing} does not exist\n")
    (root / "empty.mp4").write_bytes(b"")
    (root / "empty.mp4").chmod(0o644)
    code, _, error = await call("ingest", root / "empty.mp4", "--title", "x")
    assert code == 1
    assert error.startswith("medialedger: the task convert failed: ffprobe: empty.mp4")
    assert (root / "empty.mp4").exists(), "it was there before"


@pytest.mark.parametrize(
    ("name", "sentence"), [("folder", "is a directory"), ("pipe", "is not a regular file"), ("gone", "does not exist")]
)
async def test_an_unreadable_file_is_refused_before_anything_is_created(
    call: Call, tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    code, output, error = await call("ingest", tmp_path / name, "--title", "x")
    assert (code, output) == (1, "")
    assert sentence in error
    assert error.count("\n") == 1
