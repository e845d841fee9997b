"""What the configuration of a channel and of a flow says about playing.

Tolerant when read: the texts were checked when they were written, and a fault in one part (an unknown protocol, a URL that is
a number) hides that part alone. Shapes: decisions.md ("Channel", "Flow configuration") and document 3 ("Flow").
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.configuration.secrets import WRITE_ONLY
from domain.media_event.playback.stream import StreamPlace, StreamProtocol

_LIVE_KEYS: Final = {
    StreamPlace.CDN_PRIMARY: "liveCdnPrimaryUrl",
    StreamPlace.CDN_SECONDARY: "liveCdnSecondaryUrl",
    StreamPlace.ORIGIN_PRIMARY: "liveOriginPrimaryUrl",
    StreamPlace.ORIGIN_SECONDARY: "liveOriginSecondaryUrl",
}
_VOD_KEYS: Final = {
    StreamPlace.CDN_PRIMARY: "vodCdnPrimaryUrl",
    StreamPlace.CDN_SECONDARY: "vodCdnSecondaryUrl",
    StreamPlace.ORIGIN_PRIMARY: "vodOriginPrimaryUrl",
    StreamPlace.ORIGIN_SECONDARY: "vodOriginSecondaryUrl",
    StreamPlace.PRIVATE: "vodPrivateUrl",
}
_PUBLISHING_POINTS: Final = ("primaryPublishingPoint", "secondaryPublishingPoint")


@dataclass(frozen=True, slots=True)
class StreamAddresses:
    """The addresses of one protocol's stream; a place without an address is absent."""

    protocol: StreamProtocol
    urls: Mapping[StreamPlace, str]


@dataclass(frozen=True, slots=True)
class PublishingPoint:
    """Where an encoder sends its stream. `index` is 0 for the primary and 1 for the secondary point of that encoder."""

    url: str
    encoder_name: str
    encoder_index: int
    index: int


@dataclass(frozen=True, slots=True)
class Encoder:
    index: int
    name: str
    streams: Sequence[StreamAddresses] = ()
    publishing_points: Sequence[PublishingPoint] = ()


@dataclass(frozen=True, slots=True)
class PlayoutProfile:
    """Another way to play the same channel: `{"id", "name", "outputUrls"}`, its `outputUrls` like an encoder's."""

    id: str
    name: str
    streams: Sequence[StreamAddresses] = ()


@dataclass(frozen=True, slots=True)
class RampServer:
    """As configured, secrets null: its set of keys "follows the selected Channel configuration" (document 2)."""

    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ChannelConfiguration:
    """What a channel says of playing live."""

    encoders: Sequence[Encoder] = ()
    playout_profiles: Sequence[PlayoutProfile] = ()
    ramp_servers: Sequence[RampServer] = ()

    @property
    def player_address(self) -> str:
        """Where the operator's player pages lie: the first ramp server's `playerAddress`; "" when none has one."""
        addresses = (server.settings.get("playerAddress") for server in self.ramp_servers)
        return next((address.strip() for address in addresses if isinstance(address, str) and address.strip()), "")


@dataclass(frozen=True, slots=True)
class FlowConfiguration:
    """The first flow configuration of the text, the one that `/flow/taskengines/{id}` shows too. `storage_url_public` leads to
    `MEDIA_ROOT` from outside; `storage_url_private` is ours: the same for those inside."""

    streams: Sequence[StreamAddresses] = ()
    storage_url_public: str = ""
    storage_url_private: str = ""


def channel_configuration(text: str) -> ChannelConfiguration:
    known = _object(_parsed(text))
    profiles = [
        PlayoutProfile(_text(profile, "id"), _text(profile, "name"), _streams(profile, keys=_LIVE_KEYS))
        for profile in map(_object, _list(known, "playoutProfiles"))
    ]
    return ChannelConfiguration(
        tuple(_encoder(_object(entry), index=index) for index, entry in enumerate(_list(known, "encoders"))),
        tuple(profile for profile in profiles if profile.id),
        tuple(RampServer(server) for server in _list(known, "rampServers") if isinstance(server, dict)),
    )


def flow_configuration(text: str) -> FlowConfiguration:
    first = _object(next(iter(_list(_object(_parsed(text)), "flows")), None))
    return FlowConfiguration(_streams(first, keys=_VOD_KEYS), _text(first, "storageUrlPublic"), _text(first, "storageUrlPrivate"))


def _encoder(known: Mapping[str, object], *, index: int) -> Encoder:
    """A broken entry still takes its index, or those after it would change their stream sources."""
    name = _text(known, "name")
    specific = _object(_object(known.get("streamingServer")).get("streamingServerSpecific"))
    urls = [_text(_object(specific.get(key)), "publishingPointUrl") for key in _PUBLISHING_POINTS]
    points = tuple(PublishingPoint(url, name, index, place) for place, url in enumerate(urls) if url)
    return Encoder(index, name, _streams(known, keys=_LIVE_KEYS), points)


def _streams(known: Mapping[str, object], *, keys: Mapping[StreamPlace, str]) -> tuple[StreamAddresses, ...]:
    return tuple(_addresses(map(_object, _list(known, "outputUrls")), keys=keys))


def _addresses(entries: Iterable[Mapping[str, object]], *, keys: Mapping[StreamPlace, str]) -> Iterable[StreamAddresses]:
    for entry in entries:
        protocol = StreamProtocol.read(entry.get("streamProtocol"))
        urls = {place: url for place, key in keys.items() if (url := _text(entry, key))}
        if protocol is not None and urls:
            yield StreamAddresses(protocol, urls)


def _parsed(text: str) -> object:
    """The text's value, fit to be shown: no secrets, no numbers or characters that JSON cannot carry. Unreadable: nothing."""
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


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(known: Mapping[str, object], key: str) -> Sequence[object]:
    value = known.get(key)
    return value if isinstance(value, list) else ()


def _text(known: Mapping[str, object], key: str) -> str:
    value = known.get(key)
    return value.strip() if isinstance(value, str) else ""
