"""Names of clients: which are taken by the product itself, and which look the same: docs/reference/api/clients.md#names."""

from __future__ import annotations

import re
from typing import Final

from domain.kernel.errors import Malformed

FIRST: Final = "admin"
"""The name of the client that the product adds at its first start."""
DEMO_LOADER: Final = "demo-loader"
"""The client of the demo, an admin that is deleted with it."""
SEGMENTS: Final = frozenset(
    (
        *("api", "engine", "console", "media", "origin", "docs", "openapi.json", "asyncapi.json", "favicon.ico"),
        *("livez", "readyz", "metrics", ".", ".."),
    )
)
"""First segments of paths that are, or will be, something else than a client's."""
_OURSELVES: Final = (
    *("system", "product", "service", "medialedger", "speke", "shell"),
    *("client", "person", "anonymous", "redacted", "erased", FIRST),
)
"""What the log, the audit and the console call the product, callers without a name, and causes that were erased."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ALIKE: Final = str.maketrans("01i", "oll")


def likeness(name: str) -> str:
    """What two names share that people take for one: lower case, with 0 as o, and 1 and i as l."""
    return name.lower().translate(_ALIKE)


RESERVED: Final = frozenset(map(likeness, (*SEGMENTS, *_OURSELVES)))


def is_reserved(name: str) -> bool:
    """Whether no new client may have the name. `admin` itself may be the first client's."""
    return likeness(name) in RESERVED and name != FIRST


def check_spelling(name: str) -> None:
    """Refuse what no client is called, of whatever build."""
    if not _NAME.fullmatch(name):
        raise Malformed.at("name", "1 to 64 of A-Z a-z 0-9 . _ -")
    if name in SEGMENTS:
        raise Malformed.at("name", "is reserved")


def check_name(name: str) -> None:
    """Refuse what a new client may not be called. A name is also the first path segment of the key provider."""
    check_spelling(name)
    if is_reserved(name):
        raise Malformed.at("name", "is reserved, or looks like a name that is")
