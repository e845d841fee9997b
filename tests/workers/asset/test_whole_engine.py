"""Assets from the request to the file, with the real ffmpeg, and what remains after faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from domain.asset.aggregate import Asset
from tests.api.asking import topics
from tests.support.engine import ENGINE, once
from tests.support.sources.numbered_frames import film, numbers, probed
from tests.workers.asset.producing import Production, production

Migrated = tuple[str, str | None]
NOT_AWAITED = "the asset of the job was deleted, or another job makes it"
H264 = ("-c:v", "libx264", "-g", "30", "-sc_threshold", "0", "-pix_fmt", "yuv420p")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    made = tmp_path_factory.mktemp("source") / "film.mp4"
    film(made, *H264)
    return made.read_bytes()


@pytest.fixture
async def made(database_url: str, migrated: Migrated, media_root: Path) -> AsyncIterator[Production]:
    async with production(database_url, migrated[1], media_root) as made_production:
        yield made_production


@pytest.fixture
async def event(made: Production, source: bytes) -> str:
    key = await made.event()
    made.source(key).write_bytes(source)
    return key


async def test_an_image_is_the_frame_of_its_time(made: Production, event: str) -> None:
    picture = await made.made("image", eventId=event, name="Goal", time="00:00:01.500", filename="goal")
    assert picture == made.root / event / "assets/goal.jpg"
    assert numbers(picture) == [37]
    [asset] = (await made.http.get("/api/asset/", params={"eventId": event})).json()
    assert await topics(made.inner, f"asset:{asset['id']}") == ["asset.requested", "asset.completed"]
    loaded = await made.inner.streams.load(f"asset:{asset['id']}")
    assert isinstance(loaded, Asset)
    assert loaded.size == picture.stat().st_size


async def test_a_clip_has_the_frames_of_its_times(made: Production, event: str) -> None:
    clip = {"eventId": event, "start": "00:00:01", "end": "00:00:02"}
    video = await made.made("video", clip=clip, name="Attack", frameAccurate=True)
    assert numbers(video) == list(range(25, 50))
    copied = await made.made("video", clip=clip, name="Attack", mezzanine=1)
    assert copied.name.startswith("Attack-")
    assert set(range(25, 50)) <= set(numbers(copied))


async def test_a_date_time_counts_from_the_start_of_the_stream(made: Production, event: str) -> None:
    (made.root / event / "metadata.json").write_text('{"startTime": "2031-01-02T12:00:00Z"}')
    picture = await made.made("image", eventId=event, name="Goal", time="2031-01-02T13:00:01.500+01:00")
    assert numbers(picture) == [37]


async def test_a_gif_shows_its_clip(made: Production, event: str) -> None:
    clip = {"eventId": event, "start": "00:00:01", "end": "00:00:02"}
    gif = await made.made("gif", clip=clip, name="Attack", fps=5, width=64, playbackRepeats=3)
    [stream] = probed(gif)["streams"]
    assert (stream["codec_name"], stream["width"], stream["height"]) == ("gif", 64, 48)
    shown = numbers(gif)
    assert len(shown) == 5
    assert all(abs(number - expected) <= 3 for number, expected in zip(shown, range(25, 50, 5), strict=True))


async def test_two_requests_of_one_file_name_at_once_give_two_files(made: Production, event: str) -> None:
    times = {"00:00:00": 0, "00:00:02": 50}
    files = await asyncio.gather(*(made.made("image", eventId=event, name="Goal", time=time) for time in times))
    assert len(set(files)) == 2
    assert [numbers(file) for file in files] == [[0], [50]]


async def test_a_hostile_source_ends_failed_with_one_sentence(made: Production, tmp_path: Path) -> None:
    (tmp_path / "secret.ts").write_bytes(b"secret")
    key = await made.event()
    made.source(key).write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfile://{tmp_path}/secret.ts\n#EXT-X-ENDLIST\n")
    asset = await made.ended((await made.request("image", eventId=key, name="Goal", time="00:00:00"))["id"])
    assert asset["stateString"] == "FAILED"
    loaded = await made.inner.streams.load(f"asset:{asset['id']}")
    assert isinstance(loaded, Asset)
    assert loaded.reason
    assert "\n" not in loaded.reason
    assert str(tmp_path) not in loaded.reason
    assert made.published(key) == []
    assert made.temporaries() == []


async def test_a_time_past_the_end_fails_the_asset(made: Production, event: str) -> None:
    asset = await made.ended((await made.request("image", eventId=event, name="Goal", time="00:00:09"))["id"])
    assert asset["stateString"] == "FAILED"


async def test_the_file_of_a_deleted_asset_is_deleted_and_its_path_free(made: Production, event: str) -> None:
    picture = await made.made("image", eventId=event, name="Goal", time="00:00:00")
    [asset] = (await made.http.get("/api/asset/", params={"eventId": event})).json()
    assert (await made.http.delete(f"/api/asset/{asset['id']}")).status_code == 200
    await made.file_deleted(asset["id"])
    assert not picture.exists()
    again = await made.made("image", eventId=event, name="Goal", time="00:00:02")
    assert again == picture
    assert numbers(picture) == [50]


@pytest.mark.parametrize("seen", ["accepted", "task_started", "outputs_committed", "task_completed", "completed"])
async def test_an_asset_that_is_deleted_while_it_is_generated_leaves_no_file(made: Production, event: str, seen: str) -> None:
    """The asset is deleted at each stage of its job, three times each, since the worker continues meanwhile."""
    clip = {"eventId": event, "start": "00:00:00", "end": "00:00:04"}
    for _ in range(3):
        asset = await made.request("video", clip=clip, name="Whole", frameAccurate=True)
        assert asset["path"].endswith("/Whole.mp4"), "the path of the one before is free"

        async def has_come_to(job: str = asset["jobId"]) -> bool:
            return f"job.{seen}" in await topics(made.inner, f"job:{job}")

        await once(has_come_to)
        assert (await made.http.delete(f"/api/asset/{asset['id']}")).status_code == 200
        await made.file_deleted(asset["id"])
        assert made.published(event) == []

    async def tidy() -> bool:
        return not made.temporaries()

    await once(tidy)
    assert made.published(event) == []


async def test_a_file_that_is_published_and_not_yet_told_of_is_deleted_too(
    database_url: str, migrated: Migrated, media_root: Path, source: bytes
) -> None:
    async with production(database_url, migrated[1], media_root, roles=(*ENGINE, "assets")) as made:
        event = await made.event()
        made.source(event).write_bytes(source)
        asset = await made.request("image", eventId=event, name="Goal", time="00:00:00")

        async def published() -> bool:
            return "job.completed" in await topics(made.inner, f"job:{asset['jobId']}")

        await once(published)
        assert made.published(event) == ["Goal.jpg"]
        assert (await made.http.delete(f"/api/asset/{asset['id']}")).json()["stateString"] == "GENERATING"
        await made.file_deleted(asset["id"])
        assert made.published(event) == []


async def test_what_becomes_of_the_job_shows_in_the_asset(
    database_url: str, migrated: Migrated, media_root: Path, source: bytes
) -> None:
    """The job is cancelled, repeated by another job, completed, and repeated again."""
    async with production(database_url, migrated[1], media_root, roles=("outcomes", "assets")) as idle:
        event = await idle.event()
        idle.source(event).write_bytes(source)
        asset = await idle.request("image", eventId=event, name="Goal", time="00:00:00")
        key, job = asset["id"], asset["jobId"]
        for state in ("paused", "broken"):
            assert (await idle.http.put(f"/engine/job/{job}", json={"queue_state": state})).status_code == 200
        assert (await idle.ended(key))["stateString"] == "FAILED"
        assert await topics(idle.inner, f"asset:{key}") == ["asset.requested", "asset.failed"]
        again = str((await idle.http.post(f"/engine/jobs/{job}/rerun")).json()["id"])
        restarted = await idle.shown(key)
        assert (restarted["jobId"], restarted["stateString"]) == (again, "GENERATING"), "in the append that accepts the job"
    async with production(database_url, migrated[1], media_root, key="key-of-admin") as made:
        completed = await made.ended(key)
        assert (completed["stateString"], completed["path"]) == ("COMPLETED", asset["path"])
        old = await made.http.post(f"/engine/jobs/{job}/rerun")
        assert (old.status_code, old.json()["error"]) == (400, NOT_AWAITED)
        last = str((await made.http.post(f"/engine/jobs/{again}/rerun")).json()["id"])
        await made.until(key, lambda shown: (shown["jobId"], shown["stateString"]) == (last, "COMPLETED"))
        assert made.published(event) == ["Goal.jpg"]
        assert numbers(media_root / asset["path"]) == [0]


async def test_the_job_of_a_deleted_asset_is_neither_repeated_nor_resumed(made: Production, event: str) -> None:
    asset = await made.request("image", eventId=event, name="Goal", time="00:00:00")
    await made.ended(asset["id"])
    await made.http.delete(f"/api/asset/{asset['id']}")
    job = f"/engine/job/{asset['jobId']}"
    assert (await made.http.put(job, json={"queue_state": "paused"})).status_code == 200
    refused = [
        await made.http.put(job, json={"queue_state": "queued"}),
        await made.http.post(f"/engine/jobs/{asset['jobId']}/rerun"),
    ]
    assert [(answer.status_code, answer.json()["error"]) for answer in refused] == [(400, NOT_AWAITED)] * 2
    await made.file_deleted(asset["id"])
    assert made.published(event) == []
