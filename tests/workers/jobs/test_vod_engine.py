"""A protected package by the whole engine: the key goes from the key provider to the packager, and into nothing that is stored."""

from __future__ import annotations

import subprocess
from pathlib import Path
from uuid import uuid4

from domain.job.commands import AcceptJob
from domain.job.values import Submission
from domain.kernel.ports import Invocation
from domain.media_event.commands import AddOrUpdateEvent
from projections.job.numbers import JobNumbers
from tests.projections.content_keys.issuing import handlers_on, issue_one, key_request
from tests.workers.jobs.counted import film, numbers, tool
from tests.workers.jobs.engine import Engine, process
from tests.workers.jobs.packaging import published
from tests.workers.jobs.sources import BOTH, FRAMES, H264, TONE
from workers.jobs.registry import builtin

Migrated = tuple[str, str | None]
ADMIN = Invocation.by("admin")


async def test_an_event_with_drm_is_ingested_encrypted(database_url: str, migrated: Migrated, tmp_path: Path) -> None:
    event = uuid4()
    content_id = str(event)
    root = tmp_path / "media"
    (root / "in").mkdir(parents=True)
    film(root / "in/film.mkv", *BOTH, *H264, "-c:a", "aac", frames=FRAMES, inputs=TONE)
    for path in (root, root / "in", root / "in/film.mkv"):
        path.chmod(0o755)  # for the account of steps
    parameters = {"content_id": content_id, "file": "in/film.mkv"}
    graph = builtin().checked("vod_ingest", parameters)[0].graph()
    submission = Submission(client="studio", workflow="vod_ingest", content_id=content_id, parameters=parameters, tasks=graph)
    async with process(database_url, migrated[1], media_root=root) as inner:
        engine = Engine(inner, JobNumbers(inner.database))
        await inner.executor.execute(AddOrUpdateEvent(event, {"vod_drm": True}, new=True), invocation=ADMIN)
        number = await engine.numbers.draw()
        await engine.do(AcceptJob(number, submission))
        job = await engine.ended(number, seconds=120)
        assert not job.failed, job.reason
        found = job.tasks[5].result
        assert found is not None
        key = await issue_one(handlers_on(inner), key_request(content_id, "studio"))
        assert found.metadata["drm"]["drm_data"][0]["key_id"] == str(key.kid)
        texts = await inner.database.rows("SELECT convert_from(state, 'UTF8') FROM events")
        lines = await inner.database.rows("SELECT message FROM job_log_lines")
    assert str(key.kid) in str(texts)
    assert key.key.hex() not in f"{texts}{lines}"
    names = published(root, content_id)
    assert {name.rpartition("/")[0] for name in names} == {"", "cenc", "cbcs"}
    assert f"{content_id}.mp4" in names
    plain = tmp_path / "plain.mp4"
    given = ["-decryption_key", key.key.hex(), "-i", str(root / content_id / "cbcs/video-96.mp4")]
    subprocess.run([tool("ffmpeg"), "-v", "error", *given, "-c", "copy", str(plain)], check=True)  # noqa: ASYNC221
    assert numbers(plain) == list(range(FRAMES))
    assert not (root / ".jobs" / str(number)).exists()
