"""The Video object of an Event: every address at which it can be watched at this moment.

It is a pure function of the Event, the configurations of its channel and flow, and the request. docs/reference/playback.md says
which array is filled in which state. A text without a value is "".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from typing import Final
from urllib.parse import quote
from uuid import UUID

from domain.channel.placeholders import of_content, of_packaging, packaging
from domain.channel.playback import (
    ChannelConfiguration,
    PlaybackFlow,
    PlaybackServer,
    StreamAddresses,
)
from domain.channel.points import UNKNOWN
from domain.channel.streams import StreamPlace, StreamProtocol
from domain.event.published_files import PUBLIC
from domain.event.values import LIVE, ON_DEMAND, EventDetails, EventState, Mp4State
from domain.kernel.errors import Malformed
from domain.kernel.stream_time import RequestedStreamTime, StreamPoint


@dataclass(frozen=True, slots=True)
class StreamSource:
    """The source of a stream: a place, and the index of the encoder in its channel (always 0 for the streams of a flow).

    Its name is `<place>_INDEX_<n>` and its number `10 * n + place`: CDN_PRIMARY_INDEX_0 is 0, CDN_SECONDARY_INDEX_1 is 11. Not an
    Enum, because a channel can have any number of encoders.
    """

    place: StreamPlace
    index: int = 0

    @property
    def number(self) -> int:
        return 10 * self.index + self.place

    @property
    def name(self) -> str:
        return f"{self.place.name}_INDEX_{self.index}"

    @classmethod
    def read(cls, text: str, *, field: str = "streamSource") -> StreamSource:
        """Return the source with this name, in any case, or this number."""
        if re.fullmatch(r"[0-9]{1,4}[0-4]|[0-4]", text):
            return cls(StreamPlace(int(text) % 10), int(text) // 10)
        named = re.fullmatch(r"([A-Z_]+)_INDEX_([0-9]{1,4})", text.upper())
        if named and named[1] in StreamPlace.__members__:
            return cls(StreamPlace[named[1]], int(named[2]))
        raise Malformed.at(field, "is not a stream source; an example is CDN_PRIMARY_INDEX_0")


@dataclass(frozen=True, slots=True)
class StreamUrl:
    """A stream URL of the Video object."""

    protocol: StreamProtocol
    url: str
    source: StreamSource

    @property
    def absolute_url_with_path_no_query(self) -> str:
        """The URL without query and fragment, which logs, caches and allow-lists compare."""
        return split_url(self.url)[0]


def split_url(url: str) -> tuple[str, str, str]:
    """Split a URL into address, query and fragment, at `?` and `#` only.

    A configured text need not be a URL; `urllib.parse.urlsplit` raises for some, such as `http://[`.
    """
    rest, _, fragment = url.partition("#")
    address, _, query = rest.partition("?")
    return address, query, fragment


def join_url(address: str, *, query: str, fragment: str) -> str:
    return address + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")


def url_below(base: str, path: str) -> str:
    """Return the URL of `path` below a base URL, whose query is kept; "" without a base."""
    address, query, fragment = split_url(base)
    return join_url(f"{address.rstrip('/')}/{path}", query=query, fragment=fragment) if address else ""


def with_parameters(url: str, parameters: Mapping[str, str]) -> str:
    """Return the URL with `parameters` added to its query.

    A parameter with the same name is replaced, because servers differ in which of two they use. Others stay as written.
    """
    if not parameters:
        return url
    address, query, fragment = split_url(url)
    retained = [part for part in query.split("&") if part and part.partition("=")[0] not in parameters]
    added = [f"{name}={encoded(value, safe=':/')}" for name, value in parameters.items()]
    return join_url(address, query="&".join(retained + added), fragment=fragment)


def encoded(text: str, *, safe: str = "") -> str:
    """Return the text percent-encoded as UTF-8. A lone surrogate becomes `?` instead of an error."""
    return quote(text, safe=safe, errors="replace")


AUDIO_ONLY: Final = {"filter": 'type=="audio"'}


REMIX: Final = frozenset({EventState.REMIX_GENERATING, EventState.REMIX_PRIVATE, EventState.REMIX_PUBLIC, EventState.REMIX_ERROR})
ARCHIVER: Final = frozenset({EventState.ARCHIVER_PRIVATE, EventState.ARCHIVER_PUBLIC})
FILM: Final = ON_DEMAND | {EventState.COMPOSE_PRIVATE, EventState.COMPOSE_PUBLIC}


@dataclass(frozen=True, slots=True)
class PlayableEvent:
    """The fields of an Event that playback depends on; the states are the numbers of `values.py`.

    The limits become parameters of the URLs. 0 and None both mean: not set."""

    id: UUID
    content_id: str
    state: int
    title: str = ""
    mp4_state: int = 0
    dvr_length: int | None = None
    max_bitrate: int | None = None
    min_bitrate: int | None = None
    vod_drm: bool = False
    recorded_part: tuple[datetime, datetime] | None = None
    """The times of the recorded stream that plays in the state INSTANT_VOD."""


@dataclass(frozen=True, slots=True)
class PlaybackRequest:
    """The query parameters of `GET /event/{id}` that shape the Video object."""

    stream_time: RequestedStreamTime = field(default_factory=RequestedStreamTime)
    audio_only: bool = False
    auto_start: bool = False
    view_unpublished: bool = False
    stream_source: StreamSource | None = None
    live_playout_profile_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class PlayerAddresses:
    """Addresses of the operator's web pages: `<base>/event/<id>`, `<base>/player/<id>` and `<base>/website-player/<id>`.

    A base that is not http or https is ignored, because other sites embed these addresses."""

    base_url: str = ""

    def page(self, name: str, event_id: UUID) -> str:
        is_web = self.base_url.lower().startswith(("http://", "https://"))
        return url_below(self.base_url, f"{name}/{event_id}") if is_web else ""


@dataclass(frozen=True, slots=True)
class PublishingPointUrl:
    """A publishing point in the Video object, with the last report of its prober."""

    url: str
    state: str = UNKNOWN
    has_started: bool = False
    last_updated: datetime | None = None
    receiving_data: bool = False


@dataclass(frozen=True, slots=True)
class Video:
    """The members of the Video object.

    `archiver_capture_publishing_point_urls` is always empty: nothing configures the publishing points of a capture."""

    web_page_url: str
    player_url: str
    embed_code: str
    scriptable_player_url: str
    scriptable_embed_code: str
    website_player_url: str
    website_embed_code: str
    scriptable_website_player_url: str
    scriptable_website_embed_code: str
    requested_stream_time: RequestedStreamTime
    requested_audio_only: bool
    requested_auto_start: bool
    live_urls: Sequence[StreamUrl]
    current_state_urls: Sequence[StreamUrl]
    live_playout_profile_urls: Mapping[str, Sequence[StreamUrl]]
    vod_urls: Sequence[StreamUrl]
    remix_urls: Sequence[StreamUrl]
    archiver_urls: Sequence[StreamUrl]
    archiver_capture_publishing_point_urls: Sequence[StreamUrl]
    private_mp4_url: str
    public_mp4_url: str
    publishing_point_urls: Sequence[PublishingPointUrl]
    ramp_servers: Sequence[PlaybackServer]


def current_flow(details: EventDetails) -> UUID | None:
    """Return the flow from which the Event plays in its present state."""
    if details.state in REMIX:
        return details.remixflow_id or details.flow_id
    if details.state in ARCHIVER:
        return details.archiverflow_id or details.flow_id
    return details.flow_id


def video(
    event: PlayableEvent,
    *,
    channel: ChannelConfiguration | None,
    flow: PlaybackFlow | None,
    request: PlaybackRequest,
    player: PlayerAddresses,
    points: Sequence[PublishingPointUrl] = (),
) -> Video:
    channel, flow = channel or ChannelConfiguration(), flow or PlaybackFlow()
    state_urls = _state_urls(event, channel=channel, flow=flow, request=request)
    profiles = _profile_urls(event, channel=channel, request=request)
    current = _of_profile(profiles, request.live_playout_profile_id) or state_urls
    plain = _player(event, page="player", player=player, streams=current, request=request)
    website = _player(event, page="website-player", player=player, streams=current, request=request)
    return Video(
        web_page_url=player.page("event", event.id),
        player_url=plain.url,
        embed_code=plain.embed_code,
        scriptable_player_url=plain.scriptable_url,
        scriptable_embed_code=plain.scriptable_embed_code,
        website_player_url=website.url,
        website_embed_code=website.embed_code,
        scriptable_website_player_url=website.scriptable_url,
        scriptable_website_embed_code=website.scriptable_embed_code,
        requested_stream_time=request.stream_time,
        requested_audio_only=request.audio_only,
        requested_auto_start=request.auto_start,
        live_urls=state_urls if event.state in LIVE else (),
        current_state_urls=current,
        live_playout_profile_urls=profiles,
        vod_urls=state_urls if event.state in FILM or event.state == EventState.INSTANT_VOD else (),
        remix_urls=state_urls if event.state in REMIX else (),
        archiver_urls=state_urls if event.state in ARCHIVER else (),
        archiver_capture_publishing_point_urls=(),
        private_mp4_url=_mp4_url(event, flow.storage_url_private),
        public_mp4_url=_mp4_url(event, flow.storage_url_public),
        publishing_point_urls=points,
        ramp_servers=channel.ramp_servers,
    )


def _state_urls(
    event: PlayableEvent, *, channel: ChannelConfiguration, flow: PlaybackFlow, request: PlaybackRequest
) -> tuple[StreamUrl, ...]:
    if event.state in LIVE or (event.state == EventState.INSTANT_VOD and event.recorded_part is not None):
        indexed = ((encoder.index, stream) for encoder in channel.encoders for stream in encoder.streams)
        shown = event.state == EventState.INSTANT_VOD or _shows_live(event, request)
        return _stream_urls(event, indexed, request=request) if shown else ()
    if event.state in FILM | REMIX | ARCHIVER:
        return _stream_urls(event, ((0, stream) for stream in flow.streams), request=request)
    return ()


def _profile_urls(
    event: PlayableEvent, *, channel: ChannelConfiguration, request: PlaybackRequest
) -> dict[str, tuple[StreamUrl, ...]]:
    """Return the live URLs of each playout profile, by its id. If several profiles have one id, the first is used."""
    urls: dict[str, tuple[StreamUrl, ...]] = {}
    for profile in channel.playout_profiles if _shows_live(event, request) else ():
        urls.setdefault(profile.id, _stream_urls(event, ((0, stream) for stream in profile.streams), request=request))
    return urls


def _shows_live(event: PlayableEvent, request: PlaybackRequest) -> bool:
    """Return True if live URLs are shown. Those of an unpublished stream are shown only with `viewUnpublished`."""
    return event.state in LIVE and (event.state != EventState.LIVE_UNPUBLISHED or request.view_unpublished)


def _stream_urls(
    event: PlayableEvent, streams: Iterable[tuple[int, StreamAddresses]], *, request: PlaybackRequest
) -> tuple[StreamUrl, ...]:
    """Return URLs in the order of the configuration, and for each stream in the order of its places.

    The private URL is for viewers of unpublished content: it comes first in a state that is not public, and is absent in a public
    one.
    """
    shared = [place for place in StreamPlace if place is not StreamPlace.PRIVATE]
    places = shared if event.state in PUBLIC else [StreamPlace.PRIVATE, *shared]
    parameters, content = _parameters(event, request), encoded(event.content_id)
    return tuple(
        StreamUrl(stream.protocol, with_parameters(_filled(stream, place, event, content), parameters), source)
        for index, stream in streams
        for place in places
        if place in stream.urls and (source := StreamSource(place, index)) == (request.stream_source or source)
    )


def _filled(stream: StreamAddresses, place: StreamPlace, event: PlayableEvent, content: str) -> str:
    url = of_content(stream.urls[place], content)
    streamed = event.state in LIVE or event.state == EventState.INSTANT_VOD
    return url if streamed else of_packaging(url, packaging(stream.protocol, vod_drm=event.vod_drm))


def _parameters(event: PlayableEvent, request: PlaybackRequest) -> dict[str, str]:
    """Return the query parameters, named as Unified Origin names them.

    Live URLs get the DVR window and the bitrates of the Event. All URLs get `vbegin`, `vend` and the audio-only filter. `vbegin`
    and `vend` are a time in UTC or a time from the start, and can be used alone; Unified Origin's `t=start-end` cannot. A recorded
    stream always gets both, as times in UTC.
    """
    limits = {
        "dvr_window_length": event.dvr_length,
        "max_bitrate": event.max_bitrate,
        "min_bitrate": event.min_bitrate,
    }
    points = {"vbegin": request.stream_time.in_point, "vend": request.stream_time.out_point}
    times = {name: _point(point) for name, point in points.items() if point.has_value}
    if event.state == EventState.INSTANT_VOD and event.recorded_part is not None:
        begin, end = event.recorded_part
        times = {
            "vbegin": _iso(max(_moment(points["vbegin"], begin) or begin, begin)),
            "vend": _iso(min(_moment(points["vend"], begin) or end, end)),
        }
    return {
        **{name: str(limit) for name, limit in limits.items() if limit and event.state in LIVE},
        **times,
        **(AUDIO_ONLY if request.audio_only else {}),
    }


def _point(point: StreamPoint) -> str:
    return point.time_span if point.date_time is None else _iso(point.date_time)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _moment(point: StreamPoint, start: datetime) -> datetime | None:
    """Return the time of a point of a stream that began at `start`; None without a point."""
    return point.date_time or (start + timedelta(seconds=point.seconds) if point.has_value else None)


def _of_profile(profiles: Mapping[str, Sequence[StreamUrl]], profile_id: UUID | None) -> Sequence[StreamUrl]:
    """Return the URLs of the profile with this id; empty without one. Configured ids may have braces or no dashes."""
    digits = profile_id.hex if profile_id else None
    return next((urls for key, urls in profiles.items() if re.sub("[{}-]", "", key).lower() == digits), ())


def _mp4_url(event: PlayableEvent, storage_url: str) -> str:
    """Return the URL of the MP4 file, `<contentId>/<contentId>.mp4`. It is "" unless `mp4State` is AVAILABLE, and for a
    protected Event, whose file is never delivered because it is not encrypted."""
    if event.vod_drm or event.mp4_state != Mp4State.AVAILABLE:
        return ""
    content_id = encoded(event.content_id)
    return url_below(storage_url, f"{content_id}/{content_id}.mp4")


@dataclass(frozen=True, slots=True)
class _Player:
    url: str
    scriptable_url: str
    title: str

    @property
    def embed_code(self) -> str:
        return _iframe(self.url, title=self.title)

    @property
    def scriptable_embed_code(self) -> str:
        return _iframe(self.scriptable_url, title=self.title)


def _player(
    event: PlayableEvent, *, page: str, player: PlayerAddresses, streams: Sequence[StreamUrl], request: PlaybackRequest
) -> _Player:
    """Return the player's URLs. They carry the first current stream as `src`, because a public web page has no API key to
    request it."""
    query = {"src": streams[0].url} if streams else {}
    query |= {"autoStart": "true"} if request.auto_start else {}
    base = player.page(page, event.id)
    urls = (with_parameters(base, query), with_parameters(base, query | {"scriptable": "true"})) if base else ("", "")
    return _Player(*urls, title=event.title)


def _iframe(url: str, *, title: str) -> str:
    """Return an HTML iframe. Title and address are escaped."""
    if not url:
        return ""
    return (
        f'<iframe src="{escape(url)}" title="{escape(title)}" width="640" height="360" style="border:0" '
        'allow="autoplay; encrypted-media; fullscreen; picture-in-picture" allowfullscreen></iframe>'
    )


_URL_SCHEMES = ("http://", "https://")


def thumbnail_flow(details: EventDetails) -> UUID | None:
    """Return the flow whose storage contains the thumbnail; None without a thumbnail, or if it is a URL."""
    thumbnail = details.thumbnail
    if not thumbnail or _is_url(thumbnail):
        return None
    return current_flow(details)


def thumbnail_url(details: EventDetails, *, storage: str, content_id: str) -> str:
    """Return the URL, or "" without a thumbnail. `storage` is the public storage URL of the flow that holds the thumbnail."""
    thumbnail = details.thumbnail
    if not thumbnail or _is_url(thumbnail):
        return thumbnail or ""
    return url_below(storage, thumbnail_path(thumbnail, content_id=content_id))


def thumbnail_path(thumbnail: str, *, content_id: str) -> str:
    """Return the path of a thumbnail below the public storage URL of its flow."""
    return f"{encoded(content_id)}/{encoded(thumbnail.lstrip('/'), safe='/')}"


def _is_url(thumbnail: str) -> bool:
    return thumbnail.lower().startswith(_URL_SCHEMES)
