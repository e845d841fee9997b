"""The verdict of the fault matrix of media, tried on logs and media roots that are made up: each fault is found, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from domain.asset.aggregate import Asset
from faults.jobs_log import JobSeen, Phase, TaskSeen
from faults.media_load import MediaTally, readable, streamed
from faults.media_verdict import AssetSeen, EventSeen, Evidence, Kind, judge, take

PICTURE, CLIP, REMOVED = "e/assets/goal.jpg", "e/assets/attack.mp4", "e/assets/final.gif"
SOURCE, LIST, CAPTURED = "e/e.mp4", "e/dash.mpd", "c/c.mp4"


def job(number: int, *names: str, phase: Phase = Phase.COMPLETED, failed: bool = False) -> JobSeen:
    tasks = {1: TaskSeen(None, committed={1: names})} if names else {}  # type: ignore[arg-type]
    return JobSeen(number, "admin", "e", 0.0, phase, 5, None, None, tasks, failed=failed)


@dataclass
class World:
    """The answers to clients, the log, and the files. All of it agrees, until a test changes something."""

    assets: dict[str, AssetSeen] = field(default_factory=dict)
    tally: MediaTally = field(default_factory=MediaTally)
    evidence: Evidence = field(init=False)
    broken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for number, path in enumerate((PICTURE, CLIP, REMOVED), start=1):
            self.tally.assets[f"a{number}"] = path
            self.say(f"a{number}", "requested", path=path, job=number)
            self.say(f"a{number}", "completed", size=number)
        self.tally.deleted.add("a3")
        self.say("a3", "removed", file_left=True)
        self.say("a3", "file_deleted")
        for name, path in (("s1", LIST), ("s2", CAPTURED)):
            self.say(name, "discovered", path=path, size=7)
        self.tally.sources.add(SOURCE)
        self.tally.owned |= {"e": 4, "c": 5}
        jobs = {number: job(number) for number in (1, 2, 3)} | {4: job(4, LIST), 5: job(5, CAPTURED)}
        events = {"e": EventSeen("VOD_PUBLIC", False), "c": EventSeen("VOD_PRIVATE", False)}
        files = {PICTURE: 1, CLIP: 2, LIST: 7, CAPTURED: 7, SOURCE: 100}
        self.evidence = Evidence(self.assets, jobs, events, files, unfinished={2: [".jobs/2/1/1/clip.mp4"]})

    def say(self, key: str, verb: str, **content: Any) -> None:
        take(self.assets, key, f"asset.{verb}", content, 1.0)

    def now(self, **changed: Any) -> None:
        self.evidence = replace(self.evidence, **changed)

    def file(self, path: str, size: int | None) -> None:
        files = {name: old_size for name, old_size in self.evidence.files.items() if name != path}
        self.now(files=files if size is None else {**files, path: size})

    def job(self, number: int, **fields: Any) -> None:
        self.now(jobs={**self.evidence.jobs, number: job(number, **fields)})

    def event(self, key: str, state: str, *, capturing: bool = False) -> None:
        self.now(events={**self.evidence.events, key: EventSeen(state, capturing)})

    def wrong(self) -> dict[Kind, int]:
        return dict(judge(self.tally, self.evidence, readable=lambda path: path not in self.broken).counts)


def test_correct_media_have_no_fault() -> None:
    assert World().wrong() == {}


def test_what_failed_is_an_end_too() -> None:
    world = World()
    world.say("a2", "restarted", job=6)
    world.say("a2", "failed", reason="lost")
    world.file(CLIP, None)
    world.job(5, failed=True)
    world.event("c", "VOD_ERROR")
    assert world.wrong() == {}


PLANTED: dict[str, tuple[Kind, Callable[[World], object]]] = {
    "a file of a removed asset": (Kind.OWNERLESS, lambda world: world.file(REMOVED, 3)),
    "an asset that stays generating": (Kind.UNENDED, lambda world: world.say("a1", "restarted", job=6)),
    "a removal without an end": (Kind.UNENDED, lambda world: world.say("a3", "removed", file_left=True)),
    "an answer that the log does not know": (Kind.LOST, lambda world: world.tally.assets.update(a9="e/assets/x.jpg")),
    "another path than the answer": (Kind.LOST, lambda world: world.tally.assets.update(a1="e/assets/x.jpg")),
    "a deleted asset that is there": (Kind.LOST, lambda world: world.tally.deleted.add("a1")),
    "a removal that nobody wanted": (Kind.UNKNOWN, lambda world: world.tally.deleted.clear()),
    "an asset that nobody wanted": (Kind.UNKNOWN, lambda world: world.tally.assets.pop("a1")),
    "two assets of one path": (Kind.SHARED, lambda world: world.say("s3", "discovered", path=PICTURE, size=1)),
    "no file": (Kind.FILES, lambda world: world.file(PICTURE, None)),
    "another size": (Kind.FILES, lambda world: world.file(PICTURE, 5)),
    "a file that cannot be decoded": (Kind.FILES, lambda world: world.broken.add(PICTURE)),
    "a file of nobody": (Kind.OWNERLESS, lambda world: world.file("e/assets/.goal.jpg", 1)),
    "a file of a package that is no asset": (Kind.OWNERLESS, lambda world: world.assets.pop("s1")),
    "a file of a run that goes on": (Kind.TEMPORARY, lambda world: world.now(unfinished={9: [".jobs/9/1/1/x"]})),
    "a file of a run that stays": (Kind.TEMPORARY, lambda world: world.now(untidied={2: [".jobs/2/1/1/x"]})),
    "an Event that is being captured": (Kind.EVENTS, lambda world: world.event("c", "VOD_PRIVATE", capturing=True)),
    "an Event that waits for its capture": (Kind.EVENTS, lambda world: world.event("c", "VOD_INGESTING")),
    "an error after a success": (Kind.EVENTS, lambda world: world.event("c", "VOD_ERROR")),
    "a capture that does not end": (Kind.UNENDED, lambda world: world.job(5, phase=Phase.STARTED)),
    "a capture that the log does not know": (Kind.LOST, lambda world: world.tally.owned.update(c=9)),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_is_found(fault: str) -> None:
    kind, plant = PLANTED[fault]
    world = World()
    plant(world)
    assert world.wrong() == {kind: 1}


def test_the_fold_knows_each_event_of_an_asset() -> None:
    for event in Asset.EVENTS:
        content = {"path": PICTURE, "job": 1, "size": 1, "reason": "", "file_left": False}
        take({"a1": AssetSeen("a1", PICTURE, [1])}, "a1", event.TOPIC, content, 1.0)


def test_a_film_that_was_cut_off_cannot_be_decoded(tmp_path: Path) -> None:
    made = streamed(tmp_path)
    film, cut = tmp_path / "film.mp4", tmp_path / "cut.mp4"
    cut.write_bytes(made["film.mp4"][: len(made["film.mp4"]) // 2])
    assert readable(film)
    assert not readable(cut)
    assert made["live.m3u8"].strip().endswith(b"#EXT-X-ENDLIST")
