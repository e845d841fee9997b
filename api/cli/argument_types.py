"""Types of command line arguments: each takes a text and raises for one that is none."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime
from json import loads
from re import DOTALL, fullmatch
from typing import Any, Final
from uuid import UUID

_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9000


def utf8(text: str) -> str:
    """A text argument. Raises for one that is not valid UTF-8, which the database cannot store."""
    text.encode()
    return text


def title(text: str) -> str:
    from api.kernel.wire import LONGEST_LABEL  # imports pydantic: most commands do not need that

    if not utf8(text).strip():
        raise ArgumentTypeError("it has no character that can be seen")
    if len(text) > LONGEST_LABEL:
        raise ArgumentTypeError(f"it has more than {LONGEST_LABEL} characters")
    return text


def target(text: str) -> str:
    """The name of a publishing target, as upper case."""
    from domain.destination.targets import Target  # most commands do not need the models of their configurations

    name = text.upper()
    if name not in Target.__members__:
        raise ArgumentTypeError(f"there is no {text!r}; there are {', '.join(Target.__members__)}")
    return name


def event_id(text: str) -> UUID:
    return UUID(text)


def parameter(text: str) -> tuple[str, Any]:
    """`name=text`, or `name:=JSON`. Gives the name and the value."""
    found = fullmatch(r"([^:=]+)(:?=)(.*)", utf8(text), flags=DOTALL)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is neither NAME=text nor NAME:=JSON")
    name, sign, value = found.groups()
    if sign == "=":
        return name, value
    try:
        return name, loads(value)
    except ValueError:
        raise ArgumentTypeError(f"{name}: what follows := is not JSON") from None


def seconds(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def position(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def moment(text: str) -> datetime:
    """Without an offset it is UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def schedule_time(text: str) -> datetime:
    """A moment with room for a schedule around it."""
    try:
        found = moment(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no date and time, such as 2026-11-25T12:00:00Z") from None
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise ArgumentTypeError(f"the year must be {_FIRST_YEAR} to {_LAST_YEAR}")
    return found
