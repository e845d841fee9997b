"""Correct and faulty steps, as workflows of another package."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any

from domain.job.values import Severity
from workers.job.context import StepCancelled, StepContext, StepFailed, StepResult
from workers.job.workflow import JobParameters, Step, Workflow

SLEEP = ["sleep", "1000"]


class Trial(JobParameters):
    text: str = ""


Context = StepContext[Trial]


def nothing(context: Context) -> None:
    return None


def tells(context: Context) -> StepResult:
    context.log("begins", Severity.DEBUG)
    context.progress(0.25, "a quarter")
    context.log("goes on")
    context.progress(1, "all")
    facts: dict[str, Any] = {
        "pid": os.getpid(),
        "job": [context.job.id, context.job.client, context.job.workflow, context.job.content_id],
        "run": [context.task, context.run_number],
        "text": context.parameters.text,
        "results": {name: dict(metadata) for name, metadata in context.results.items()},
        "workspace": str(context.workspace),
        "previous": str(context.previous),
    }
    return StepResult(message="told", metadata=facts)


def surroundings(context: Context) -> StepResult:
    seen = context.run("env", seconds=60).output.decode().splitlines()
    facts = {
        "ours": sorted(os.environ),
        "theirs": sorted(line.partition("=")[0] for line in seen),
        "descriptors": sorted(map(_opened, os.listdir("/proc/self/fd"))),
        "handled": [number for number in range(1, 32) if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN)],
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    }
    return StepResult(metadata=facts)


def _opened(descriptor: str) -> str:
    """Return the target of a descriptor, without the number of a pipe or socket; the listing's own descriptor is closed by now."""
    try:
        return descriptor + " " + os.readlink(f"/proc/self/fd/{descriptor}").partition(":")[0]
    except FileNotFoundError:
        return "closed"


def inspects(context: Context) -> StepResult:
    """Report what the step may do: `text` is a path, or an address."""
    host, _, port = context.parameters.text.rpartition(":")
    place = Path(context.parameters.text)
    trials: dict[str, Callable[[], object]] = {
        "reads": place.read_bytes,
        "opens": lambda: place.open("rb").close(),
        "lists": lambda: os.listdir(place),
        "writes": lambda: (place / "new").touch(),
        "connects": lambda: socket.create_connection((host, int(port)), timeout=10).close(),
    }
    program = context.run("cat", "/proc/self/status", seconds=60).output.decode()
    facts: dict[str, Any] = {name: _works(trial) for name, trial in trials.items()}
    facts["status"], facts["status of a program"] = _status(Path("/proc/self/status").read_text()), _status(program)
    facts["nice"] = int(context.run("nice", seconds=60).output)
    kinds = (getattr(resource, f"RLIMIT_{name}") for name in ("CORE", "AS", "FSIZE", "NOFILE", "NPROC", "CPU"))
    facts["limits"] = {str(kind): resource.getrlimit(kind)[0] for kind in kinds}
    return StepResult(metadata=facts)


def _works(trial: Callable[[], object]) -> bool:
    try:
        trial()
    except (OSError, ValueError):
        return False
    return True


def _status(text: str) -> dict[str, str]:
    parts = (line.split(":", 1) for line in text.splitlines())
    return {name: value.strip() for name, value in parts}


def prints(context: Context) -> None:
    sys.stdout.write("\x00\x00\x00\x02{}")
    sys.stdout.flush()
    os.write(1, b"\xff" * 100)


def raises(context: Context) -> None:
    raise ValueError(context.parameters.text)


def reads_a_missing_film(context: Context) -> None:
    context.path("film/film.mp4").read_bytes()


def reads_a_file_of_the_machine(context: Context) -> None:
    Path("/etc/no-such-file").read_bytes()


def gives_up(context: Context) -> None:
    raise StepFailed("there is no such thing", final=True)


def leaves(context: Context) -> None:
    sys.exit(3)


def exits(context: Context) -> None:
    os._exit(7)


def crashes(context: Context) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)
    Event().wait()


def boasts(context: Context) -> StepResult:
    return StepResult(metadata={"much": "a" * 300_000})


def is_odd(context: Context) -> StepResult:
    return StepResult(metadata={"of": object()})


def makes_files(context: Context) -> None:
    for name in ("one", "two"):
        (context.workspace / name).write_text(name)
    context.publish(context.workspace / "one", "a/one.txt")
    context.keep(Path("two"), "two.txt")


def asks_for_protection(context: Context) -> StepResult:
    """Give the key to a program, which reports what every user may read about it."""
    protection = context.protection()
    if protection is None:
        return StepResult(metadata={"protected": False})
    output = context.run(
        "sh", "-c", "cat; tr '\\0' ' ' < /proc/$$/cmdline", seconds=60, given=protection.key.encode()
    ).output.decode()
    key, arguments = output[: len(protection.key)], output[len(protection.key) :]
    digest = sha256(key.encode()).hexdigest()
    return StepResult(metadata={"kid": protection.kid, "digest": digest, "arguments": arguments, "shown": repr(protection)})


def leaves_a_program(context: Context) -> StepResult:
    return StepResult(metadata={"pid": os.getpid(), "left": subprocess.Popen(SLEEP).pid})


def leaves_an_orphan(context: Context) -> StepResult:
    started = context.run("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!", seconds=60)
    return StepResult(metadata={"pid": os.getpid(), "left": int(started.output)})


def leaves_a_thread(context: Context) -> StepResult:
    Thread(target=Event().wait, daemon=True).start()
    return StepResult(metadata={"pid": os.getpid()})


def leaves_a_copy(context: Context) -> StepResult:
    if os.fork() == 0:
        raise ValueError("I am the copy")
    os.wait()
    return StepResult(message="I am the first")


def is_deaf(context: Context) -> None:
    child = subprocess.Popen(SLEEP)
    context.log(f"{os.getpid()} {child.pid}")
    while True:
        Event().wait()


def listens(context: Context) -> None:
    context.log("listening")
    while not context.cancelled:
        Event().wait(0.01)
    raise StepCancelled


def complains(context: Context) -> None:
    context.log("listening")
    while not context.cancelled:
        Event().wait(0.01)
    raise ValueError("I was not done")


def runs_a_program(context: Context) -> None:
    context.log("listening")
    context.run("sh", "-c", "echo $$ > pid; exec sleep 1000", seconds=100)


def runs_too_long(context: Context) -> None:
    context.run("sleep", "1000", seconds=0.2)


def runs_nothing(context: Context) -> None:
    context.run("no-such-program", seconds=1)


STEPS = (
    nothing,
    tells,
    surroundings,
    inspects,
    prints,
    raises,
    reads_a_missing_film,
    reads_a_file_of_the_machine,
    gives_up,
    leaves,
    exits,
    crashes,
    boasts,
    is_odd,
    makes_files,
    asks_for_protection,
    leaves_a_program,
    leaves_an_orphan,
    leaves_a_thread,
    leaves_a_copy,
    is_deaf,
    listens,
    complains,
    runs_a_program,
    runs_too_long,
    runs_nothing,
)
TRIAL = Workflow("trial", Trial, tuple(Step(step.__name__, step) for step in STEPS))
