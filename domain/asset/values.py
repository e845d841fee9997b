"""Values of an asset: docs/reference/api/assets.md."""

from __future__ import annotations

from enum import IntEnum
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


FOLDER: Final = "assets"
"""The folder of requested assets, below that of the content."""
EXTENSIONS: Final = {AssetType.IMAGE: ".jpg", AssetType.VIDEO: ".mp4", AssetType.GIF: ".gif"}
