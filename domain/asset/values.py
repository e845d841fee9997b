"""Values of an asset: docs/reference/api/assets.md."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class AssetState(IntEnum):
    GENERATING = 0
    COMPLETED = 1
    FAILED = 2


class AssetType(IntEnum):
    """SYSTEM assets are files that no client has requested."""

    SYSTEM = 0
    IMAGE = 1
    VIDEO = 2
    GIF = 3
    CAPTION = 4


class CaptionKind(StrEnum):
    """The audience of a text track. `captions` also describe sounds, for viewers who cannot hear them; `descriptions` describe the
    picture; `forced` tracks translate only foreign parts of the film, and are shown without being chosen."""

    CAPTIONS = "captions"
    SUBTITLES = "subtitles"
    DESCRIPTIONS = "descriptions"
    FORCED = "forced"


FOLDER: Final = "assets"
"""The folder of requested assets, below that of the content."""
CAPTIONS: Final = "captions"
"""The folder of captions that clients added, below that of the content."""
FOUND: Final = "subtitles"
"""The folder of text tracks that were found in the source of a film, below that of the content."""
EXTENSIONS: Final = {AssetType.IMAGE: ".jpg", AssetType.VIDEO: ".mp4", AssetType.GIF: ".gif", AssetType.CAPTION: ".vtt"}
