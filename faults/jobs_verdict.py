"""What became of the jobs: what their clients were told beside what the log says, and what the log says beside what lies below the
media root."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from faults.jobs_load import Submitted
from faults.jobs_log import MOST_SHOWN, JobSeen, LogCheck, Phase, TaskSeen

_SHOWN: Final = MOST_SHOWN


@dataclass(frozen=True, slots=True)
class Verdict:
    """How often it was not as it must be. `lost`: answered, and not in the log; `twice`: accepted once more than it was asked;
    `unknown`: accepted, and nobody asked; `unended`: in no terminal state; `otherwise`: ended as it should not; `files`: what lies
    in a job's place is not what its runs published. `messages` describes the first of them."""

    lost: int
    twice: int
    unknown: int
    unended: int
    otherwise: int
    files: int
    messages: Sequence[str]

    @property
    def faults(self) -> int:
        return self.lost + self.twice + self.unknown + self.unended + self.otherwise + self.files


def judged(submitted: Iterable[Submitted], log: LogCheck, *, media_root: Path) -> Verdict:
    """All of it. Reads the media root."""
    asked = {one.mark: one for one in submitted}
    faults: defaultdict[str, list[str]] = defaultdict(list)
    for one in asked.values():
        for number in (one.number, one.rerun):
            if number is not None and (number not in log.jobs or log.jobs[number].content_id != one.mark):
                faults["lost"].append(f"{one.mark} was answered with {number}, which the log does not know")
    for kind, sentence in _against(asked, log.jobs.values()):
        faults[kind].append(sentence)
    faults["files"] += wrong_files(log.jobs.values(), media_root=media_root)
    counts = {name: len(faults[name]) for name in ("lost", "twice", "unknown", "unended", "otherwise", "files")}
    messages = [f"{kind}: {sentence}" for kind, sentences in faults.items() for sentence in sentences]
    return Verdict(**counts, messages=messages[:_SHOWN])


def _against(asked: Mapping[str, Submitted], jobs: Iterable[JobSeen]) -> Iterator[tuple[str, str]]:
    """Each job of the log against what was asked."""
    known: Counter[tuple[str, int | None]] = Counter()
    for job in jobs:
        named = f"job {job.number} ({job.content_id})"
        one = asked.get(job.content_id)
        known[job.content_id, job.rerun_of] += 1
        if one is None or (job.rerun_of is not None and (one.rerun is None or job.rerun_of != one.number)):
            yield "unknown", f"{named} was never asked for"
            continue
        if known[job.content_id, job.rerun_of] > 1:
            yield "twice", f"{named} was accepted before"
        end = one.end if job.rerun_of is None else Phase.COMPLETED
        if not job.ended:
            yield "unended", f"{named} is {job.phase}, and should be {end}"
        elif job.phase is not end:
            yield "otherwise", f"{named} is {job.phase}, and should be {end}: it was {one.fate}"


def wrong_files(jobs: Iterable[JobSeen], *, media_root: Path) -> list[str]:
    """Of each task the file must be that of the run that completed it, or of none but a run whose outputs were committed."""
    found: list[str] = []
    for job in jobs:
        for task in job.tasks.values():
            fault = _wrong_file(job, task, media_root)
            if fault is not None:
                found.append(f"job {job.number}, task {task.plan.id}: {fault}")
    return found


def _wrong_file(job: JobSeen, task: TaskSeen, media_root: Path) -> str | None:
    path = media_root / job.content_id / f"{job.number}-{task.plan.id}.txt"
    may = {task.done} if task.done is not None else set(task.committed)
    if not path.exists():
        return None if task.done is None else f"{path.name} is not there, and run {task.done} has published it"
    said = path.read_text()
    if said in {f"{job.number} {task.plan.id} {run}\n" for run in may}:
        return None
    return f"{path.name} says {said!r}, and the runs that may have published it are {sorted(may)}"
