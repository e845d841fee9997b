"""The encryption of a content's package: its Event's choice of DRM, its key, and the data that players of each DRM system need.

A step asks for it while it runs. The key is the one that the key provider has for the client of the job: a packager of this client
gets the same key for the content id, without key periods. ADR 0047.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol
from uuid import UUID

from domain.client.aggregate import Client
from domain.content_key.aggregate import KidTaken
from domain.content_key.handlers import ContentKeyHandlers, KeyRequest
from domain.drm import fairplay, playready, pssh, widevine
from domain.drm.drm_json import described
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem, KeyMaterial, Scheme
from domain.event.aggregate import MediaEvent
from domain.kernel.errors import Refused
from domain.kernel.ports import Invocation
from projections.log.streams import Streams
from workers.job.protocol import Protection

SCHEMES: Final = (Scheme.CENC, Scheme.CBCS)
"""Counter mode, which all players except FairPlay's know, and block chaining, which FairPlay needs."""
_COMMON: Final = UUID("1077efec-c0b2-4d02-ace3-3c1e52e2fb4b")
"""The system id of the W3C "cenc" Initialization Data Format: a box that only lists the kids. ClearKey uses it."""
_log = logging.getLogger(__name__)
_SYSTEMS: Final = tuple(sorted(system.name.lower() for system in DrmSystem))


class FindProtection(Protocol):
    """Finds the protection of a client's content; None if the content is not encrypted."""

    async def __call__(self, client: str, content_id: str) -> Protection | None: ...


AskProtection = Callable[[], Awaitable[Protection | None]]
"""Finds the protection of the content of one run; None if it is not encrypted."""


async def unprotected(client: str, content_id: str) -> Protection | None:
    return None


class ContentProtection:
    """Finds the protection of contents that are Events. `host` is the host of FairPlay URIs if the client's template names it."""

    def __init__(self, streams: Streams, keys: ContentKeyHandlers, *, host: str) -> None:
        self._streams = streams
        self._keys = keys
        self._host = host

    async def __call__(self, client: str, content_id: str) -> Protection | None:
        """Return the protection; None if the content is not an Event, or its Event does not use DRM."""
        event = await self._streams.load(MediaEvent.stream(_canonical(content_id)))
        if not isinstance(event, MediaEvent) or not event.details.vod_drm:
            return None
        owner = await self._streams.load(Client.stream(client))
        settings = owner.drm if isinstance(owner, Client) else DrmSettings()
        request = KeyRequest(client, event.key, systems=_SYSTEMS)
        try:
            [key] = await self._keys.issue([request], invocation=Invocation.by("system"))
        except KidTaken as taken:  # a second attempt would not resolve this conflict
            raise Refused(str(taken)) from None
        material = KeyMaterial(key.kid, key.key, key.iv)
        uri = fairplay.uri(material, settings, client=client, content_id=event.key, host=self._host)
        return Protection(
            kid=key.kid.hex,
            key=key.key.hex(),
            iv=key.iv.hex(),
            fairplay_uri=uri,
            boxes={scheme.value: _boxes(material, scheme, settings, event.key).hex() for scheme in SCHEMES},
            drm_json=described(material, settings, content_id=event.key, fairplay_uri=uri),
        )


async def answer(protection: AskProtection) -> Mapping[str, Any]:
    """Return the answer for a step that asks for the protection of its content."""
    try:
        return {"protection": await protection()}
    except Exception as fault:  # of any kind: the step would wait for ever
        _log.error("a step cannot get its content key: %s: %s", type(fault).__name__, fault)
        return {"refused": "The content key is not available; see the log of the worker."}


def _canonical(content_id: str) -> str:
    try:
        return str(UUID(content_id))
    except ValueError:
        return content_id


def _boxes(material: KeyMaterial, scheme: Scheme, settings: DrmSettings, content_id: str) -> bytes:
    header = playready.header(material, scheme, la_url=settings.playready_la_url)
    return b"".join(
        (
            widevine.box([material.kid], scheme, settings=settings, content_id=content_id),
            playready.box(playready.object_of(header)),
            pssh.box(_COMMON, b"", version=1, kids=[material.kid]),
        )
    )
