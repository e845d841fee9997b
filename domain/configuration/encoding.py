"""What the encoders of a channel do for an Event: their sources, publishing points and options.

Pure plans from the channel's configuration and the Event's values. Reading is tolerant: a part that cannot be read is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from domain.configuration.channel import ChannelDocument, Encoder
from domain.configuration.hosts import NO_HOST, NO_HOSTS, Hosts, filled, is_open
from domain.configuration.streaming_options import EncoderOptions, encoder_options

FFMPEG: Final = "ffmpeg"
HTTP: Final = "http"


@dataclass(frozen=True, slots=True)
class PointPlan:
    """A publishing point of an encoder. `index` is 0 for the primary and 1 for the secondary one."""

    encoder: int
    index: int
    url: str = field(repr=False)
    """Where to send. May hold a key: it is never printed."""
    resource: str = ""
    dvr_length: int | None = None
    """Seconds that its playlists reach back, where the point says so itself."""
    provisioned: bool = False
    """Whether a placeholder in its URL was filled. Who names a host gets no token of the built-in origin."""


@dataclass(frozen=True, slots=True)
class EncoderPlan:
    """What an encoder of a channel does for an Event."""

    index: int
    name: str
    type: str
    """`ffmpeg`, `http`, or what nobody here knows."""
    specific: Mapping[str, object] = field(repr=False)
    """`encoderSpecific`, with its secrets where the document has them."""
    points: Sequence[PointPlan]
    options: EncoderOptions
    unresolved: Sequence[int] = ()
    """Of the points that nothing is sent to, because a host of theirs is not known yet."""
    composes: bool = False
    """Whether it plays the composition of an Event that has one for encoders."""


class StreamingValues(Protocol):
    """The fields of an Event that its encoders follow."""

    @property
    def additional_streaming_options(self) -> str | None: ...
    @property
    def dvr_length(self) -> int | None: ...
    @property
    def max_bitrate(self) -> int | None: ...
    @property
    def min_bitrate(self) -> int | None: ...


def encoder_plans(channel: ChannelDocument, values: StreamingValues, *, hosts: Hosts = NO_HOSTS) -> Sequence[EncoderPlan]:
    """One plan for each encoder. `hosts` fill the placeholders in URLs."""
    options = encoder_options(
        values.additional_streaming_options or "",
        dvr_length=values.dvr_length or None,
        min_bitrate=values.min_bitrate or None,
        max_bitrate=values.max_bitrate or None,
    )
    return [_plan(encoder, index, options=options, hosts=hosts) for index, encoder in enumerate(channel.encoders or ())]


def _plan(encoder: Encoder, index: int, *, options: EncoderOptions, hosts: Hosts) -> EncoderPlan:
    points = [_point(index, place, found, hosts=hosts) for place, found in enumerate(_points(encoder)) if found[0]]
    return EncoderPlan(
        index,
        (encoder.name or "").strip(),
        (encoder.type or "").strip().casefold(),
        encoder.encoder_specific or {},
        [point for point in points if not is_open(point.url)],
        options,
        [point.index for point in points if is_open(point.url)],
        encoder.supports_composition or False,
    )


def _point(encoder: int, index: int, found: tuple[str, str, int | None], *, hosts: Hosts) -> PointPlan:
    url, resource, dvr_length = found
    complete = filled(url, hosts.get(resource, NO_HOST))
    return PointPlan(encoder, index, complete, resource, dvr_length, provisioned=complete != url)


def _points(encoder: Encoder) -> Sequence[tuple[str, str, int | None]]:
    """URL, resource and length of the window of both places."""
    specific = encoder.streaming_server.streaming_server_specific if encoder.streaming_server else None
    points = (specific.primary_publishing_point, specific.secondary_publishing_point) if specific else ()
    return [
        ((point.publishing_point_url or "").strip(), point.resource or "", point.dvr_window_length) if point else ("", "", None)
        for point in points
    ]
