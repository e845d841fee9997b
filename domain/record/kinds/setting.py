"""Setting: a number, text or flag of a client that configures the job engine; see docs/reference/api/job-engine.md#settings.

This is the only place of the defaults. Clients may also set names of their own, which the engine ignores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from math import isfinite
from typing import Any, ClassVar, Final, Self

from pydantic import BaseModel

from domain.kernel.command import decision
from domain.kernel.credentials import speaks_of_credential
from domain.kernel.errors import Malformed
from domain.record.record import Record

Value = int | float | str | bool | None
"""The value of a setting. None means "no limit", for settings that allow it."""

_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "max_jobs": (0, 10_000),
    "priority_slots": (0, 10_000),
    "priority_threshold": (1, 11),
    "schedule_interval": (1, 86_400),
    "retry_delay": (0, 86_400),
    "retry_limit": (0, 100),
    "max_waiting_jobs": (0, 10_000_000),
    "max_webhooks": (0, 1_000_000),
    "max_content_keys": (0, 100_000_000),
}
_UNLIMITED: Final = frozenset({"max_webhooks"})
MOST_JOBS: Final = 100
"""The limit of `max_jobs` that a client may set for itself."""
_OF_ADMINS: Final = frozenset({"max_waiting_jobs", "max_webhooks", "max_content_keys"})
_FRACTIONS: Final = frozenset({"retry_delay"})
_NUMBER: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of one client that the engine uses. `retry_delay` and `schedule_interval` are in seconds; a job with a
    priority below `priority_threshold` may take one of the `priority_slots`."""

    max_jobs: int = 2
    priority_slots: int = 0
    priority_threshold: int = 5
    schedule_interval: int = 60
    retry_delay: float = 5
    retry_limit: int = 3
    max_waiting_jobs: int = 100_000
    """The number of jobs that are accepted and neither started nor ended."""
    max_webhooks: int | None = None
    """The number of webhooks that the client has added, for the whole system and for Events, and that are not deleted. None
    means any number."""
    max_content_keys: int = 1_000_000
    """The number of content keys that were issued for the client, for packagers and for its jobs. Imported keys count."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings with these values. Unknown names are ignored."""
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})


class SettingDetails(BaseModel):
    client: str
    name: str
    setting: Value = None


class Setting(Record[SettingDetails]):
    """A setting. Its key is `<client>:<name>`."""

    KIND: ClassVar[str] = "setting"
    PARENT: ClassVar[str] = "client"

    @staticmethod
    def key_of(client: str, name: str) -> str:
        return f"{client}:{name}"

    @decision
    def amend(self, at: datetime, /, changes: Mapping[str, Any], *, still: Mapping[str, Any] | None = None) -> None:
        """Change the value. 1 and True are equal in Python but are different settings."""
        self._check_not_deleted(still)
        setting = self.prepare_values(changes, self.details).get("setting")
        if setting == self.details.setting and type(setting) is not type(self.details.setting):
            self._trigger(self.EVENTS.amended, at=at, setting=setting)
        else:
            super().amend(at, changes, still=still)

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: SettingDetails | None) -> Mapping[str, Any]:
        name = values.get("name", getattr(stored, "name", ""))
        if name not in _BOUNDS and speaks_of_credential(name):
            raise Malformed.at("name", "settings are not a place for secrets")
        return {**values, "setting": _checked(name, values["setting"])} if "setting" in values else values


def reserved_for_admins(name: str, value: Any) -> str | None:
    """Return the reason for which only an admin may set this value; None if every client may, for itself. An invalid value is
    refused later."""
    if name in _OF_ADMINS:
        return f"Only an admin may set {name}."
    if name == "max_jobs" and _bounded(name, value, _BOUNDS[name]) > MOST_JOBS:
        return f"Only an admin may set {name} above {MOST_JOBS}."
    return None


def _checked(name: str, value: Any) -> Value:
    bounds = _BOUNDS.get(name)
    if value is None:
        if name not in _UNLIMITED:
            raise Malformed.at("setting", "is required")
        return None
    return _free(value) if bounds is None else _bounded(name, value, bounds)


def _bounded(name: str, value: Any, bounds: tuple[int, int]) -> int | float:
    """Return a number within its bounds, from a number or its digits."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    least, most = bounds
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most or (value != int(value) and name not in _FRACTIONS):
        what = "a number" if name in _FRACTIONS else "a whole number"
        raise Malformed.at("setting", f"{name} is {what}, {least} to {most}")
    return int(value) if value == int(value) else float(value)


def _free(value: Any) -> Value:
    if not isinstance(value, int | float | str) or (isinstance(value, float) and not isfinite(value)):
        raise Malformed.at("setting", "must be a number, a text, true or false")
    if isinstance(value, int) and value.bit_length() > 63:
        raise Malformed.at("setting", "must be a number of at most 63 bits")
    if isinstance(value, str) and len(json.dumps(value, ensure_ascii=False)) > _LONGEST:
        raise Malformed.at("setting", f"must have at most {_LONGEST} characters")
    return value
