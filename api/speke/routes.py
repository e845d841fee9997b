"""The key provider: content keys and what DRM systems need to know of them, for a packager that asks. Document 1.

Who asks is known before the body is read; the same question gets the same answer, for ever. Neither the document nor the answer is
ever logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from api.kernel.answer import Answer
from api.kernel.auth import CONTENT_KEYS
from api.kernel.body import XML
from api.kernel.call import Call
from api.kernel.routes import Routes
from api.speke.cpix.answer import template
from api.speke.cpix.errors import SpekeError
from api.speke.cpix.request import read, version_headers
from api.speke.cpix.signalling import Audience
from api.speke.rate import RateLimit
from api.speke.ready import Ready, ReadyAnswers
from api.speke.surface import KEY_PROVIDER, NEVER_STORED, refusal
from api.version import product_version
from domain.content_key.aggregate import KidElsewhere
from projections.clients.directory import ClientDirectory
from projections.content_keys.answers import Answered
from projections.content_keys.store import ContentKeys, KeyAsked, KeyGiven

routes = Routes(surface=KEY_PROVIDER, tag="Key provider")

_AGENT: Final = f"medialedger/{product_version()}"
_KID_ELSEWHERE: Final = "SPEKE-4221"


@routes.post("/{client_name}/speke", CONTENT_KEYS, body_types=(XML,), media_type="application/xml")
async def give_content_keys(
    call: Call,
    client_name: str,
    rate: RateLimit,
    keys: ContentKeys,
    directory: ClientDirectory,
    known: ReadyAnswers,
    body: bytes = b"",
) -> Answer:
    """Content keys and DRM signalling for a CPIX document (SPEKE 1, 2.0 and 2.1).

    The answer is the document, filled in. A refusal is one line of text that begins with a code, which the header X-Error-Code
    repeats."""
    rate.take(client_name)
    audience = Audience(client_name, urlsplit(call.base_url).netloc, directory.drm_of(client_name))
    question = known.question(body, call.header("x-speke-version"), audience=audience)
    try:
        ready = known.get(question)
        if ready is None:
            ready, given = await _understood(call, body, audience=audience, keys=keys)
        else:
            given = await keys.give(ready.asked, cause=call.cause)
    except SpekeError as fault:
        return refusal(fault.code, fault.status, fault.text)
    except KidElsewhere as conflict:
        return refusal(_KID_ELSEWHERE, 422, conflict.reason)
    if not ready.template.complete:
        known.put(question, ready)
    for asked, one in zip(ready.asked, given, strict=True):
        if not one.made:
            keys.answered(Answered(one.id, call.caller.name, asked.systems, ready.version, call.transaction_id))
    headers = (NEVER_STORED, *version_headers(ready.version, _AGENT))
    return Answer(200, ready.template.filled(given), headers=headers, media_type="application/xml")


async def _understood(call: Call, body: bytes, *, audience: Audience, keys: ContentKeys) -> tuple[Ready, Sequence[KeyGiven]]:
    request = read(body, speke_version=call.header("x-speke-version"))
    asked = [
        KeyAsked(
            audience.client,
            request.content_id,
            key.period,
            key.kid,
            slot=key.slot,
            iv=key.iv,
            systems=tuple(system.name.lower() for system in request.systems_of(place)),
            speke_version=request.version,
        )
        for place, key in enumerate(request.keys)
    ]
    given = await keys.give(asked, cause=call.cause)
    return Ready(asked, request.version, template(request, given, audience=audience)), given


@routes.get("/{client_name}/speke/heartbeat", CONTENT_KEYS, media_type="text/plain")
async def heartbeat(call: Call, client_name: str) -> Answer:
    """The key provider answers, and knows the client."""
    return Answer(200, b"OK\n", headers=(NEVER_STORED, ("speke-user-agent", _AGENT)), media_type="text/plain; charset=utf-8")
