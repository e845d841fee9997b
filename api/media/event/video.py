"""The Video object of an Event in a response. See docs/reference/playback.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from api.kernel.wire import Instant, Wire
from domain.event import playback
from domain.kernel import stream_time


class StreamUrl(Wire):
    """An address of a stream."""

    stream_protocol: int = Field(description="The protocol, as a number: 0 HLS, 1 HSS, 2 DASH, 3 HDS, 4 HLSe.")
    stream_protocol_string: str = Field(description="The protocol, by name.")
    url: str = Field(description="The address, with its query.")
    absolute_url_with_path_no_query: str = Field(description="The address without query and fragment.")
    stream_source: int = Field(
        description="The source as a number: ten times the index of the encoder plus the number of the address.",
    )
    stream_source_string: str = Field(description="The source by name, such as `CDN_PRIMARY_INDEX_0`.")

    @classmethod
    def of(cls, url: playback.StreamUrl) -> StreamUrl:
        return cls.model_construct(
            stream_protocol=int(url.protocol),
            stream_protocol_string=url.protocol.name,
            url=url.url,
            absolute_url_with_path_no_query=url.absolute_url_with_path_no_query,
            stream_source=url.source.number,
            stream_source_string=url.source.name,
        )


class RequestedStreamTime(Wire):
    """The start and end of playback, as requested and as understood."""

    in_point_original_string: str | None = Field(description="`in` as it was sent; null without one.")
    out_point_original_string: str | None = Field(description="`out` as it was sent; null without one.")
    in_point_date_time: Instant | None = Field(description="`in` in UTC, if it is a date-time; otherwise null.")
    out_point_date_time: Instant | None = Field(description="`out` in UTC, if it is a date-time; otherwise null.")
    in_point_time_span: str = Field(
        description="`in` as hh:mm:ss from the start of the stream, with .fff if there are milliseconds; `00:00:00` otherwise.",
    )
    out_point_time_span: str = Field(
        description="`out` as hh:mm:ss from the start of the stream, with .fff if there are milliseconds; `00:00:00` otherwise.",
    )
    in_point_has_value: bool = Field(description="True if there was an `in`.")
    out_point_has_value: bool = Field(description="True if there was an `out`.")
    in_point_is_absolute_date_time: bool = Field(description="True if `in` is a date-time.")
    out_point_is_absolute_date_time: bool = Field(description="True if `out` is a date-time.")

    @classmethod
    def of(cls, requested: stream_time.RequestedStreamTime) -> RequestedStreamTime:
        start, end = requested.in_point, requested.out_point
        return cls.model_construct(
            in_point_original_string=start.original,
            out_point_original_string=end.original,
            in_point_date_time=start.date_time,
            out_point_date_time=end.date_time,
            in_point_time_span=start.time_span,
            out_point_time_span=end.time_span,
            in_point_has_value=start.has_value,
            out_point_has_value=end.has_value,
            in_point_is_absolute_date_time=start.is_absolute,
            out_point_is_absolute_date_time=end.is_absolute,
        )


class PublishingPointUrl(Wire):
    """A publishing point of the channel, and the last report of its server while the Event is live."""

    url: str = Field(description="The address to which an encoder sends its stream, without user info, query and secrets.")
    state: str = Field(description="The state reported by the server, such as `started`; `unknown`: the server has not reported.")
    has_started: bool = Field(description="True if the state is `started`.")
    last_updated: Instant | None = Field(description="The time of the server's last report; null if there was none.")
    receiving_data: bool = Field(description="True if data arrived in the last seconds.")

    @classmethod
    def of(cls, point: playback.PublishingPointUrl) -> PublishingPointUrl:
        return cls.model_construct(
            url=point.url,
            state=point.state,
            has_started=point.has_started,
            last_updated=point.last_updated,
            receiving_data=point.receiving_data,
        )


class Video(Wire):
    """All addresses at which an Event can be watched."""

    web_page_url: str = Field(description='The page of the Event; "" without a player address in the channel.')
    player_url: str = Field(description='The player; "" without a player address in the channel.')
    embed_code: str = Field(description='An HTML iframe with `playerUrl`, or "".')
    scriptable_player_url: str = Field(description='The player with an interface for scripts, or "".')
    scriptable_embed_code: str = Field(description='An HTML iframe with `scriptablePlayerUrl`, or "".')
    requested_stream_time: RequestedStreamTime = Field(description="The parsed parameters `in` and `out`.")
    requested_audio_only: bool = Field(description="The parameter `audioOnly`.")
    requested_auto_start: bool = Field(description="The parameter `autoStart`.")
    live_urls: list[StreamUrl] = Field(description="Live streams, in the states 1 (with `viewUnpublished`) and 2.")
    current_state_urls: list[StreamUrl] = Field(
        description="The addresses for the current state, or of the requested playout profile.",
    )
    live_playout_profile_urls: dict[str, list[StreamUrl]] = Field(
        description="The live streams of each playout profile of the channel, by its id.",
    )
    vod_urls: list[StreamUrl] = Field(description="Streams on demand, in the states 10 and 11.")
    archiver_capture_publishing_point_urls: list[StreamUrl] = Field(description="Always empty.")
    remix_urls: list[StreamUrl] = Field(description="Streams of a remix, in the states 12 to 15.")
    archiver_urls: list[StreamUrl] = Field(description="Streams of recordings of an archiver, in the states 17 and 18.")
    private_mp4_url: str = Field(
        alias="privateMp4Url",
        description='The MP4 file for viewers of unpublished content; "" unless `mp4State` is AVAILABLE, and with `vodDrm`.',
    )
    public_mp4_url: str = Field(
        alias="publicMp4Url", description='The MP4 file; "" unless `mp4State` is AVAILABLE, and with `vodDrm`.'
    )
    websiteplayer_url: str = Field(description='The player for a web site, or "".')
    website_embed_code: str = Field(description='An HTML iframe with `websiteplayerUrl`, or "".')
    scriptable_website_player_url: str = Field(description='The player for a web site, with an interface for scripts, or "".')
    scriptable_website_embed_code: str = Field(description='An HTML iframe with `scriptableWebsitePlayerUrl`, or "".')
    publishing_point_urls: list[PublishingPointUrl] = Field(description="The publishing points of the channel.")
    ramp_servers: list[dict[str, Any]] = Field(
        description="The ramp servers of the channel as configured, with null for keys and passwords.",
    )

    @classmethod
    def of(cls, video: playback.Video) -> Video:
        return cls.model_construct(
            web_page_url=video.web_page_url,
            player_url=video.player_url,
            embed_code=video.embed_code,
            scriptable_player_url=video.scriptable_player_url,
            scriptable_embed_code=video.scriptable_embed_code,
            requested_stream_time=RequestedStreamTime.of(video.requested_stream_time),
            requested_audio_only=video.requested_audio_only,
            requested_auto_start=video.requested_auto_start,
            live_urls=_urls(video.live_urls),
            current_state_urls=_urls(video.current_state_urls),
            live_playout_profile_urls={key: _urls(urls) for key, urls in video.live_playout_profile_urls.items()},
            vod_urls=_urls(video.vod_urls),
            archiver_capture_publishing_point_urls=[],
            remix_urls=_urls(video.remix_urls),
            archiver_urls=_urls(video.archiver_urls),
            private_mp4_url=video.private_mp4_url,
            public_mp4_url=video.public_mp4_url,
            websiteplayer_url=video.website_player_url,
            website_embed_code=video.website_embed_code,
            scriptable_website_player_url=video.scriptable_website_player_url,
            scriptable_website_embed_code=video.scriptable_website_embed_code,
            publishing_point_urls=[PublishingPointUrl.of(point) for point in video.publishing_point_urls],
            ramp_servers=[dict(server.settings) for server in video.ramp_servers],
        )


def _urls(urls: Sequence[playback.StreamUrl]) -> list[StreamUrl]:
    return [StreamUrl.of(url) for url in urls]
