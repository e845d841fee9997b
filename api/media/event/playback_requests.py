"""Query parameters of a GET of one Event. See docs/reference/playback.md."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field, WithJsonSchema

from api.kernel.pages import FreshQuery
from api.kernel.wire import DateTime, Flag

_SOURCE = "^([0-9]{1,4}[0-4]|[0-4]|(CDN|ORIGIN)_(PRIMARY|SECONDARY)_INDEX_[0-9]{1,4}|PRIVATE_INDEX_[0-9]{1,4})$"
StreamTime = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "pattern": r"^\d\d:[0-5]\d:[0-5]\d(\.\d{1,3})?$"},
            ]
        }
    ),
    DateTime(),
]
"""A date-time, or a time from the start of the stream. The domain parses it and keeps it as it was sent."""
SourceName = Annotated[str, Field(json_schema_extra={"pattern": _SOURCE, "examples": ["CDN_PRIMARY_INDEX_0"]})]


class PlaybackQuery(FreshQuery):
    """Parameters of a GET of one Event. See docs/reference/playback.md."""

    in_point: StreamTime | None = Field(
        default=None,
        alias="in",
        description="Start of playback: ISO 8601, or hh:mm:ss[.fff] from its start.",
    )
    out_point: StreamTime | None = Field(
        default=None,
        alias="out",
        description="End of playback: ISO 8601, or hh:mm:ss[.fff] from its start; not before `in`.",
    )
    audio_only: Flag = Field(default=False, description="Request audio only. Default false.")
    auto_start: Flag = Field(default=False, description="Start playback automatically. Default false.")
    process_video: Flag = Field(default=False, description="Show the Video object. Default false.")
    view_unpublished: Flag = Field(default=False, description="Show live streams in LIVE_UNPUBLISHED too. Default false.")
    stream_source: SourceName | None = Field(
        default=None,
        description="Keep the URLs of one source only, by name or number, such as CDN_PRIMARY_INDEX_0. Default: all.",
    )
    live_playout_profile_id: UUID | None = Field(
        default=None,
        description="A playout profile of the channel, whose URLs become currentStateUrls. Default: none.",
    )


class PlaybackReferenceQuery(PlaybackQuery):
    """Parameters of a GET of one Event by its reference id or external id."""

    id: Annotated[str, Field(min_length=1)] = Field(
        description="The reference id or external id, percent-encoded. If several Events have it, the newest is shown.",
    )
