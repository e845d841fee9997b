"""`publication_upload`: uploads the MP4 of a content to the destination of a publication.

It continues where an earlier run was interrupted. If a target asks for a pause, the run waits for it. A final failure names the
party at fault.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Final
from uuid import UUID

from pydantic import ConfigDict, Field, TypeAdapter

from domain.job.values import Severity
from workers.job.context import StepCancelled, StepContext, StepFailed, StepResult
from workers.job.media_paths import Segment
from workers.job.publication_uploads import OPEN, SAVE
from workers.job.workflow import JobParameters, Step, Workflow
from workers.job.workflows.vod.texts import published_tracks
from workers.media.captions.tracks import MOST_LISTED
from workers.ports.targets import (
    TEXTS,
    Details,
    OpenedDestination,
    PublishedText,
    PublishingTarget,
    TargetFailed,
    TargetFault,
    TextTarget,
    UploadProgress,
    UploadSource,
    UploadState,
)

NAME: Final = "publication_upload"
_VTT: Final = "text/vtt"
_PIECE: Final = 4 * 1024 * 1024
_STUCK: Final = 3
"""The number of attempts in a row without progress after which the upload fails."""
_LONGEST_PAUSE: Final = 60.0
_RATE_SECONDS: Final = 5.0
_SHORTEST: Final = 0.5
_OPENED: Final = TypeAdapter(OpenedDestination)
_CAUSES: Final[Mapping[TargetFault, str]] = {
    "retry": "publication",
    "destination": "destination",
    "media": "media",
    "publication": "publication",
}
_FINAL: Final = ("destination", "publication")


class PublicationUpload(JobParameters):
    """The parameters of `publication_upload`. `file` is in the folder of the content; by default it is the content's MP4."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content_id": "match-17", "publication": "8f51eaa1-decb-4863-89d3-9eb99768c67b"}]}
    )

    publication: UUID = Field(strict=False, description="The publication that the job belongs to; set by the product.")
    file: Segment | None = Field(None, description="Name of the film in the folder of the content; by default its MP4.")


def upload(context: StepContext[PublicationUpload]) -> StepResult:
    begun = monotonic()
    try:
        opened, state = _open_destination(context)
        source = _source(context)
        target = context.environment.target(opened.target, opened.config)
        texts = list(_texts(context))
        details = context.cancellation.wait_for(_Upload(context, opened, target).run(source, state, texts=texts))
    except TargetFailed as failed:
        raise StepFailed(str(failed), final=failed.kind in _FINAL, cause=_CAUSES[failed.kind]) from None
    context.progress(1, f"{source.size} bytes")
    return StepResult(
        message=f"Uploaded {source.size} bytes",
        metadata={"details": dict(details), "size": source.size, "sha256": source.sha256, "seconds": round(monotonic() - begun, 3)},
    )


class Rate:
    """Measures the rate of an upload over its last seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def after(self, sent: int, *, at: float) -> str:
        """Return the rate in words; empty while it is unknown. If bytes are sent again after a fault, it is measured again."""
        if self._samples and sent < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((at, sent))
        while at - self._samples[0][0] > _RATE_SECONDS and len(self._samples) > 2:
            self._samples.popleft()
        (since, before) = self._samples[0]
        return f", {(sent - before) / (at - since) / 1e6:.1f} MB/s" if at - since >= _SHORTEST else ""


class _Upload:
    """The attempts of one run."""

    def __init__(self, context: StepContext[Any], opened: OpenedDestination, target: PublishingTarget) -> None:
        self._context = context
        self._order = opened.order
        self._target = target
        self._furthest = 0
        self._rate = Rate()

    async def run(self, source: UploadSource, state: UploadState | None, *, texts: Sequence[PublishedText] = ()) -> Details:
        """Upload the film, and then its texts. If the destination accepts no texts, the log says so."""
        self._state = state
        try:
            details = await self._retry(
                lambda: self._target.upload(source, self._order, state=self._state, save=self._save, progress=self._progress)
            )
            return {**details, TEXTS: await self._add(texts, details)} if texts else details
        finally:
            with suppress(TargetFailed, OSError):
                await self._target.close()

    async def _add(self, texts: Sequence[PublishedText], details: Details) -> list[Details]:
        target, added = self._target, list[Details]()
        if TEXTS not in target.capabilities or not isinstance(target, TextTarget):
            self._context.log(
                f"The destination accepts no captions: {len(texts)} texts of the film are not published.", Severity.WARN
            )
            return added
        for text in texts:
            try:
                text_details = await self._retry(partial(target.add_text, text, self._order, details=details))
            except TargetFailed as failed:
                if failed.kind == "retry":
                    raise
                self._context.log(f"The text {text.name} is not published: {failed}", Severity.WARN)  # the film is
            else:
                added.append({"name": text.name, "language": text.language, **text_details})
        return added

    async def _retry(self, ask: Callable[[], Awaitable[Details]]) -> Details:
        stuck = 0
        while True:
            before = self._furthest
            try:
                return await ask()
            except TargetFailed as failed:
                stuck = 0 if self._furthest > before else stuck + 1
                if failed.kind != "retry" or stuck >= _STUCK:
                    raise
                pause = min(max(failed.after or 0.0, 2.0**stuck / 4), _LONGEST_PAUSE)
                self._context.log(f"{failed} Continuing at {self._furthest} bytes in {pause:g} s.", Severity.WARN)
            await asyncio.sleep(pause)

    async def _save(self, state: UploadState) -> None:
        self._state = state
        await asyncio.to_thread(_ask, self._context, SAVE, state=state)

    def _progress(self, progress: UploadProgress) -> None:
        self._furthest = max(self._furthest, progress.sent)
        rate = self._rate.after(progress.sent, at=monotonic())
        self._context.progress(progress.sent / max(progress.total, 1), f"{progress.sent} of {progress.total} bytes{rate}")


def _open_destination(context: StepContext[PublicationUpload]) -> tuple[OpenedDestination, UploadState | None]:
    answer = _ask(context, OPEN)
    opened = _OPENED.validate_python(answer["opened"])
    if opened.order.content_id != context.job.content_id:
        raise TargetFailed("publication", "The publication belongs to another content than the job.")
    return opened, answer["state"]


def _ask(context: StepContext[Any], kind: str, **question: Any) -> Mapping[str, Any]:
    answer = context.ask(kind, **question)
    if "failed" in answer:
        raise TargetFailed(answer["failed"]["kind"], str(answer["failed"]["sentence"]))
    if "refused" in answer:
        raise StepFailed(str(answer["refused"]))
    return answer


def _texts(context: StepContext[PublicationUpload]) -> Iterator[PublishedText]:
    """Yield the text tracks of the film as it is packaged. Playlists of compositions and other files have none."""
    taken: set[str] = set()
    content = context.job.content_id
    for track in published_tracks(context, content) if context.parameters.file is None else ():
        endings = [f".{track.language}.vtt", f".{track.language}.{track.kind.value}.vtt"]
        endings += [f".{track.language}.{track.kind.value}-{number}.vtt" for number in range(2, MOST_LISTED + 1)]
        ending = next(ending for ending in endings if ending not in taken)
        path = context.path(f"{content}/{track.file}")
        if path.is_file() and path.stat().st_size:
            taken.add(ending)
            source = UploadSource(path, path.stat().st_size, _sha256(context, path), _VTT)
            yield PublishedText(source, track.name, track.language, ending)


def _source(context: StepContext[PublicationUpload]) -> UploadSource:
    """Return the file with its hash. A missing file is no final failure, since it may be made later."""
    content = context.job.content_id
    path = context.path(f"{content}/{context.parameters.file or f'{content}.mp4'}")
    try:
        return UploadSource(path, path.stat().st_size, _sha256(context, path))
    except FileNotFoundError:
        raise TargetFailed("media", "There is no MP4 of the content here: ingest it first.") from None


def _sha256(context: StepContext[Any], path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if context.cancelled:
                raise StepCancelled
            digest.update(piece)
    return digest.hexdigest()


PUBLICATION_UPLOAD: Final = Workflow(
    NAME,
    PublicationUpload,
    (Step("upload", upload, needs_network=True),),
    submitted_by="publication",
    description="Uploads the film of a content to the destination of its publication.",
)
