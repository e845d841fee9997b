"""Credentials that are recognised by their prefix: the product's own, and those of services that many productions use."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "****"

_FORMS: Final = (
    r"mlk_[\w-]{8,}",  # API keys
    r"whs(?:ec|k)_[\w+/=-]{8,}",  # signing secrets of webhooks
    r"mlo_[\w.-]{40,}",  # tokens of publishing points
    r"gh[oprsu]_\w{16,}",
    r"github_pat_\w{16,}",
    r"gl(?:agent|cbt|dt|ft|oas|pat|ptt|rt|soat)-[\w.-]{16,}",
    r"[rs]k_(?:live|prod|test)_\w{8,}",
    r"sk-[\w-]{20,}",
    r"A(?:BIA|CCA|KIA|SIA)[A-Z0-9]{16}",
    r"xox[a-z](?:\.xox[a-z])?-[\w-]{8,}",
    r"xapp-[\w-]{8,}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w-]{16,}",
    r"GOCSPX-[\w-]{16,}",
    r"EAA[A-Za-z0-9]{40,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"xkeysib-[\w-]{16,}",
    r"key-[0-9a-f]{32}",
    r"npm_\w{30,}",
    r"pypi-[\w-]{16,}",
    r"rubygems_\w{16,}",
    r"dckr_(?:oat|pat)_[\w-]{16,}",
    r"hf_\w{20,}",
    r"shp(?:at|ca|pa|ss)_\w{16,}",
    r"do[op]_v1_\w{16,}",
    r"hv[bs]\.[\w-]{16,}",
    r"dapi[0-9a-f]{32}",
    r"gls?a_\w{16,}",
    r"sq0(?:atp|csp)-[\w-]{16,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
)
_WEB_TOKEN: Final = re.compile(r"(?<![A-Za-z0-9])eyJ[\w-]{8,512}\.[\w-]+(?:\.[\w-]*){0,3}")
"""A JSON web token. Its first part is an object of three or four short members."""
SCHEME: Final = re.compile(r"\b(?P<prefix>(?:Basic|Bearer|Digest)[ ]{1,8})(?P<secret>[\w.~+/=-]{12,})", re.IGNORECASE)
TOKEN: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_FORMS)})")


def without_tokens(text: str) -> str:
    """Return the text with `****` in place of each recognised credential."""
    return SCHEME.sub(rf"\g<prefix>{MASK}", _WEB_TOKEN.sub(MASK, TOKEN.sub(MASK, text)))
