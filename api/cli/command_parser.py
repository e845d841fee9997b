"""The parser of the command line: argparse, which suggests the closest word for a mistyped one."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentError, ArgumentParser
from collections.abc import Sequence
from typing import Any, NoReturn

from domain.kernel.closest import closest


class ShowVersion(Action):
    """The option `--version`. The version is looked up only when it is used."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest=SUPPRESS, default=SUPPRESS, nargs=0, help="show the version and exit")

    def __call__(self, parser: ArgumentParser, *_: Any) -> NoReturn:
        from api.kernel.version import product_version

        print(f"medialedger {product_version()}")
        parser.exit()


class CommandParser(ArgumentParser):
    """The parser of a command line. The parsers of its sub-commands have this class too."""

    def _check_value(self, action: Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except ArgumentError as error:
            suggestion = closest(str(value), map(str, action.choices or ()))
            if suggestion is not None:
                raise ArgumentError(action, f"invalid choice: {value!r}; did you mean {suggestion}?") from None
            raise error from None
