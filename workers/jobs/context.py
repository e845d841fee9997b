"""What a step is given: its job, places for its files, ways to the world, and somebody who listens. Issue 7, point 5.

A step is a plain function of this. It works in its workspace; what it declares with `publish` and `keep` is put in place after it
has ended, by the runner and only if this run is still the present one. So a step never writes below the media root itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from shutil import rmtree
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from domain.job.values import Output, Severity
from domain.job.values import Result as StepResult
from domain.kernel.strict_json import NotStrict, strict_json
from workers.jobs.cancellation import Cancellation, StepCancelled
from workers.jobs.orders import Finished, Heard, StepOrder
from workers.jobs.places import Outside, Places, path_fault, segment_fault
from workers.jobs.programs import Ended, Find, run
from workers.ports import NO_HEADERS, Began, Download, Downloaded

__all__ = ["Job", "Means", "StepCancelled", "StepContext", "StepFailed", "StepResult"]

P = TypeVar("P", bound=BaseModel)

MOST_METADATA: Final = 262_144
"""Bytes as JSON: it is kept in the log for ever."""
_LONGEST_LINE: Final = 65_536
_MOST_LINES: Final = 10_000
_BETWEEN_PROGRESS: Final = 0.2


class StepFailed(Exception):
    """The step did not succeed. `final`: another try would not either."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    client: str
    workflow: str
    content_id: str


@dataclass(frozen=True, slots=True)
class Means:
    """The ways to the world that a step host has."""

    media_root: Path
    download: Callable[[], Download]
    """A client for one download, in the loop that makes it."""
    find: Find


@dataclass
class StepContext(Generic[P]):
    """Belongs to one run of one step, and to the thread that runs it."""

    order: StepOrder = field(repr=False)
    parameters: P = field(repr=False)
    means: Means = field(repr=False)
    heard: Heard = field(repr=False)
    cancellation: Cancellation = field(repr=False)

    def __post_init__(self) -> None:
        order = self.order
        self.job = Job(order.job, order.client, order.workflow, order.content_id)
        self.task = order.task
        self.run_number = order.run
        self.results: Mapping[str, Mapping[str, Any]] = order.results
        self._places = Places(self.means.media_root, order.job)
        self._outputs: dict[str, Output] = {}
        self._published: list[str] = []
        self._lines = 0
        self._progressed = float("-inf")

    @property
    def cancelled(self) -> bool:
        """Whether the step is asked to end soon; it then raises `StepCancelled`, and is run again elsewhere."""
        return self.cancellation.asked

    # --- telling

    def log(self, message: str, severity: Severity = Severity.INFO) -> None:
        self._lines += 1
        if self._lines == _MOST_LINES:
            self.heard.log(Severity.WARN, f"The step has written {_MOST_LINES} lines; what follows is left out.")
        elif self._lines < _MOST_LINES:
            self.heard.log(Severity(severity), storable(message, _LONGEST_LINE))

    def progress(self, fraction: float, message: str = "") -> None:
        """From 0 to 1. What comes too soon after the last is passed over, except the end."""
        now = monotonic()
        if fraction >= 1 or now >= self._progressed + _BETWEEN_PROGRESS:
            self._progressed = now
            self.heard.progress(min(max(float(fraction), 0.0), 1.0), storable(message, 200))

    # --- files

    @cached_property
    def workspace(self) -> Path:
        """A folder for this run alone, empty at first."""
        folder = self._places.workspace(self.task, self.run_number)
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    @property
    def previous(self) -> Path | None:
        """The workspace of the run before, if something is left of it. Somebody may still write there: copy, and check."""
        run_number = self.order.previous_run
        folder = None if run_number is None else self._places.workspace(self.task, run_number)
        return folder if folder is not None and folder.is_dir() else None

    def path(self, name: str) -> Path:
        """A file below the media root. Whether it is there is not said."""
        _must(path_fault(name), f"the path {name!r}")
        return self._found(name)

    def job_file(self, name: str) -> Path:
        """A file that an earlier step of this job kept."""
        _must(segment_fault(name), f"the name {name!r}")
        return self._found(self._places.kept(name))

    def publish(self, path: Path, name: str, *, sha256: str | None = None) -> None:
        """`path`, in the workspace, becomes the file `name` of this job's content."""
        _must(path_fault(name), f"the path {name!r}")
        place = f"{self.job.content_id}/{name}"
        self._declare(path, place, sha256)
        self._published.append(place)

    def keep(self, path: Path, name: str, *, sha256: str | None = None) -> None:
        """`path`, in the workspace, is handed to later steps of this job."""
        _must(segment_fault(name), f"the name {name!r}")
        self._declare(path, self._places.kept(name), sha256)

    def _found(self, name: str) -> Path:
        try:
            return self._places.found(name)
        except Outside:
            raise StepFailed("The file lies outside of the media root.", final=True) from None

    def _declare(self, path: Path, name: str, sha256: str | None) -> None:
        """On the disk before anybody is told of it."""
        given = self.workspace / path
        inside = given.parent.resolve() / given.name
        root = self.workspace.resolve()
        if not inside.is_relative_to(root) or inside.is_symlink() or not inside.is_file():
            raise ValueError("what is published or kept is a file in the workspace")
        place = str(inside.relative_to(root))
        if name in self._outputs or any(output.path == place for output in self._outputs.values()):
            raise ValueError(f"{place} or {name} is declared already")
        with inside.open("rb") as file:
            digest = sha256 or file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        self._outputs[name] = Output(path=place, name=name, size=size, sha256=digest)

    # --- the world

    def download(
        self,
        url: str,
        to: Path,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        offset: int = 0,
        if_range: str | None = None,
        most: int | None = None,
        began: Callable[[Began], None] = lambda _: None,
        seen: Callable[[bytes], None] = lambda _: None,
    ) -> Downloaded:
        """Through the guarded client. `workers.ports.Download` says what the arguments mean and what it raises."""

        async def fetch() -> Downloaded:
            client = self.means.download()
            try:
                return await client.download(
                    url, to, headers=headers, offset=offset, if_range=if_range, most=most, began=began, seen=seen
                )
            finally:
                await client.close()

        return self.cancellation.wait_for(fetch())

    def run(self, program: str, *args: str, seconds: float) -> Ended:
        """A program that is installed, in the workspace, with an environment that holds none of ours."""
        found = self.means.find(program)
        if found is None:
            raise StepFailed(f"The program {program} is not installed.")
        try:
            return self.cancellation.wait_for(run([str(found), *args], folder=self.workspace, seconds=seconds))
        except TimeoutError:
            raise StepFailed(f"The program {program} did not end within {seconds:g} s.") from None

    # --- the end

    def finished(self, result: StepResult | None) -> Finished:
        """With the files that were published, whether the step names them or not."""
        said = result or StepResult()
        try:
            metadata = to_json(said.metadata)
            strict_json(metadata)
        except (NotStrict, PydanticSerializationError):
            raise StepFailed("The metadata of the step is not JSON that can be stored.", final=True) from None
        if len(metadata) > MOST_METADATA:
            raise StepFailed(f"The metadata of the step has more than {MOST_METADATA} bytes.", final=True)
        files = tuple(dict.fromkeys((*said.files, *self._published)))
        message = storable(said.message, _LONGEST_LINE)
        return Finished(StepResult(message=message, files=files, metadata=said.metadata), tuple(self._outputs.values()))


def storable(text: str, most: int) -> str:
    """As PostgreSQL takes it, and not too long."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _must(fault: str | None, what: str) -> None:
    if fault is not None:
        raise ValueError(f"{what} {fault}")
