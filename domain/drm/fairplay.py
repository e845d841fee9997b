"""FairPlay: the key URI, with which a player requests its licence: docs/reference/api/key-provider.md#systems.

FairPlay has no pssh box. The licence carries the key and the IV, so the URI only names the key as the client's licence server
expects.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from domain.drm.settings import PLACEHOLDERS, DrmSettings
from domain.drm.systems import KeyMaterial

KEY_FORMAT: Final = "com.apple.streamingkeydelivery"

_PLACEHOLDER: Final = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


def uri(material: KeyMaterial, settings: DrmSettings, *, client: str, content_id: str, host: str) -> str:
    """Return the client's template with its placeholders replaced. Values are percent-encoded, so none can end a part of the
    URI."""
    if material.iv is None:
        raise ValueError("a FairPlay key has an IV")
    values = {
        "host": quote(host, safe=":[]"),
        "client": quote(client, safe=""),
        "content_id": quote(content_id, safe=""),
        "kid": str(material.kid),
        "iv": material.iv.hex(),
    }
    return _PLACEHOLDER.sub(lambda match: values[match[1]], settings.fairplay_uri_template)
