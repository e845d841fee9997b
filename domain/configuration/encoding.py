"""What the encoders of a channel do for an Event: their sources, publishing points and options.

Pure plans from the channel's configuration and the Event's values. Reading is tolerant: a part that cannot be read is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from domain.configuration.channel import ChannelDocument, Encoder
from domain.configuration.streaming_options import EncoderOptions, encoder_options

FFMPEG: Final = "ffmpeg"
HTTP: Final = "http"
_PLACEHOLDER: Final = re.compile(r"\{(ipAddress|internalIpAddress|dns|internalDns)\}", re.IGNORECASE)
_NAMES: Final = {name.casefold(): name for name in ("ipAddress", "internalIpAddress", "dns", "internalDns")}

NO_HOSTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({})


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


def encoder_plans(
    channel: ChannelDocument, values: StreamingValues, *, hosts: Mapping[str, Mapping[str, str]] = NO_HOSTS
) -> Sequence[EncoderPlan]:
    """One plan for each encoder. `hosts`: what provisioning knows of each resource, for placeholders in URLs."""
    options = encoder_options(
        values.additional_streaming_options or "",
        dvr_length=values.dvr_length or None,
        min_bitrate=values.min_bitrate or None,
        max_bitrate=values.max_bitrate or None,
    )
    return [_plan(encoder, index, options=options, hosts=hosts) for index, encoder in enumerate(channel.encoders or ())]


def _plan(encoder: Encoder, index: int, *, options: EncoderOptions, hosts: Mapping[str, Mapping[str, str]]) -> EncoderPlan:
    points = [PointPlan(index, place, *found) for place, found in enumerate(_points(encoder)) if found[0]]
    resolved = [(point, _resolved(point.url, hosts.get(point.resource, {}))) for point in points]
    return EncoderPlan(
        index,
        (encoder.name or "").strip(),
        (encoder.type or "").strip().casefold(),
        encoder.encoder_specific or {},
        [PointPlan(index, point.index, url, point.resource, point.dvr_length) for point, url in resolved if url is not None],
        options,
        [point.index for point, url in resolved if url is None],
    )


def _points(encoder: Encoder) -> Sequence[tuple[str, str, int | None]]:
    """URL, resource and length of the window of both places."""
    specific = encoder.streaming_server.streaming_server_specific if encoder.streaming_server else None
    points = (specific.primary_publishing_point, specific.secondary_publishing_point) if specific else ()
    return [
        ((point.publishing_point_url or "").strip(), point.resource or "", point.dvr_window_length) if point else ("", "", None)
        for point in points
    ]


def _resolved(url: str, host: Mapping[str, str]) -> str | None:
    """None where a placeholder has no value."""
    missing = False

    def value(found: re.Match[str]) -> str:
        nonlocal missing
        known = host.get(_NAMES[found[1].casefold()], "")
        missing = missing or not known
        return known

    filled = _PLACEHOLDER.sub(value, url)
    return None if missing else filled
