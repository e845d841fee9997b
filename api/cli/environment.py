"""The environment variables that say where commands go. They belong to the person at the shell, and are not settings of the
product."""

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


def variable(name: str) -> str | None:
    """Return the value of a variable; None if it is unset or empty."""
    return environment().get(name, "").strip() or None


def home() -> Path:
    """Return the home as the settings define it, without their imports."""
    return Path(variable("MEDIALEDGER_HOME") or ".medialedger").expanduser().absolute()
