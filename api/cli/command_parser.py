"""The parser of the command line: argparse, which names the closest word where one was mistyped."""

from __future__ import annotations

from argparse import Action, ArgumentError, ArgumentParser
from difflib import get_close_matches
from typing import Any


class CommandParser(ArgumentParser):
    """Parsers of commands below it are of this class too."""

    def _check_value(self, action: Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except ArgumentError as error:
            close = get_close_matches(str(value), map(str, action.choices or ()), n=1, cutoff=0.7)
            if close:
                raise ArgumentError(action, f"invalid choice: {value!r}; did you mean {close[0]}?") from None
            raise error from None
