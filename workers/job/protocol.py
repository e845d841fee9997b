"""Messages between a worker and a step's process: the order for one run of one step, and its result.

They go through a channel between the processes as JSON.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from domain.job.values import Output, Result, Severity


@dataclass(frozen=True, slots=True)
class StepOrder:
    """An order to run a step.

    `results` holds the metadata of earlier steps by name. The run `previous_run` may have left files in its workspace.
    `point_tokens` holds the tokens with which the step reads publishing points of the built-in origin, by the names of the points.
    """

    job: int
    task: int
    run: int
    workflow: str
    step: str
    client: str
    content_id: str
    parameters: Mapping[str, Any] = field(repr=False)
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    previous_run: int | None = None
    point_tokens: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Protection:
    """The encryption of a content, in hexadecimal digits: its key, the IV for block chaining, and all pssh boxes by encryption
    scheme.

    `drm_json` describes it without the key. A running step asks for it, so that it appears in no order, event or log line.
    """

    kid: str
    key: str = field(repr=False)
    iv: str
    fairplay_uri: str
    boxes: Mapping[str, str]
    drm_json: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finished:
    """The outcome of a step that succeeded. `outputs` are in the workspace of its run and not published yet."""

    result: Result
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True)
class StepFailure:
    """The outcome of a step that failed.

    `final` means that another attempt would fail in the same way. `interrupted` means that the step was cancelled, and might have
    succeeded. `cause` is a word of the workflow for the owner of the job.
    """

    reason: str
    final: bool = False
    interrupted: bool = False
    cause: str = ""


Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers a question of a step from the worker, which has the network and the database. It raises nothing."""


class StepListener(Protocol):
    """Receives the progress and log lines of a running step."""

    def progress(self, fraction: float, message: str) -> None: ...

    def log(self, severity: Severity, message: str) -> None: ...
