"""Playback settings from the configurations of a channel and a flow.

The models are those that check a configuration when it is written. Here they are read tolerantly: a fault in one part, such as an
unknown protocol or a URL that is a number, hides only this part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from domain.channel import channel, flow
from domain.channel.channel import ChannelDocument
from domain.channel.flow import FlowDocument
from domain.channel.hosts import has_placeholder
from domain.channel.placeholders import of_content
from domain.channel.secrets import WRITE_ONLY
from domain.channel.streams import StreamPlace, StreamProtocol
from domain.kernel.json_document import readable

T = TypeVar("T", channel.OutputUrl, flow.Stream)


@dataclass(frozen=True, slots=True)
class StreamAddresses:
    """The addresses of the stream of one protocol. A place without an address is absent."""

    protocol: StreamProtocol
    urls: Mapping[StreamPlace, str]


@dataclass(frozen=True, slots=True)
class PlaybackEncoder:
    index: int
    name: str
    streams: Sequence[StreamAddresses] = ()


@dataclass(frozen=True, slots=True)
class PlaybackProfile:
    """Another way to watch the channel: `{"id", "name", "outputUrls"}`. `outputUrls` are like those of an encoder."""

    id: str
    name: str
    streams: Sequence[StreamAddresses] = ()


@dataclass(frozen=True, slots=True)
class PlaybackServer:
    """A ramp server with all members that the channel configuration gives it. Secrets are null."""

    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ChannelConfiguration:
    """The live playback settings of a channel."""

    encoders: Sequence[PlaybackEncoder] = ()
    playout_profiles: Sequence[PlaybackProfile] = ()
    ramp_servers: Sequence[PlaybackServer] = ()

    @property
    def player_address(self) -> str:
        """The address of the player pages: the first `playerAddress` of a ramp server; "" if none has one."""
        addresses = (server.settings.get("playerAddress") for server in self.ramp_servers)
        return next((address.strip() for address in addresses if isinstance(address, str) and address.strip()), "")


@dataclass(frozen=True, slots=True)
class PlaybackFlow:
    """The on-demand playback settings of a flow, from its first flow configuration. `storage_url_public` is the external address
    of the media root, `storage_url_private` the internal one. With `capture_on_stop` its Events are captured when they stop, and
    with `instant_vod` they can be watched on demand from then on."""

    streams: Sequence[StreamAddresses] = ()
    storage_url_public: str = ""
    storage_url_private: str = ""
    capture_on_stop: bool = False
    instant_vod: bool = False


def channel_configuration(text: str) -> ChannelConfiguration:
    parsed = _parsed(text)
    document = readable(ChannelDocument, parsed)
    profiles = (
        PlaybackProfile(_text(profile.id), _text(profile.name), _streams(profile.output_urls, urls=_live))
        for profile in document.playout_profiles or ()
    )
    servers = parsed.get("rampServers") if isinstance(parsed, dict) else None
    return ChannelConfiguration(
        tuple(_encoder(encoder, index=index) for index, encoder in enumerate(document.encoders or ())),
        tuple(profile for profile in profiles if profile.id),
        tuple(PlaybackServer(server) for server in servers if isinstance(server, dict)) if isinstance(servers, list) else (),
    )


def live_addresses(
    channel: ChannelConfiguration, protocol: StreamProtocol, *, places: Iterable[StreamPlace], content: str
) -> list[str]:
    """Return the addresses of a content's live stream over a protocol, place by place and without duplicates. An address with a
    placeholder other than the content is left out."""
    streams = [stream for encoder in channel.encoders for stream in encoder.streams if stream.protocol is protocol]
    urls = (of_content(stream.urls.get(place, ""), content) for place in places for stream in streams)
    return list(dict.fromkeys(url for url in urls if url and not has_placeholder(url)))


def flow_configuration(text: str) -> PlaybackFlow:
    first = next(iter(readable(FlowDocument, _parsed(text)).flows or ()), None)
    if first is None:
        return PlaybackFlow()
    return PlaybackFlow(
        _streams(first.output_urls, urls=_vod),
        _text(first.storage_url_public),
        _text(first.storage_url_private),
        first.capture_on_stop is True,
        first.instant_vod is True,
    )


def _encoder(encoder: channel.Encoder, *, index: int) -> PlaybackEncoder:
    """Read an encoder. A broken entry keeps its index, because stream sources refer to the following encoders by their index."""
    return PlaybackEncoder(index, _text(encoder.name), _streams(encoder.output_urls, urls=_live))


def _streams(entries: Iterable[T] | None, *, urls: Callable[[T], Mapping[StreamPlace, str | None]]) -> tuple[StreamAddresses, ...]:
    addresses = (
        (entry.stream_protocol, {place: url for place, text in urls(entry).items() if (url := _text(text))})
        for entry in entries or ()
    )
    return tuple(
        StreamAddresses(protocol, urls_by_place) for protocol, urls_by_place in addresses if protocol is not None and urls_by_place
    )


def _live(entry: channel.OutputUrl) -> Mapping[StreamPlace, str | None]:
    return {
        StreamPlace.CDN_PRIMARY: entry.live_cdn_primary_url,
        StreamPlace.CDN_SECONDARY: entry.live_cdn_secondary_url,
        StreamPlace.ORIGIN_PRIMARY: entry.live_origin_primary_url,
        StreamPlace.ORIGIN_SECONDARY: entry.live_origin_secondary_url,
    }


def _vod(entry: flow.Stream) -> Mapping[StreamPlace, str | None]:
    return {
        StreamPlace.CDN_PRIMARY: entry.vod_cdn_primary_url,
        StreamPlace.CDN_SECONDARY: entry.vod_cdn_secondary_url,
        StreamPlace.ORIGIN_PRIMARY: entry.vod_origin_primary_url,
        StreamPlace.ORIGIN_SECONDARY: entry.vod_origin_secondary_url,
        StreamPlace.PRIVATE: entry.vod_private_url,
    }


def _text(value: str | None) -> str:
    return (value or "").strip()


def _parsed(text: str) -> object:
    """Parse a text and remove its secrets, and numbers and characters that JSON cannot hold. Return None if it is not JSON."""
    try:
        return _shown(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _shown(value: object) -> object:
    if isinstance(value, dict):
        return {_shown(key): None if key.casefold() in WRITE_ONLY else _shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be sent
    return None if isinstance(value, float) and not math.isfinite(value) else value
