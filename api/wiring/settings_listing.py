"""Settings for people: in the documentation, and with their values, in which secrets are masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr
from pydantic_settings import BaseSettings

MASK: Final = "********"


@dataclass(frozen=True, slots=True)
class Variable:
    """The description of a setting, without a value."""

    name: str
    field: str
    meaning: str
    default: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of `medialedger settings`."""

    name: str
    value: str
    meaning: str
    origin: str


def listed(settings: BaseSettings, variables: Sequence[Variable], *, arguments: Mapping[str, str]) -> list[Listed]:
    """Return every setting with its value and the origin of that."""

    def origin(field: str) -> str:
        if field in arguments:
            return "argument"
        return "environment" if field in settings.model_fields_set else "default"

    return [
        Listed(variable.name, shown(variable.field, getattr(settings, variable.field)), variable.meaning, origin(variable.field))
        for variable in variables
    ]


def masked_database_url(url: str) -> str:
    """Return the connection in libpq's `key=value` form with masked secrets, whatever form it was given in."""
    parts = {
        key: MASK if "password" in key or "secret" in key or key.startswith("scram_") else value
        for key, value in conninfo_to_dict(url).items()
    }
    return make_conninfo("", **parts)


def shown(field: str, value: Any) -> str:
    if isinstance(value, SecretStr):
        return masked_database_url(value.get_secret_value()) if field.endswith("database_url") else MASK
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)
