"""The work of a channel's encoders for an Event: their sources, publishing points and options.

Plans are computed from the channel's configuration and the Event's values only. Reading is tolerant: an unreadable part is left
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from domain.channel.channel import ChannelDocument, Encoder
from domain.channel.hosts import NO_HOST, NO_HOSTS, Hosts, fill_placeholders, has_placeholder
from domain.channel.streaming_options import EncoderOptions, encoder_options

FFMPEG: Final = "ffmpeg"
HTTP: Final = "http"


@dataclass(frozen=True, slots=True)
class PointPlan:
    """A publishing point of an encoder. `index` is 0 for the primary and 1 for the secondary one."""

    encoder: int
    index: int
    url: str = field(repr=False)
    """The address to send to. It may contain a key and is never printed."""
    resource: str = ""
    dvr_length: int | None = None
    """The window of its playlists in seconds, if the point sets its own."""
    provisioned: bool = False
    """True if a placeholder in its URL was filled. Such a URL gets no token of the built-in origin, because others choose its
    host."""


@dataclass(frozen=True, slots=True)
class EncoderPlan:
    """The work of one encoder of a channel for an Event."""

    index: int
    name: str
    type: str
    """`ffmpeg`, `http`, or a type that the product does not support."""
    specific: Mapping[str, object] = field(repr=False)
    """`encoderSpecific`, including its secrets."""
    points: Sequence[PointPlan]
    options: EncoderOptions
    unresolved: Sequence[int] = ()
    """The indexes of points that receive nothing, because one of their hosts is not known yet."""
    composes: bool = False
    """True if the encoder plays the composition of an Event that has one for encoders."""


class StreamingValues(Protocol):
    """The fields of an Event that control its encoders."""

    @property
    def additional_streaming_options(self) -> str | None: ...
    @property
    def dvr_length(self) -> int | None: ...
    @property
    def max_bitrate(self) -> int | None: ...
    @property
    def min_bitrate(self) -> int | None: ...


def encoder_plans(channel: ChannelDocument, values: StreamingValues, *, hosts: Hosts = NO_HOSTS) -> Sequence[EncoderPlan]:
    """Return one plan for each encoder. `hosts` fill the placeholders in URLs."""
    options = encoder_options(
        values.additional_streaming_options or "",
        dvr_length=values.dvr_length or None,
        min_bitrate=values.min_bitrate or None,
        max_bitrate=values.max_bitrate or None,
    )
    return [_plan(encoder, index, options=options, hosts=hosts) for index, encoder in enumerate(channel.encoders or ())]


def _plan(encoder: Encoder, index: int, *, options: EncoderOptions, hosts: Hosts) -> EncoderPlan:
    points = [_point(index, place, parts, hosts=hosts) for place, parts in enumerate(_points(encoder)) if parts[0]]
    return EncoderPlan(
        index,
        (encoder.name or "").strip(),
        (encoder.type or "").strip().casefold(),
        encoder.encoder_specific or {},
        [point for point in points if not has_placeholder(point.url)],
        options,
        [point.index for point in points if has_placeholder(point.url)],
        encoder.supports_composition or False,
    )


def _point(encoder: int, index: int, parts: tuple[str, str, int | None], *, hosts: Hosts) -> PointPlan:
    url, resource, dvr_length = parts
    complete = fill_placeholders(url, hosts.get(resource, NO_HOST))
    return PointPlan(encoder, index, complete, resource, dvr_length, provisioned=complete != url)


def _points(encoder: Encoder) -> Sequence[tuple[str, str, int | None]]:
    """Return URL, resource and window length of both publishing points."""
    specific = encoder.streaming_server.streaming_server_specific if encoder.streaming_server else None
    points = (specific.primary_publishing_point, specific.secondary_publishing_point) if specific else ()
    return [
        ((point.publishing_point_url or "").strip(), point.resource or "", point.dvr_window_length) if point else ("", "", None)
        for point in points
    ]
