"""FairPlay's data: the URI by which a player asks for its licence. reference/drm.md, c.4. There is no box to fill.

The licence carries the key and the IV, so the URI need only name the key, in the words of the client's licence server.
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
    """The client's template, filled. Values are percent-encoded, so that none ends a part of the URI or the attribute around it."""
    if material.iv is None:
        raise ValueError("a FairPlay key has an IV")
    values = {
        "host": quote(host, safe=":[]"),
        "client": quote(client, safe=""),
        "content_id": quote(content_id, safe=""),
        "kid": str(material.kid),
        "iv": material.iv.hex(),
    }
    return _PLACEHOLDER.sub(lambda found: values[found[1]], settings.fairplay_uri_template)
