"""Workspaces whose files are published in a bucket: invisible before the decision, and published once after it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from domain.job.values import Output
from domain.kernel.errors import Unavailable
from projections.job.queue import QueuedRun
from projections.kernel.sizes import MIB
from tests.projections.log.helpers import until
from tests.support.s3 import client, new_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.s3 import versity_endpoint as versity_endpoint
from workers.adapters.media_bucket import MediaBucket
from workers.adapters.s3_bucket import S3Bucket
from workers.job import bucket_workspaces
from workers.job.bucket_workspaces import BucketWorkspaces
from workers.job.inputs import Inputs
from workers.job.media_paths import MediaPaths
from workers.job.publishers import PublishedByAnother
from workers.job.workspaces import OutputMissing, Workspaces
from workers.ports.buckets import BucketAddress, Completion
from workers.ports.outbound import DownloadLimits

RUN = QueuedRun(7, 2, 1)


class Away(S3Bucket):
    """A store that does not answer at times."""

    def __init__(self, address: BucketAddress) -> None:
        super().__init__(address)
        self.away: list[str] = []
        self.stalled: asyncio.Event | None = None
        self.stalled_at = asyncio.Event()
        self.waiting = 0
        self.answers_early = False

    async def complete_upload(self, key: str, upload: str, *, parts: Sequence[str], instead_of: str | None = None) -> Completion:
        if self.stalled is not None:
            self.stalled_at.set()
            self.waiting += 1
            await self.stalled.wait()
        if self.answers_early:
            self.answers_early = False
            return Completion.DONE
        done = await super().complete_upload(key, upload, parts=parts, instead_of=instead_of)
        self._fail("complete")
        return done

    async def upload_part(self, key: str, upload: str, *, number: int, content: bytes) -> str:
        self._fail("part")
        return await super().upload_part(key, upload, number=number, content=content)

    def _fail(self, what: str) -> None:
        if what in self.away:
            self.away.remove(what)
            raise Unavailable("away")


@dataclass
class Machine:
    """A machine that shares a bucket, but no directory, with the others."""

    root: Path
    address: BucketAddress

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        (self.root / ".jobs").mkdir()
        self.store = Away(self.address)
        self.inputs = Inputs(self.root, self.store)
        self.clock = datetime.now(UTC)
        local = Workspaces(self.root)
        self.files = BucketWorkspaces(local, self.store, inputs=self.inputs, clock=lambda: self.clock, again_seconds=0.01)

    def make(self, name: str, content: bytes, *, run: QueuedRun = RUN, declared: bytes | None = None) -> Output:
        path = name.replace("/", "-")
        folder = MediaPaths(self.root, run.job).workspace(run.task, run.run)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        digest = sha256(content if declared is None else declared).hexdigest()
        return Output(path=path, name=name, size=len(content), sha256=digest)


@pytest.fixture(params=["moto", "versitygw"])
def address(request: pytest.FixtureRequest) -> BucketAddress:
    return new_bucket(request.getfixturevalue("moto_endpoint" if request.param == "moto" else "versity_endpoint"))


@pytest.fixture
def machine(tmp_path: Path, address: BucketAddress) -> Machine:
    return Machine(tmp_path / "one", address)


@pytest.fixture
def other(tmp_path: Path, address: BucketAddress) -> Machine:
    return Machine(tmp_path / "two", address)


def objects(address: BucketAddress) -> dict[str, bytes]:
    """Return all objects except the notes of the publishers."""
    bucket = client(address)
    keys = [each["Key"] for each in bucket.list_objects_v2(Bucket=address.bucket).get("Contents", ())]
    shown = {key.removeprefix(f"{address.prefix}/"): key for key in keys if "/.published/" not in key}
    return {name: bucket.get_object(Bucket=address.bucket, Key=key)["Body"].read() for name, key in shown.items()}


async def published(machine: Machine) -> list[str]:
    return [file.path for file in await MediaBucket(machine.store).list("", limit=100)]


async def test_files_are_seen_when_they_are_published_and_not_before(machine: Machine, address: BucketAddress) -> None:
    large = bytes(range(256)) * (17 * MIB // 256) + b"end"
    outputs = [machine.make("match/a.mp4", large), machine.make("match/empty", b""), machine.make(".jobs/7/files/kept", b"k")]
    await machine.files.stage(RUN, outputs)
    assert await published(machine) == []
    await machine.files.publish(RUN, outputs, client="admin")
    stored = objects(address)
    assert stored == {"match/a.mp4": large, "match/empty": b"", ".jobs/7/files/kept": b"k"}
    assert await published(machine) == ["match/a.mp4", "match/empty"]


async def test_another_worker_publishes_what_a_dead_one_has_uploaded(machine: Machine, other: Machine) -> None:
    outputs = [machine.make("match/a.mp4", b"1"), machine.make("match/b.mp4", b"2")]
    await machine.files.stage(RUN, outputs)
    await other.files.publish(RUN, outputs, client="admin")
    await machine.files.publish(RUN, outputs, client="admin")  # it was not dead
    assert await published(other) == ["match/a.mp4", "match/b.mp4"]


async def test_a_lost_answer_does_no_harm(machine: Machine) -> None:
    outputs = [machine.make("match/a.mp4", b"1"), machine.make("match/b.mp4", b"2")]
    machine.store.away = ["part", "complete"]
    await machine.files.stage(RUN, outputs)
    await machine.files.publish(RUN, outputs, client="admin")
    assert machine.store.away == []
    assert await published(machine) == ["match/a.mp4", "match/b.mp4"]


async def test_a_run_that_was_overtaken_publishes_nothing(machine: Machine, other: Machine, address: BucketAddress) -> None:
    late, later = [machine.make("match/a.mp4", b"1")], RUN._replace(run=2)
    await machine.files.stage(RUN, late)
    outputs = [other.make("match/a.mp4", b"22", run=later)]
    await other.files.stage(later, outputs)
    await other.files.publish(later, outputs, client="admin")
    with pytest.raises(OutputMissing):
        await machine.files.publish(RUN, late, client="admin")
    assert objects(address) == {"match/a.mp4": b"22"}
    assert await machine.store.uploads() == []


async def test_nothing_of_another_client_is_replaced(machine: Machine, address: BucketAddress) -> None:
    first = [machine.make("match/a.mp4", b"1")]
    await machine.files.stage(RUN, first)
    await machine.files.publish(RUN, first, client="admin")
    second = RUN._replace(job=8)
    outputs = [machine.make("match/b.mp4", b"2", run=second), machine.make("match/a.mp4", b"3", run=second)]
    await machine.files.stage(second, outputs)
    with pytest.raises(PublishedByAnother, match=r"match/a\.mp4"):
        await machine.files.publish(second, outputs, client="studio")
    assert await published(machine) == ["match/a.mp4"]
    await MediaBucket(machine.store).remove("match/a.mp4")
    await machine.files.publish(second, outputs, client="studio")
    assert objects(address)["match/a.mp4"] == b"3"


async def test_of_clients_that_publish_at_the_same_time_one_does(machine: Machine, other: Machine, thorough: bool) -> None:
    for turn in range(8 if thorough else 3):
        tries = {}
        for number, (publisher, name) in enumerate([(machine, "admin"), (other, "studio")]):
            run = RUN._replace(job=20 + 2 * turn + number)
            outputs = [publisher.make(path, name.encode(), run=run) for path in ("match/a.mp4", "match/b.mp4")[:: 1 - 2 * number]]
            await publisher.files.stage(run, outputs)
            tries[name] = publisher.files.publish(run, outputs, client=name)
        ends = dict(zip(tries, await asyncio.gather(*tries.values(), return_exceptions=True), strict=True))
        (done,) = [name for name, end in ends.items() if end is None]
        (refused,) = [end for end in ends.values() if end is not None]
        assert isinstance(refused, PublishedByAnother)
        for path in ("match/a.mp4", "match/b.mp4"):
            assert await MediaBucket(machine.store).read(path, limit=100) == done.encode()
            await MediaBucket(machine.store).remove(path)  # the next turn supersedes the notes
        for number in range(2):
            await (machine, other)[number].files.remove([20 + 2 * turn + number])


async def test_a_file_that_another_client_is_about_to_publish_is_not_taken_from_it(machine: Machine, other: Machine) -> None:
    first, second, third = (RUN._replace(job=job) for job in (20, 21, 22))
    outputs = [machine.make("match/a.mp4", b"1", run=first)]
    await machine.files.stage(first, outputs)
    machine.store.stalled = asyncio.Event()
    publishing = asyncio.create_task(machine.files.publish(first, outputs, client="admin"))
    await machine.store.stalled_at.wait()  # it has claimed the path, and has completed nothing
    theirs = [other.make("match/a.mp4", b"2", run=second)]
    await other.files.stage(second, theirs)
    with pytest.raises(PublishedByAnother):
        await other.files.publish(second, theirs, client="studio")
    also = [other.make("match/a.mp4", b"3", run=third)]
    await other.files.stage(third, also)
    await other.files.publish(third, also, client="admin")
    await MediaBucket(other.store).remove("match/a.mp4")
    with pytest.raises(PublishedByAnother):  # the first run may still complete its upload
        await other.files.publish(second, theirs, client="studio")
    machine.store.stalled.set()
    await publishing
    assert await MediaBucket(machine.store).read("match/a.mp4", limit=100) == b"1"


async def test_an_upload_that_is_completed_late_replaces_nothing_of_others(tmp_path: Path, versity_endpoint: str) -> None:
    """The server may complete an upload after the client stopped waiting for it. moto does not support conditions for that."""
    address = new_bucket(versity_endpoint)
    machine, other = Machine(tmp_path / "one", address), Machine(tmp_path / "two", address)
    first, second, third = (RUN._replace(job=job) for job in (20, 21, 22))
    outputs = {run: [machine.make("match/a.mp4", str(run.job).encode(), run=run)] for run in (first, second, third)}
    for run in outputs:
        await machine.files.stage(run, outputs[run])
    machine.store.stalled = asyncio.Event()
    publishing = [asyncio.create_task(machine.files.publish(run, outputs[run], client="admin")) for run in (first, second)]
    await machine.store.stalled_at.wait()
    await until(lambda: machine.store.waiting == 2)
    await machine.store.delete([f".jobs/{run.job}/2/1.json" for run in (first, second)])
    await other.files.publish(third, outputs[third], client="studio")
    machine.store.stalled.set()
    ends = await asyncio.gather(*publishing, return_exceptions=True)
    assert [type(end) for end in ends] == [PublishedByAnother] * 2
    assert await MediaBucket(machine.store).read("match/a.mp4", limit=100) == b"22"


async def test_a_file_that_nobody_published_is_replaced(machine: Machine, address: BucketAddress) -> None:
    await machine.store.put("match/a.mp4", b"by hand")
    await machine.files.stage(RUN, outputs := [machine.make("match/a.mp4", b"1")])
    await machine.files.publish(RUN, outputs, client="admin")
    assert objects(address) == {"match/a.mp4": b"1"}


async def test_an_upload_that_the_server_still_completes_is_waited_for(machine: Machine) -> None:
    await machine.files.stage(RUN, outputs := [machine.make("match/a.mp4", b"1")])
    machine.store.answers_early = True
    await machine.files.publish(RUN, outputs, client="admin")
    assert await published(machine) == ["match/a.mp4"]
    assert not machine.store.answers_early


async def test_two_notes_of_the_same_are_not_the_same_version(machine: Machine) -> None:
    tags = set()
    for _ in range(2):
        await machine.files.stage(RUN, outputs := [machine.make("match/a.mp4", b"1")])
        await machine.files.publish(RUN, outputs, client="admin")
        (note,) = await machine.store.list(".published/", limit=10)
        tags.add(note.etag)
        await machine.store.delete([note.key, "match/a.mp4"])
    assert len(tags) == 2


async def test_what_a_step_kept_is_no_note_of_a_run(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_workspaces, "_LARGEST_NOTE", 1000)
    await machine.files.stage(RUN, outputs := [machine.make(".jobs/7/files/plan.json", b" " * 2000)])
    await machine.files.publish(RUN, outputs, client="admin")
    await machine.files.remove([7])
    assert await machine.files.jobs() == []


async def test_a_path_that_a_withdrawn_job_claimed_is_anybodys(machine: Machine, other: Machine) -> None:
    first, second = (RUN._replace(job=job) for job in (20, 21))
    outputs = [machine.make("match/a.mp4", b"1", run=first), Output(path="b", name="match/b.mp4", size=1, sha256="0")]
    await machine.files.stage(first, outputs[:1])
    machine.store.away = ["complete"]
    with pytest.raises(OutputMissing):
        await machine.files.publish(first, outputs[::-1], client="admin")
    theirs = [other.make("match/a.mp4", b"2", run=second)]
    await other.files.stage(second, theirs)
    with pytest.raises(PublishedByAnother):
        await other.files.publish(second, theirs, client="studio")
    await other.files.withdraw([20])
    await other.files.publish(second, theirs, client="studio")
    assert await published(other) == ["match/a.mp4"]


async def test_a_file_that_was_changed_after_it_was_declared_is_not_stored(machine: Machine, address: BucketAddress) -> None:
    with pytest.raises(OutputMissing):
        await machine.files.stage(RUN, [machine.make("match/a.mp4", b"1", declared=b"2")])
    output = machine.make("match/b.mp4", b"1")
    file = MediaPaths(machine.root, 7).workspace(2, 1) / output.path
    file.unlink()
    file.symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic link"):
        await machine.files.stage(RUN, [output])
    await machine.files.discard(RUN)
    assert objects(address) == {}
    assert await machine.store.uploads() == []


async def test_what_is_not_there_any_more_is_missing(machine: Machine) -> None:
    with pytest.raises(OutputMissing):
        await machine.files.publish(RUN, [Output(path="a", name="match/a.mp4", size=1, sha256="0")], client="admin")


async def test_an_ended_job_leaves_nothing_but_what_it_published(machine: Machine, other: Machine, address: BucketAddress) -> None:
    outputs = [machine.make("match/a.mp4", b"1"), machine.make(".jobs/7/files/kept", b"k")]
    await machine.files.stage(RUN, outputs)
    await machine.files.publish(RUN, outputs, client="admin")
    await machine.files.stage(RUN._replace(task=3), [machine.make("match/b.mp4", b"2", run=RUN._replace(task=3))])
    assert await other.files.jobs() == [7]
    await other.files.remove([7])
    assert objects(address) == {"match/a.mp4": b"1"}
    assert await other.store.uploads() == []
    assert await other.files.jobs() == []
    await machine.files.remove([7])
    assert list((machine.root / ".jobs").iterdir()) == []


async def test_after_a_job_is_withdrawn_no_run_of_it_publishes(machine: Machine, other: Machine, address: BucketAddress) -> None:
    outputs = [machine.make("match/a.mp4", b"1")]
    await machine.files.stage(RUN, outputs)
    await other.files.withdraw([7])
    with pytest.raises(OutputMissing):
        await machine.files.publish(RUN, outputs, client="admin")
    assert objects(address) == {}


@pytest.mark.parametrize("address", ["versitygw"], indirect=True)  # to moto all uploads began in 2010
async def test_an_upload_that_nobody_has_a_note_of_is_ended_after_a_while(machine: Machine) -> None:
    await machine.store.begin_upload("match/a.mp4", sha256="0")
    await machine.files.tidy()
    assert len(await machine.store.uploads()) == 1
    machine.clock += timedelta(days=8)
    await machine.files.tidy()
    assert await machine.store.uploads() == []


async def test_inputs_are_fetched_once_for_each_version(machine: Machine, address: BucketAddress) -> None:
    bucket, seen = client(address), list[float]()
    key = f"{address.prefix}/match/a.mp4"
    bucket.put_object(Bucket=address.bucket, Key=key, Body=b"first")
    path = await machine.inputs.fetch(7, "match/a.mp4", progress=seen.append)
    assert (path.name, path.read_bytes(), path.stat().st_mode & 0o777, seen[-1]) == ("a.mp4", b"first", 0o640, 1.0)
    assert await machine.inputs.fetch(7, "match/a.mp4", progress=seen.append) == path
    assert len(seen) == 1
    bucket.put_object(Bucket=address.bucket, Key=key, Body=b"second")
    again = await machine.inputs.fetch(7, "match/a.mp4", progress=seen.append)
    assert (again.read_bytes(), path.read_bytes()) == (b"second", b"first")
    assert not (await machine.inputs.fetch(7, "match/none.mp4", progress=seen.append)).exists()
    await machine.files.remove([7])
    assert not path.exists()


async def test_an_input_beyond_the_limits_is_not_fetched(machine: Machine, address: BucketAddress) -> None:
    client(address).put_object(Bucket=address.bucket, Key=f"{address.prefix}/match/a.mp4", Body=b"12345")
    inputs = Inputs(machine.root, machine.store, limits=DownloadLimits(size=4, free=0))
    with pytest.raises(Exception, match="more than 4 bytes"):
        await inputs.fetch(7, "match/a.mp4", progress=lambda _: None)
    assert [path for path in (machine.root / ".inputs").rglob("*") if path.is_file()] == []
