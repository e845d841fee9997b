"""The description of an Event's encryption for `drmJson`: docs/reference/api/job-engine.md#packages. It contains no key."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from domain.drm import widevine
from domain.drm.settings import DrmSettings
from domain.drm.systems import KeyMaterial, Scheme


def described(material: KeyMaterial, settings: DrmSettings, *, content_id: str, fairplay_uri: str) -> dict[str, Any]:
    """Return the description. Unknown values, such as the address of a Widevine licence server, are empty texts. In counter mode
    each sample has its own IV; the IV of FairPlay is also in the media."""
    assert material.iv is not None
    data = widevine.payload([material.kid], Scheme.CENC, settings=settings, content_id=content_id)
    cenc = {
        "name": "CENC",
        "key_id": str(material.kid),
        "content_id": content_id,
        "widevine_drmspecific": b64encode(data).decode(),
        "widevine_laurl": "",
        "key_iv": "",
        "playready_laurl": settings.playready_la_url or "",
    }
    apple = {"name": "FAIRPLAY", "key_id": str(material.kid), "key_iv": material.iv.hex(), "laurl": fairplay_uri, "ask": ""}
    return {"drm_provider": "THIRDPARTY", "drm_data": [cenc, apple]}
