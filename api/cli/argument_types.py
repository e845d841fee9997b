"""Types of command line arguments. Each function takes the text of an argument and raises for an invalid one."""

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
    """Return the text of an argument. Raise for text that is not valid UTF-8, which the database cannot store."""
    text.encode()
    return text


def title(text: str) -> str:
    from api.kernel.wire import LONGEST_LABEL  # imports pydantic: most commands do not need that

    if not utf8(text).strip():
        raise ArgumentTypeError("it has no visible character")
    if len(text) > LONGEST_LABEL:
        raise ArgumentTypeError(f"it has more than {LONGEST_LABEL} characters")
    return text


def target(text: str) -> str:
    """Return the name of a publishing target in upper case."""
    from domain.destination.targets import Target  # most commands do not need the models of their configurations

    name = text.upper()
    if name not in Target.__members__:
        raise ArgumentTypeError(f"{text!r} does not exist; choose one of {', '.join(Target.__members__)}")
    return name


def event_id(text: str) -> UUID:
    return UUID(text)


def parameter(text: str) -> tuple[str, Any]:
    """Return the name and the value of an argument `name=text` or `name:=JSON`."""
    match = fullmatch(r"([^:=]+)(:?=)(.*)", utf8(text), flags=DOTALL)
    if match is None:
        raise ArgumentTypeError(f"{text!r} is neither NAME=text nor NAME:=JSON")
    name, sign, value = match.groups()
    if sign == "=":
        return name, value
    try:
        return name, loads(value)
    except ValueError:
        raise ArgumentTypeError(f"{name}: the text after := is not JSON") from None


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


def moment_or_version(text: str) -> str:
    """Return a version (`v3` or `3`) or a time in the spelling of the audit's query parameters."""
    if match := fullmatch(r"v?([1-9][0-9]{0,17})", text):
        return match[1]
    return moment(text).isoformat()


def moment(text: str) -> datetime:
    """Return the time of an ISO 8601 text. A time without an offset is UTC."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def schedule_time(text: str) -> datetime:
    """Return a time that is far enough from the limits of the calendar for a schedule around it."""
    try:
        parsed = moment(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date and time such as 2026-11-25T12:00:00Z") from None
    if not _FIRST_YEAR <= parsed.year <= _LAST_YEAR:
        raise ArgumentTypeError(f"the year must be {_FIRST_YEAR} to {_LAST_YEAR}")
    return parsed
