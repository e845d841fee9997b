"""Names of clients: those reserved for the product, and those that look alike: docs/reference/api/clients.md#names."""

from __future__ import annotations

import re
from typing import Final

from domain.kernel.errors import Malformed

FIRST: Final = "admin"
"""The name of the client that the product adds at its first start."""
DEMO_LOADER: Final = "demo-loader"
"""The client of the demo, an admin that is deleted with the demo."""
SEGMENTS: Final = frozenset(
    (
        *("api", "engine", "console", "media", "origin", "docs", "openapi.json", "asyncapi.json", "favicon.ico"),
        *("livez", "readyz", "metrics", ".", ".."),
    )
)
"""First segments of paths that are used, or will be used, for something else than a client."""
_OURSELVES: Final = (
    *("system", "product", "service", "medialedger", "speke", "shell"),
    *("client", "person", "anonymous", "redacted", "erased", FIRST),
)
"""Names that the log, the audit and the console use for the product, for callers without a name, and for causes that were erased.
"""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ALIKE: Final = str.maketrans("01i", "oll")


def likeness(name: str) -> str:
    """Return a form that is equal for names that people confuse: lower case, with 0 as o, and 1 and i as l."""
    return name.lower().translate(_ALIKE)


RESERVED: Final = frozenset(map(likeness, (*SEGMENTS, *_OURSELVES)))


def is_reserved(name: str) -> bool:
    """Return True if no new client may have the name. `admin` itself is allowed for the first client."""
    return likeness(name) in RESERVED and name != FIRST


def check_spelling(name: str) -> None:
    """Refuse a name that no client can have in any version of the product."""
    if not _NAME.fullmatch(name):
        raise Malformed.at("name", "1 to 64 of A-Z a-z 0-9 . _ -")
    if name in SEGMENTS:
        raise Malformed.at("name", "is reserved")


def check_name(name: str) -> None:
    """Refuse a name that a new client may not have. A name is also the first path segment of the key provider."""
    check_spelling(name)
    if is_reserved(name):
        raise Malformed.at("name", "is reserved, or looks like a name that is")
