"""The outcome of the jobs: the answers to their clients compared with the log, and the log compared with the files below the media
root."""

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
    """The counts of violations. `messages` describes the first of them.

    `lost` jobs were answered, but are not in the log; `twice` were accepted more often than requested; `unknown` were accepted
    without a request; `unended` are in no terminal state; `otherwise` ended in the wrong state; `files` have other files than their
    runs published.
    """

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


def judge(submitted: Iterable[Submitted], log: LogCheck, *, media_root: Path) -> Verdict:
    """Return the verdict. This reads the media root."""
    asked = {submission.mark: submission for submission in submitted}
    faults: defaultdict[str, list[str]] = defaultdict(list)
    for submission in asked.values():
        for number in (submission.number, submission.rerun):
            if number is not None and (number not in log.jobs or log.jobs[number].content_id != submission.mark):
                faults["lost"].append(f"{submission.mark} was answered with {number}, which the log does not know")
    for kind, sentence in _against(asked, log.jobs.values()):
        faults[kind].append(sentence)
    faults["files"] += wrong_files(log.jobs.values(), media_root=media_root)
    counts = {name: len(faults[name]) for name in ("lost", "twice", "unknown", "unended", "otherwise", "files")}
    messages = [f"{kind}: {sentence}" for kind, sentences in faults.items() for sentence in sentences]
    return Verdict(**counts, messages=messages[:_SHOWN])


def _against(asked: Mapping[str, Submitted], jobs: Iterable[JobSeen]) -> Iterator[tuple[str, str]]:
    """Yield the violations of each job of the log against the requests."""
    accepted: Counter[tuple[str, int | None]] = Counter()
    for job in jobs:
        named = f"job {job.number} ({job.content_id})"
        submission = asked.get(job.content_id)
        accepted[job.content_id, job.rerun_of] += 1
        if submission is None or (job.rerun_of is not None and (submission.rerun is None or job.rerun_of != submission.number)):
            yield "unknown", f"{named} was never requested"
            continue
        if accepted[job.content_id, job.rerun_of] > 1:
            yield "twice", f"{named} was accepted before"
        end = submission.end if job.rerun_of is None else Phase.COMPLETED
        if not job.ended:
            yield "unended", f"{named} is {job.phase}, and should be {end}"
        elif job.phase is not end:
            yield "otherwise", f"{named} is {job.phase}, and should be {end}: it was {submission.fate}"


def wrong_files(jobs: Iterable[JobSeen], *, media_root: Path) -> list[str]:
    """Return the wrong files. The file of a task must be that of the run that completed it, or else of a run whose outputs were
    committed."""
    faults: list[str] = []
    for job in jobs:
        for task in job.tasks.values():
            fault = _wrong_file(job, task, media_root)
            if fault is not None:
                faults.append(f"job {job.number}, task {task.plan.id}: {fault}")
    return faults


def _wrong_file(job: JobSeen, task: TaskSeen, media_root: Path) -> str | None:
    path = media_root / job.content_id / f"{job.number}-{task.plan.id}.txt"
    may = {task.done} if task.done is not None else set(task.committed)
    if not path.exists():
        return None if task.done is None else f"{path.name} is not there, and run {task.done} has published it"
    content = path.read_text()
    if content in {f"{job.number} {task.plan.id} {run}\n" for run in may}:
        return None
    return f"{path.name} says {content!r}, and the runs that may have published it are {sorted(may)}"
