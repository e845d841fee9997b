"""The metadata of an Event's files for playback on demand: docs/reference/api/vod.md."""

from __future__ import annotations

from uuid import UUID

from pydantic import ConfigDict, Field

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.kernel.wire import Instant, Wire
from domain.kernel.ports import Outcome
from domain.media_event.aggregate import MediaEvent
from domain.media_event.vod_metadata import VodMetadataHandlers

routes = Router("/vod", tag="VOD metadata", surface=MEDIA)


class VodFile(Wire):
    """A file of the content."""

    name: str = Field(description="Its path below the folder of the content.")
    size: int = Field(description="Its size in bytes.")


class VodMetadata(Wire):
    """The metadata file as it lies in the folder of the content; it may have more members."""

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
    files: list[VodFile] = Field(description="The files that were generated.")
    start_time: Instant | None = Field(
        default=None, description="When the first frame was captured; absent where that is not known."
    )


async def metadata_synced(request: Request, outcome: Outcome[MediaEvent], handlers: VodMetadataHandlers) -> Response:
    return Response(200, await handlers.metadata(UUID(outcome.aggregate.key)))


@routes.put("/{id}/metadata", WRITE, response_model=VodMetadata, absent=None, respond=metadata_synced)
async def sync_vod_metadata(request: Request, id: UUID, handlers: VodMetadataHandlers) -> Outcome[MediaEvent]:
    """Take over what the metadata file says: the MP4 state of the Event, its length, and its assets."""
    return await handlers.sync_metadata(id, invocation=request.invocation)


@routes.get("/{id}/metadata", READ, response_model=VodMetadata, errors={409: "The metadata file is broken"})
async def get_vod_metadata(request: Request, id: UUID, handlers: VodMetadataHandlers) -> Response:
    """The metadata file of an Event, which describes its generated files."""
    return Response(200, await handlers.metadata(id))
