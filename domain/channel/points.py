"""Publishing points of a channel, with the addresses that report their status.

The text is read tolerantly, as for playback: a fault in one part hides only this part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from domain.channel.channel import ChannelDocument, Encoder, PublishingPoint, StatusCheckStrategy
from domain.channel.hosts import NO_HOST, Hosts, fill_placeholders, has_placeholder, is_listed, names_host
from domain.channel.secrets import entry_steps, path_of
from domain.channel.streams import StreamProtocol
from domain.kernel.json_document import readable
from domain.kernel.masking import masked

PLACES: Final = ("primaryPublishingPoint", "secondaryPublishingPoint")
UNKNOWN: Final = "unknown"
"""The state of a point without a recent report."""

_MANIFESTS: Final = (StreamProtocol.HLS, StreamProtocol.DASH)


@dataclass(frozen=True, slots=True)
class WatchedPoint:
    """A publishing point. `shown` is its address without user info, query and secrets; `key_place` is the place of the key of
    `srva_api` in the configuration, empty if no key may be sent; `manifests` are the addresses at which its origin plays the
    stream, if the channel has them. `resource` fills the placeholders of all of them, such as `{dns}`."""

    encoder: int
    index: int
    name: str
    shown: str
    strategy: StatusCheckStrategy = StatusCheckStrategy.ALL
    url: str = field(default="", repr=False)
    srva_api: str = field(default="", repr=False)
    status_url: str = field(default="", repr=False)
    manifests: Sequence[str] = field(default=(), repr=False)
    key_place: str = ""
    resource: str = ""
    fingerprint: int = field(init=False, repr=False)
    """A number that changes with the queried addresses and the way of querying them. Earlier reports are then void."""

    def __post_init__(self) -> None:
        asked = json.dumps([self.strategy, *self._addresses])
        digest = blake2b(asked.encode("utf-8", "replace"), digest_size=8).digest()
        object.__setattr__(self, "fingerprint", int.from_bytes(digest, "big", signed=True))

    @property
    def resolved(self) -> bool:
        """True if its addresses are complete. A remaining placeholder stands for a host that does not exist yet."""
        return not any(map(has_placeholder, (self.url, self.srva_api, self.status_url)))

    @property
    def names_host(self) -> bool:
        return any(map(names_host, self._addresses))

    @property
    def _addresses(self) -> Sequence[str]:
        return (self.url, self.srva_api, self.status_url, *self.manifests)

    def at(self, hosts: Hosts) -> WatchedPoint:
        """Return the point with its placeholders filled, as far as the host of its resource is known. A host that only a profile
        lists does not get the key."""
        host = hosts.get(self.resource, NO_HOST)
        if not host or not self.names_host:
            return self
        url, srva_api, status_url, *manifests = (fill_placeholders(address, host) for address in self._addresses)
        return replace(
            self,
            shown=masked(url),
            url=url,
            srva_api=srva_api,
            status_url=status_url,
            manifests=tuple(manifests),
            key_place="" if is_listed(self.srva_api, host) else self.key_place,
        )


def watched_points(text: str) -> tuple[WatchedPoint, ...]:
    """Return the publishing points of a channel's configuration that have an address, in its order."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    document = readable(ChannelDocument, parsed)
    chosen = document.status_check_strategy
    strategy = StatusCheckStrategy.ALL if chosen is None else chosen
    entries = parsed.get("encoders") if isinstance(parsed, dict) else None
    steps = entry_steps(entries) if isinstance(entries, list) else []
    return tuple(
        _watched(encoder, point, step=step, place=(number, place), strategy=strategy)
        for number, (encoder, step) in enumerate(zip(document.encoders or (), steps, strict=True))
        for place, point in enumerate(_points(encoder))
        if point is not None and (point.publishing_point_url or "").strip()
    )


def _points(encoder: Encoder) -> tuple[PublishingPoint | None, ...]:
    server = encoder.streaming_server
    specific = server.streaming_server_specific if server is not None else None
    return () if specific is None else (specific.primary_publishing_point, specific.secondary_publishing_point)


def _watched(
    encoder: Encoder, point: PublishingPoint, *, step: Any, place: tuple[int, int], strategy: StatusCheckStrategy
) -> WatchedPoint:
    number, index = place
    url = _text(point.publishing_point_url)
    key = ["encoders", step, "streamingServer", "streamingServerSpecific", PLACES[index], "srvaApiKey"]
    return WatchedPoint(
        encoder=number,
        index=index,
        name=_text(encoder.name),
        shown=masked(url),
        strategy=strategy,
        url=url,
        srva_api=_text(point.srva_api),
        status_url=_text(point.status_url),
        manifests=_manifests(encoder, index),
        key_place=path_of(key),
        resource=point.resource or "",
    )


def _manifests(encoder: Encoder, index: int) -> tuple[str, ...]:
    """Return the manifests at the origin of this point, HLS first. An address of one Event's content does not describe the point
    and is left out."""
    urls: Mapping[StreamProtocol, str] = {
        entry.stream_protocol: url
        for entry in reversed(encoder.output_urls or ())
        if entry.stream_protocol in _MANIFESTS
        and (url := _text(entry.live_origin_secondary_url if index else entry.live_origin_primary_url))
        and (names_host(url) or not has_placeholder(url))
    }
    return tuple(urls[protocol] for protocol in _MANIFESTS if protocol in urls)


def _text(value: str | None) -> str:
    """Return a text without blanks around it, and without halves of surrogate pairs, which cannot be sent."""
    return (value or "").strip().encode("utf-8", "replace").decode("utf-8")
