"""The parser of the command line: argparse, which names the closest word where one was mistyped."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentError, ArgumentParser
from collections.abc import Sequence
from typing import Any, NoReturn

from domain.kernel.closest import closest


class ShowVersion(Action):
    """`--version`: looked up when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest=SUPPRESS, default=SUPPRESS, nargs=0, help="show the version, and end")

    def __call__(self, parser: ArgumentParser, *_: Any) -> NoReturn:
        from api.kernel.version import product_version

        print(f"medialedger {product_version()}")
        parser.exit()


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
