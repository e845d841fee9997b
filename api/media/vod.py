"""The metadata of an Event's files for playback on demand: docs/reference/api/vod.md."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from api.http.response import Response, encode
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Instant, Wire
from domain.event.aggregate import MediaEvent
from domain.event.values import Quality, QualityVerdict
from domain.event.vod_metadata import VodMetadataHandlers
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from projections.event.queries import EventQueries

routes = APIRouter(prefix="/api/vod", tags=["VOD metadata"], route_class=MediaRoute)


class VodFile(Wire):
    """A file of the content."""

    name: str = Field(description="The path below the folder of the content.")
    size: int = Field(description="The size in bytes.")


class VodMetadata(Wire):
    """The metadata file as it is stored in the folder of the content. It may have more members."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "contentId": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
                    "duration": 5400.04,
                    "files": [{"name": "8f51eaa1-decb-4863-89d3-9eb99768c67b.mp4", "size": 3000000}],
                }
            ]
        }
    )

    content_id: str = Field(description="The `contentId` of the Event.")
    duration: float = Field(description="Length of the video in seconds.")
    files: list[VodFile] = Field(description="The generated files.")
    start_time: Instant | None = Field(
        default=None, description="The time when the first frame was captured; absent if it is not known."
    )


class FilmQualityReason(Wire):
    """A reason why a film does not pass."""

    check: str = Field(description="The check, such as `loudness`, `true_peak`, `black`, `freeze`, `silence` or `missing`.")
    verdict: QualityVerdict = Field(description="The consequence for the film.")
    message: str = Field(description="A sentence with the measure and the limit.")


class FilmQualitySound(Wire):
    """An audio track. A measure is null if the track is silent or too short."""

    track: int = Field(description="The number of the track, from 1.")
    language: str = Field(description='The language, by ISO 639-2; "" if it is not known.')
    integrated: float | None = Field(description="Integrated loudness by EBU R 128, in LUFS.")
    range: float | None = Field(description="Loudness range, in LU.")
    true_peak: float | None = Field(description="The largest true peak, in dBTP.")


class FilmQuality(Wire):
    """The result of the last check of the film. The full report is the file `quality.json` of the content."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "contentId": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
                    "jobId": 17,
                    "profile": "ebu-r128",
                    "verdict": "fail",
                    "keepPrivate": True,
                    "measuredAt": "2031-01-01T00:00:00.000Z",
                    "duration": 5400.04,
                    "reasons": [
                        {
                            "check": "loudness",
                            "verdict": "fail",
                            "message": "Audio track 1 is too loud: -14.0 LUFS, and not -23 LUFS ± 1 LU.",
                        }
                    ],
                    "sounds": [{"track": 1, "language": "eng", "integrated": -14.0, "range": 6.1, "truePeak": -0.4}],
                }
            ]
        }
    )

    content_id: UUID = Field(description="The `contentId` of the Event.")
    job_id: int = Field(description="The job that checked it.")
    profile: str = Field(description="The name of the profile.")
    verdict: QualityVerdict = Field(description="The worst verdict of the reasons.")
    keep_private: bool = Field(description="True if a film that fails stays private.")
    measured_at: Instant | None = Field(description="The time when the result was recorded.")
    duration: float | None = Field(description="Length of the picture in seconds.")
    reasons: list[FilmQualityReason] = Field(description="The reasons why it does not pass, at most 20.")
    sounds: list[FilmQualitySound] = Field(description="The audio tracks.")

    @classmethod
    def of(cls, key: UUID, quality: Quality) -> FilmQuality:
        fields = quality.model_dump(exclude={"job", "reasons", "sounds"})
        reasons = [FilmQualityReason(**part.model_dump()) for part in quality.reasons]
        sounds = [FilmQualitySound(**part.model_dump()) for part in quality.sounds]
        return cls(content_id=key, job_id=quality.job, reasons=reasons, sounds=sounds, **fields)


async def metadata_synced(request: Request, outcome: Outcome[MediaEvent], handlers: Service[VodMetadataHandlers]) -> Response:
    return Response(await handlers.metadata(UUID(outcome.aggregate.key)))


@routes.put("/{id}/metadata", dependencies=[WRITE], response_model=VodMetadata)
@rules(absent="never", respond=metadata_synced)
async def sync_vod_metadata(request: Request, id: UUID, handlers: Service[VodMetadataHandlers]) -> Outcome[MediaEvent]:
    """Apply the metadata file to the Event: its MP4 state, its duration, and its assets."""
    return await handlers.sync_metadata(id, invocation=request.invocation)


@routes.get("/{id}/metadata", dependencies=[READ], response_model=VodMetadata)
@rules(errors={409: "The metadata file is broken"})
async def get_vod_metadata(request: Request, id: UUID, handlers: Service[VodMetadataHandlers]) -> Response:
    """The metadata file of an Event, which describes its generated files."""
    return Response(await handlers.metadata(id))


@routes.get("/{id}/quality", dependencies=[READ], response_model=FilmQuality)
@rules(absent=204)
async def get_film_quality(request: Request, id: UUID, events: Service[EventQueries]) -> Response:
    """The result of the last check of the film of an Event: its verdict by a profile, and the main measures."""
    row = await events.by_id(id)
    if row is None or row.details.quality is None:
        raise NotFound(MediaEvent.KIND, str(id))
    return Response(encode(FilmQuality.of(id, row.details.quality)))
