"""The title, description and options of a publication, within the limits of YouTube."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workers.target_ports import PublicationOrder, TargetFailed

PUBLIC: Final = "public"
PRIVATE: Final = "private"
_PRIVACY: Final = (PUBLIC, "unlisted", PRIVATE)
_TITLE: Final = 100
_DESCRIPTION: Final = 5_000
_PEOPLE: Final = "22"
"""The default category of a film: People & Blogs, which exists in every region."""
_BRACKETS: Final = str.maketrans("<>", "()")


def snippet(order: PublicationOrder) -> dict[str, Any]:
    text = words(order)
    return {**text, "categoryId": str(order.options.get("yt_categoryId") or _PEOPLE)}


def words(order: PublicationOrder) -> Mapping[str, str]:
    """Return title and description. YouTube refuses angle brackets, and counts the description in bytes."""
    title = (order.title or order.content_id).translate(_BRACKETS)[:_TITLE]
    description = order.description.translate(_BRACKETS).encode()[:_DESCRIPTION].decode(errors="ignore")
    return {"title": title, "description": description}


def privacy(order: PublicationOrder) -> str:
    chosen = order.options.get("yt_privacyStatus") or PUBLIC
    if chosen not in _PRIVACY:
        raise TargetFailed("publication", f"The publication's yt_privacyStatus must be one of {', '.join(_PRIVACY)}.")
    return str(chosen)


def tag(order: PublicationOrder) -> str:
    """Return the text by which everything that belongs to a publication is found."""
    return f"medialedger-{order.id}"
