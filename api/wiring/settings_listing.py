"""Settings as people see them: in the documentation, and with their values, of which secrets are masked."""

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
    """What a person may know of a setting before it has a value."""

    name: str
    field: str
    meaning: str
    default: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of `medialedger settings`."""

    name: str
    value: str
    meaning: str
    origin: str


def listed(settings: BaseSettings, variables: Sequence[Variable], *, arguments: Mapping[str, str]) -> list[Listed]:
    """Every setting, with its value and where that comes from."""

    def origin(field: str) -> str:
        if field in arguments:
            return "argument"
        return "environment" if field in settings.model_fields_set else "default"

    return [Listed(one.name, shown(one.field, getattr(settings, one.field)), one.meaning, origin(one.field)) for one in variables]


def masked_database_url(url: str) -> str:
    """The connection as libpq understands it, in its `key=value` form, whatever form it was given in."""
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
