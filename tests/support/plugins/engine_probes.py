"""Workflows for tests of the job engine. They are installed like those of third parties, by adding this folder to the path."""

from __future__ import annotations

import os
import time
from typing import Any, NoReturn

from workers.job.context import StepCancelled, StepContext, StepFailed, StepResult
from workers.job.workflow import JobParameters, Step, Workflow

Context = StepContext[Any]


def nothing(context: Context) -> None:
    """Do nothing, so that only the cost of the engine remains."""


def write(context: Context) -> StepResult:
    """Publish a file that names the run that made it."""
    name = f"{context.job.id}-{context.task}.txt"
    made = context.workspace / name
    made.write_text(f"{context.job.id} {context.task} {context.run_number}\n")
    context.publish(made, name)
    return StepResult(message=f"run {context.run_number}", metadata={"run": context.run_number})


class Seconds(JobParameters):
    seconds: float = 60.0


def wait(context: StepContext[Seconds]) -> None:
    """Wait until the time is over, or until the step is asked to end."""
    end = time.monotonic() + context.parameters.seconds
    while (remaining := end - time.monotonic()) > 0:
        context.progress(1 - remaining / context.parameters.seconds, "waiting")
        if context.cancelled:
            raise StepCancelled
        time.sleep(min(0.01, remaining))


class Reading(JobParameters):
    file: str


def keep(context: Context) -> None:
    (context.workspace / "kept").write_text("kept")
    context.keep(context.workspace / "kept", "kept.txt")


def read(context: StepContext[Reading]) -> StepResult:
    """Read a file of the media root and a file of an earlier step."""
    file, earlier = context.path(context.parameters.file), context.job_file("kept.txt")
    made = context.workspace / "read"
    made.write_text(f"{file.read_text()} and {earlier.read_text()}" if file.exists() else "nothing")
    context.publish(made, f"{context.job.id}-read.txt")
    return StepResult()


class Failures(JobParameters):
    times: int = 1_000_000
    final: bool = False


def fail(context: StepContext[Failures]) -> StepResult:
    """Fail as often as the parameters say, then succeed."""
    if context.run_number <= context.parameters.times:
        raise StepFailed(f"failed as it was told, run {context.run_number}", final=context.parameters.final)
    return StepResult(message="at last")


def use_kept(context: StepContext[Failures]) -> StepResult:
    """Fail first, then read the file that the previous step has kept."""
    fail(context)
    return StepResult(message=context.job_file("kept.txt").read_text())


def resume(context: Context) -> StepResult:
    """Leave a file in the first run, and fail in the second run before it has a workspace."""
    if context.run_number == 1:
        (context.workspace / "left").touch()
    if context.run_number < 3:
        raise StepFailed("not yet")
    return StepResult(metadata={"left": context.previous is not None and (context.previous / "left").exists()})


class Claim(JobParameters):
    name: str
    path: str | None = None


def claim(context: StepContext[Claim]) -> StepResult:
    """Declare results that no step could have, as a process that was taken over would."""
    write(context)
    (output,) = context._outputs.values()
    name = context.parameters.name.format(job=context.job.id)
    context._outputs = {name: output.model_copy(update={"name": name, "path": context.parameters.path or output.path})}
    return StepResult()


def crash(context: Context) -> NoReturn:
    os._exit(3)


NOOP = Workflow("noop", JobParameters, [Step("nothing", nothing)])
CHAIN = Workflow(
    "chain", JobParameters, [Step("first", write), Step("second", write, after=("first",)), Step("third", write, after=("second",))]
)
DIAMOND = Workflow(
    "diamond",
    JobParameters,
    [
        Step("top", nothing),
        Step("left", nothing, after=("top",)),
        Step("right", nothing, after=("top",)),
        Step("end", nothing, after=("left", "right")),
    ],
)
WAITING = Workflow("waiting", Seconds, [Step("wait", wait), Step("after", nothing, after=("wait",))])
FAILING = Workflow("failing", Failures, [Step("fail", fail), Step("after", nothing, after=("fail",))])
CRASHING = Workflow("crashing", JobParameters, [Step("crash", crash)])
CLAIMING = Workflow("claiming", Claim, [Step("claim", claim)])
READING = Workflow("reading", Reading, [Step("keep", keep), Step("read", read, after=("keep",))])
KEEPING = Workflow("keeping", Failures, [Step("keep", keep), Step("use", use_kept, after=("keep",))])
LEAVING = Workflow("leaving", JobParameters, [Step("resume", resume)])
WORKFLOWS = (NOOP, CHAIN, DIAMOND, WAITING, FAILING, CRASHING, CLAIMING, READING, KEEPING, LEAVING)
