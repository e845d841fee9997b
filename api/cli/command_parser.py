"""The parser of the command line: argparse, which names the closest word where one was mistyped."""

from __future__ import annotations

from argparse import Action, ArgumentError, ArgumentParser
from typing import Any

from domain.kernel.closest import closest


class CommandParser(ArgumentParser):
    """Parsers of commands below it are of this class too."""

    def _check_value(self, action: Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except ArgumentError as error:
            found = closest(str(value), map(str, action.choices or ()))
            if found is not None:
                raise ArgumentError(action, f"invalid choice: {value!r}; did you mean {found}?") from None
            raise error from None
