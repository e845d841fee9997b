"""Variables that say where commands go: they are about the person who types, and no settings of the product."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

URL: Final = "MEDIALEDGER_URL"
KEY: Final = "MEDIALEDGER_API_KEY"
CONTEXT: Final = "MEDIALEDGER_CONTEXT"


def environment() -> Mapping[str, str]:
    return os.environ  # noqa: TID251 - not a setting


def given(name: str) -> str | None:
    """An empty variable counts as one that is not set."""
    return environment().get(name, "").strip() or None


def home() -> Path:
    """As the settings have it, without their imports."""
    return Path(given("MEDIALEDGER_HOME") or ".medialedger").expanduser().absolute()
