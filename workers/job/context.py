"""The context of a step: its job, its files, downloads and programs, and the listener for progress and log lines.

A step is a plain function of this. It works in its workspace. The files that it declares with `publish` and `keep` are moved to
their places after it has ended, by the worker, and only if its run is still the current one. So a step never writes to the media
root directly.
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
from workers.job.cancellation import Cancellation, StepCancelled
from workers.job.download_limits import DownloadLimitReached, DownloadWatch
from workers.job.media_paths import MediaPaths, PathEscape, path_fault, segment_fault
from workers.job.programs import Ended, Find, OnLine, Stalled, run
from workers.job.protocol import Finished, Protection, StepListener, StepOrder
from workers.kernel.media_programs import missing
from workers.ports.outbound import DEFAULT_LIMITS, NO_HEADERS, Download, Downloaded, DownloadLimits, DownloadStart
from workers.ports.targets import PublishingTarget, Targets

__all__ = ["StepCancelled", "StepContext", "StepEnvironment", "StepFailed", "StepJob", "StepResult"]

P = TypeVar("P", bound=BaseModel)

MOST_METADATA: Final = 262_144
"""The largest size of the metadata as JSON in bytes. It is limited because the event log stores it for ever."""
_LONGEST_LINE: Final = 65_536
_MOST_LINES: Final = 10_000
_BETWEEN_PROGRESS: Final = 0.2


class StepFailed(Exception):
    """Raised when the step failed.

    `final` means that another attempt would fail too. `cause` is a word for the owner of the job.
    """

    def __init__(self, reason: str, *, final: bool = False, cause: str = "") -> None:
        super().__init__(reason)
        self.final = final
        self.cause = cause


@dataclass(frozen=True, slots=True)
class StepJob:
    id: int
    client: str
    workflow: str
    content_id: str


def no_targets(target: int, config: Mapping[str, Any]) -> PublishingTarget:
    """Refuse to make a target: for steps without network."""
    raise StepFailed("This step has no network, so it cannot publish.")


@dataclass(frozen=True, slots=True)
class StepEnvironment:
    """The means that a step's process provides to its steps."""

    media_root: Path
    download: Callable[[], Download]
    """Makes a client for one download, for the event loop that calls it."""
    find: Find
    limits: DownloadLimits = DEFAULT_LIMITS
    fetch: Callable[[str], Path] | None = None
    """Provides a file of the media root if that is not a directory."""
    origin: str | None = None
    """The address of the built-in origin; None if there is none."""
    target: Targets = no_targets
    """Makes the target of a destination."""


@dataclass
class StepContext(Generic[P]):
    """The context of one run of one step. It belongs to the thread that runs the step."""

    order: StepOrder = field(repr=False)
    parameters: P = field(repr=False)
    environment: StepEnvironment = field(repr=False)
    listener: StepListener = field(repr=False)
    cancellation: Cancellation = field(repr=False)
    protection: Callable[[], Protection | None] = field(default=lambda: None, repr=False)
    """Asks the worker how the content of the job is encrypted; None if it is not encrypted."""
    ask: Callable[..., Mapping[str, Any]] = field(
        default=lambda kind, **_: {"refused": f"The worker does not answer {kind}."}, repr=False
    )
    """Asks the worker a question of this kind, and waits for the answer."""

    def __post_init__(self) -> None:
        order = self.order
        self.job = StepJob(order.job, order.client, order.workflow, order.content_id)
        self.task = order.task
        self.run_number = order.run
        self.results: Mapping[str, Mapping[str, Any]] = order.results
        self._paths = MediaPaths(self.environment.media_root, order.job)
        self._outputs: dict[str, Output] = {}
        self._published: list[str] = []
        self._lines = 0
        self._progressed = float("-inf")

    @property
    def cancelled(self) -> bool:
        """Return True if the step should end soon: it then raises `StepCancelled`, and is run again by another worker."""
        return self.cancellation.requested

    # --- progress and log lines

    def log(self, message: str, severity: Severity = Severity.INFO) -> None:
        self._lines += 1
        if self._lines == _MOST_LINES:
            self.listener.log(Severity.WARN, f"The step has written {_MOST_LINES} lines; the rest is left out.")
        elif self._lines < _MOST_LINES:
            self.listener.log(Severity(severity), storable(message, _LONGEST_LINE))

    def progress(self, fraction: float, message: str = "") -> None:
        """Report progress from 0 to 1. A call within 0.2 s of the last one is ignored, except at the end."""
        now = monotonic()
        if fraction >= 1 or now >= self._progressed + _BETWEEN_PROGRESS:
            self._progressed = now
            self.listener.progress(min(max(float(fraction), 0.0), 1.0), storable(message, 200))

    # --- files

    @cached_property
    def workspace(self) -> Path:
        """The folder of this run, empty at first."""
        folder = self._paths.workspace(self.task, self.run_number)
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    @property
    def previous(self) -> Path | None:
        """The workspace of the last run that left files, if it still exists; None if there is none. A run that fails at its start
        leaves none.

        Another process may still write there: copy the files and check them.
        """
        numbers = range(self.order.previous_run or 0, 0, -1)
        folders = (self._paths.workspace(self.task, number) for number in numbers)
        return next((folder for folder in folders if folder.is_dir() and any(folder.iterdir())), None)

    def path(self, name: str) -> Path:
        """Return a file of the media root, by its path there. It need not exist. It may be a copy, which must not be changed."""
        _require(path_fault(name), f"the path {name!r}")
        return self._resolve(name)

    def job_file(self, name: str) -> Path:
        """Return a file that an earlier step of this job kept for later steps."""
        _require(segment_fault(name), f"the name {name!r}")
        file = self._resolve(self._paths.kept_path(name))
        if not file.exists():
            raise StepFailed(f"The file {name}, which an earlier step kept, no longer exists. Run the job again.", final=True)
        return file

    def publish(self, path: Path, name: str, *, sha256: str | None = None) -> None:
        """Publish the file `path` of the workspace as `name` in the folder of the job's content."""
        _require(path_fault(name), f"the path {name!r}")
        place = f"{self.job.content_id}/{name}"
        self._declare(path, place, sha256)
        self._published.append(place)

    def keep(self, path: Path, name: str, *, sha256: str | None = None) -> None:
        """Keep the file `path` of the workspace for later steps of this job."""
        _require(segment_fault(name), f"the name {name!r}")
        self._declare(path, self._paths.kept_path(name), sha256)

    def _resolve(self, name: str) -> Path:
        if self.environment.fetch is not None:
            return self.environment.fetch(name)
        try:
            return self._paths.resolve(name)
        except PathEscape:
            raise StepFailed("The file is outside the media root.", final=True) from None

    def _declare(self, path: Path, name: str, sha256: str | None) -> None:
        """Declare an output. The file is synced to disk before it is declared."""
        file_path = self.workspace / path
        inside = file_path.parent.resolve() / file_path.name
        root = self.workspace.resolve()
        if not inside.is_relative_to(root) or inside.is_symlink() or not inside.is_file():
            raise ValueError("only a file in the workspace can be published or kept")
        place = str(inside.relative_to(root))
        if "\n" in place:
            raise ValueError("a file with a line break in its name cannot be published or kept")
        if name in self._outputs or any(output.path == place for output in self._outputs.values()):
            raise ValueError(f"{place} or {name} has already been declared")
        with inside.open("rb") as file:
            digest = sha256 or file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        self._outputs[name] = Output(path=place, name=name, size=size, sha256=digest)

    # --- downloads and programs

    def download(
        self,
        url: str,
        to: Path,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        offset: int = 0,
        if_range: str | None = None,
        most: int | None = None,
        began: Callable[[DownloadStart], None] = lambda _: None,
        seen: Callable[[bytes], None] = lambda _: None,
    ) -> Downloaded:
        """Download a file through the guarded client.

        `workers.ports.outbound.Download` documents the arguments and the errors. If a limit of downloads is exceeded, the step
        fails and the file is deleted.
        """

        watch = self._downloads

        def begin(start: DownloadStart) -> None:
            watch.expects(start.offset, start.total)
            began(start)

        def take(piece: bytes) -> None:
            watch.took(len(piece))
            seen(piece)

        async def fetch() -> Downloaded:
            client = self.environment.download()
            try:
                return await client.download(
                    url, to, headers=headers, offset=offset, if_range=if_range, most=most, began=begin, seen=take
                )
            finally:
                await client.close()

        watch.begin(offset)
        try:
            return self.cancellation.wait_for(fetch())
        except DownloadLimitReached as reached:
            to.unlink(missing_ok=True)
            raise StepFailed(str(reached), final=reached.final) from None
        finally:
            watch.end()

    @cached_property
    def _downloads(self) -> DownloadWatch:
        return DownloadWatch(self.environment.limits, self.workspace)

    def run(
        self,
        program: str,
        *args: str,
        seconds: float,
        stall: float | None = None,
        on_line: OnLine | None = None,
        given: bytes = b"",
    ) -> Ended:
        """Run an installed program in the workspace, without the product's environment variables.

        `on_line` receives its lines of output, and returns True for those that show progress; a program that shows none for `stall`
        seconds is ended. `given` is its standard input, which is the place for secrets: every user of the machine may read
        arguments.
        """
        path = self.environment.find(program)
        if path is None:
            raise StepFailed(missing(program))
        try:
            command = run([str(path), *args], folder=self.workspace, seconds=seconds, stall=stall, on_line=on_line, given=given)
            return self.cancellation.wait_for(command)
        except Stalled:
            raise StepFailed(f"The program {program} made no progress for {stall:g} s.") from None
        except TimeoutError:
            raise StepFailed(f"The program {program} did not end within {seconds:g} s.") from None

    # --- result

    def finished(self, result: StepResult | None) -> Finished:
        """Return the result with all published files, even those that the step does not name."""
        result_of_step = result or StepResult()
        try:
            metadata = to_json(result_of_step.metadata)
            strict_json(metadata)
        except (NotStrict, PydanticSerializationError):
            raise StepFailed("The metadata of the step is not JSON that can be stored.", final=True) from None
        if len(metadata) > MOST_METADATA:
            raise StepFailed(f"The metadata of the step has more than {MOST_METADATA} bytes.", final=True)
        files = tuple(dict.fromkeys((*result_of_step.files, *self._published)))
        message = storable(result_of_step.message, _LONGEST_LINE)
        return Finished(StepResult(message=message, files=files, metadata=result_of_step.metadata), tuple(self._outputs.values()))


def storable(text: str, most: int) -> str:
    """Return a text that PostgreSQL can store, cut to `most` characters."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _require(fault: str | None, what: str) -> None:
    if fault is not None:
        raise ValueError(f"{what} {fault}")
