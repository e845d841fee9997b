"""A text with secrets that a person passes to a command in a file or on standard input, because other users can read arguments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from api.wiring.startup import StartError
from workers.adapters.keyfiles import KeyFileError, read_secret_file

STANDARD_INPUT: Final = "-"
_LONGEST: Final = 1024 * 1024


def secret_text(file: str) -> str:
    """Return the text. Raise `StartError` if it cannot be read."""
    try:
        text = _standard_input() if file == STANDARD_INPUT else read_secret_file(Path(file))
    except KeyFileError as error:
        raise StartError(str(error)) from None
    if len(text) > _LONGEST:
        raise StartError(f"the text has more than {_LONGEST} characters")
    return text


def _standard_input() -> str:
    try:
        return sys.stdin.read(_LONGEST + 1)
    except UnicodeDecodeError:
        raise StartError("standard input cannot be read: it is not text") from None
