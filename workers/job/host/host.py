"""The process in which steps run, one after another.

It is used again for the next step, since starting a process takes longer than many steps. It reports itself unfit for that if a
step left a program or a thread running.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from types import MappingProxyType
from typing import Any, Final

from pydantic import TypeAdapter

from domain.kernel.errors import Malformed
from workers.adapters.ffmpeg import find
from workers.job.cancellation import Cancellation, StepCancelled
from workers.job.context import StepContext, StepEnvironment, StepFailed, storable
from workers.job.host.channel import HostChannel, end_group
from workers.job.host.frames import Frame
from workers.job.media_paths import JOBS
from workers.job.protocol import Finished, Protection, StepFailure, StepOrder
from workers.job.registry import Registry
from workers.kernel.confinement import allow_processor_time
from workers.media.errors import Unusable
from workers.ports.outbound import Download, DownloadLimits
from workers.ports.targets import PublishingTarget, TargetSettings

LONGEST_REASON: Final = 2_000
_INTERRUPTED: Final = "The step was asked to end."
_ORDER: Final = TypeAdapter(StepOrder)
_PROTECTION: Final = TypeAdapter[Protection | None](Protection | None)
_TARGETS: Final = TypeAdapter(TargetSettings)
_LOOK: Final = 0.2
NO_TOKENS: Final[Mapping[str, str]] = MappingProxyType({})
_PR_SET_CHILD_SUBREAPER: Final = 36  # prctl(2)
_CHANNEL: Final = "channel"
_GRACE: Final = 0.1  # a thread that waited for a program ends a moment after it


class ReachablePlaces:
    """The files and directories that a process has access to since it was confined.

    A directory that another one is mounted over, or that was created again, is not accessible any more.
    """

    def __init__(self, identities: Mapping[str, tuple[int, int] | None]) -> None:
        self._identities = identities

    @classmethod
    @contextmanager
    def recorded(cls, paths: Sequence[str]) -> Iterator[ReachablePlaces]:
        """Record the places, and confine the process inside of the context. A place that was replaced meanwhile never counts as
        accessible: the restrictions may name either of the two.

        The descriptors prevent that a new directory gets the number of the old one."""
        descriptors = {path: _open_path(path) for path in paths}
        identities = {path: None if file is None else _identity(file) for path, file in descriptors.items()}
        try:
            yield cls(identities)
            identities.update({path: None for path in paths if _identity(path) != identities[path]})
        finally:
            for file in descriptors.values():
                if file is not None:
                    os.close(file)

    def all_accessible(self) -> bool:
        return all(_identity(path) == identity for path, identity in self._identities.items())


class StepHost:
    """Runs steps in the main thread, which signals and programs of steps need, and reads messages in another thread.

    `lacks` are sentences about the protections that the process lacks. `places` are the files that it has access to: it runs no
    further step when it has lost one of them.
    """

    def __init__(self, channel: HostChannel, registry: Registry, *, places: ReachablePlaces, lacks: Sequence[str] = ()) -> None:
        self._channel = channel
        self._registry = registry
        self._lacks = lacks
        self._places = places
        self._orders: SimpleQueue[tuple[StepOrder, Cancellation]] = SimpleQueue()
        self._answers: SimpleQueue[Frame] = SimpleQueue()
        self._asked = 0
        self._cancellation = Cancellation()
        self._environment: StepEnvironment | None = None
        self._client: Callable[[Mapping[str, str]], Download]
        self._pid = os.getpid()

    def serve(self) -> None:
        _adopt_orphans()
        threading.Thread(target=self._listen, name=_CHANNEL, daemon=True).start()
        while True:
            order, cancellation = self._orders.get()
            if not self._places.all_accessible():
                self._channel.send({"kind": "stale"})
                return
            begun = monotonic()
            allow_processor_time()
            ended = self._execute(order, cancellation)
            seconds = monotonic() - begun
            if os.getpid() != self._pid:
                os._exit(0)  # a fork of this process, made by the step, that returned from it
            name = "finished" if isinstance(ended, Finished) else "failed"
            self._channel.send({"kind": "ended", "fit": _alone(), "seconds": seconds, name: ended})

    def _listen(self) -> None:
        try:
            for frame in self._channel.frames():
                self._handle(frame)
        finally:
            end_group()

    def _handle(self, frame: Frame) -> None:
        match frame["kind"]:
            case "settings":
                self._client = partial(_client, frame)
                self._environment = _environment(frame, self._fetch if frame["fetches"] else None)
                tempfile.tempdir = str(self._environment.media_root / JOBS)  # libraries ask for one, and there is no /tmp here
                self._channel.patience = frame["lease_seconds"]
                self._channel.send({"kind": "ready", "lacks": list(self._lacks)})
            case "order":
                self._cancellation = Cancellation()
                self._orders.put((_ORDER.validate_python(frame["order"]), self._cancellation))
            case "answer":
                self._answers.put(frame)
            case "cancel":
                self._cancellation.request()

    def _protection(self, cancellation: Cancellation) -> Protection | None:
        answer = self._ask("protection", cancellation)
        if "refused" in answer:
            raise StepFailed(str(answer["refused"]))
        return _PROTECTION.validate_python(answer["protection"])

    def _fetch(self, name: str) -> Path:
        """Ask the worker for a file of the media root, and return its path."""
        answer = self._ask("fetch", self._cancellation, name=name)
        if "fault" in answer:
            raise StepFailed(str(answer["fault"]), final=answer["final"])
        return Path(answer["path"])

    def _ask(self, kind: str, cancellation: Cancellation, **question: Any) -> Frame:
        """Ask the worker, and return its answer. An answer with another number was for a step that was cancelled before it came."""
        self._asked += 1
        self._channel.send({**question, "kind": kind, "number": self._asked})
        while not cancellation.requested:
            with suppress(Empty):
                answer = self._answers.get(timeout=_LOOK)
                if answer["number"] == self._asked:
                    return answer
        raise StepCancelled

    def _execute(self, order: StepOrder, cancellation: Cancellation) -> Finished | StepFailure:
        cause = ""
        try:
            return self._step(order, cancellation)
        except StepFailed as failed:
            reason, final, cause = str(failed), failed.final, failed.cause
        except Unusable as refused:
            reason, final = str(refused), refused.final
        except StepCancelled:
            reason, final = _INTERRUPTED, False
        except BaseException as error:  # also `SystemExit`: it ends the step, not the process
            reason, final = self._description(error), False
        return StepFailure(
            storable(reason, LONGEST_REASON), final=final, interrupted=cancellation.requested and not final, cause=cause
        )

    def _description(self, error: BaseException) -> str:
        """Describe an error. The path of a file is shown relative to the media root; other paths would reveal details of this
        machine."""
        message = "(its message cannot be made)"
        with suppress(Exception):
            message = (error.strerror if isinstance(error, OSError) else None) or str(error)
            if isinstance(error, OSError) and error.filename is not None and self._environment is not None:
                message = f"{Path(os.fsdecode(error.filename)).relative_to(self._environment.media_root)}: {message}"
        return f"{type(error).__name__}: {message}" if message else type(error).__name__

    def _step(self, order: StepOrder, cancellation: Cancellation) -> Finished:
        assert self._environment is not None, "the settings come first"
        try:
            workflow, parameters = self._registry.checked(order.workflow, order.parameters)
        except Malformed as refusal:
            raise StepFailed(f"This worker cannot run it: {refusal}") from None
        protection = partial(self._protection, cancellation)
        environment = replace(self._environment, download=partial(self._client, order.point_tokens))
        context: StepContext[Any] = StepContext(
            *(order, parameters, environment, self._channel, cancellation, protection),
            ask=lambda kind, **question: self._ask(kind, cancellation, **question),
        )
        return context.finished(workflow.step(order.step).run(context))


def _client(settings: Frame, point_tokens: Mapping[str, str]) -> Download:
    from workers.adapters.outbound_http import GuardedClient  # most steps have no network, and it takes a third of the start

    allow = [ip_network(network) for network in settings["allow"]]
    return GuardedClient(allow, origin=settings["origin"], read_token=point_tokens.get)


def _environment(settings: Frame, fetch: Callable[[str], Path] | None) -> StepEnvironment:
    allow = [ip_network(network) for network in settings["allow"]]
    targets = _TARGETS.validate_python(settings["targets"])

    def target_of(target: int, config: Mapping[str, Any]) -> PublishingTarget:
        from workers.adapters.outbound_http import GuardedClient
        from workers.adapters.targets.registry import TargetRegistry

        return TargetRegistry(lambda: GuardedClient(allow), settings=targets)(target, config)

    def program(name: str) -> Path | None:
        chosen = settings["programs"].get(name)
        return find(name) if chosen is None else Path(chosen)

    limits = DownloadLimits(**settings["downloads"])
    client = partial(_client, settings, NO_TOKENS)
    return StepEnvironment(
        Path(settings["media_root"]), client, program, limits, fetch, origin=settings["origin"], target=target_of
    )


def _open_path(path: str) -> int | None:
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None


def _identity(place: str | int) -> tuple[int, int] | None:
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _adopt_orphans() -> None:
    """Make orphaned processes of a step children of this process, so that `_alone` finds them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _alone() -> bool:
    """Return True if no process and no thread of the step is left. Reaps ended processes."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    others = [thread for thread in threading.enumerate() if thread.name not in (_CHANNEL, "MainThread")]
    for thread in others:
        thread.join(_GRACE)
    return not any(thread.is_alive() for thread in others)
