"""The name of a published file, and members of a destination's configuration.

The name contains the id of the publication: two publications of one content share no file, and deleting one does not affect the
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workers.ports.targets import PublicationOrder, TargetFailed

_LONGEST: Final = 180
"""The limit for a content id in bytes: file names have at most 255."""
_FORBIDDEN: Final = ("/", "\\")
PROBE: Final = ".medialedger-probe-"


def file_name(order: PublicationOrder) -> str:
    return f"{content_id(order)}-{order.id}{order.ending}"


def content_id(order: PublicationOrder) -> str:
    """Return the content id. It is checked here again, because it becomes part of a path on external machines."""
    name = order.content_id
    if not name or len(name.encode("utf-8", "replace")) > _LONGEST:
        raise TargetFailed("publication", f"The content id must have 1 to {_LONGEST} bytes to be the name of a file.")
    if name.startswith(".") or not name.isprintable() or any(character in name for character in _FORBIDDEN):
        raise TargetFailed(
            "publication",
            "The content id begins with a dot, or contains slashes or unprintable characters: it cannot be the name of a file.",
        )
    return name


def text(config: Mapping[str, Any], member: str, default: str | None = None) -> str:
    """Return a member that is a text. Without a `default`, it must not be empty."""
    value = config.get(member, default)
    if not isinstance(value, str) or (not value and default is None):
        raise TargetFailed("destination", f"The destination's {member} is missing: set it in destinationJson.")
    return value


def port(config: Mapping[str, Any], default: int) -> int:
    value = config.get("port", default)
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 65_535:
        raise TargetFailed("destination", "The destination's port must be a number from 1 to 65535.")
    return number
