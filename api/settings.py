"""Every setting, parsed once and passed down: the only place that looks at the process's environment.

`VARIABLES` is the table that `Settings` is read from and that `medialedger settings` shows; a setting is one line in it and
one field below.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

PREFIX = "MEDIALEDGER_"
MASK = "********"
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SettingsError(Exception):
    """One line that names the variable and says what belongs there."""


@dataclass(frozen=True, slots=True)
class Variable:
    """`parse` raises ValueError with the end of the sentence "NAME must be …"; `show` hides what must not be seen."""

    name: str
    field: str
    meaning: str
    default: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of `medialedger settings`."""

    name: str
    value: str
    meaning: str
    origin: str


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """`given` and `unknown` name the variables that were set, so that a person can see where a value comes from."""

    home: Path
    host: str
    port: int
    database_url: str | None
    admin_api_key: str | None
    master_key_file: Path
    media_root: Path
    outbound_allow: tuple[Network, ...]
    speke_rate: int
    steps: int
    lease_seconds: int
    kafka_bootstrap_servers: str | None
    log_level: str
    shutdown_seconds: int
    given: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()

    @classmethod
    def from_process(cls) -> Settings:
        return cls.from_env(os.environ)

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Settings:
        """An empty variable counts as one that is not set."""
        given = {name: value for name, value in environment.items() if name.startswith(PREFIX) and value.strip()}
        home = _parsed(VARIABLES[0], given.get(VARIABLES[0].name, VARIABLES[0].default))
        values = {
            variable.field: _parsed(variable, given.get(variable.name, variable.default.replace("HOME", str(home), 1)))
            for variable in VARIABLES
        }
        known = {variable.name for variable in VARIABLES}
        unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
        return cls(**values, given=frozenset(given) & known, unknown=tuple(unknown))

    def listing(self) -> Sequence[Listed]:
        """Every setting as a person may see it: secrets are masked."""
        return [
            Listed(
                variable.name,
                variable.show(getattr(self, variable.field)),
                variable.meaning,
                "environment" if variable.name in self.given else "default",
            )
            for variable in VARIABLES
        ]

    def __repr__(self) -> str:
        shown = ", ".join(f"{v.field}={v.show(getattr(self, v.field))!r}" for v in VARIABLES)
        return f"Settings({shown})"


def masked_database_url(url: str | None) -> str:
    """The connection as libpq understands it, in its `key=value` form, whatever form it was given in."""
    if url is None:
        return ""
    parts = {
        key: MASK if "password" in key or "secret" in key or key.startswith("scram_") else value
        for key, value in conninfo_to_dict(url).items()
    }
    return make_conninfo("", **parts)


def _parsed(variable: Variable, text: str) -> Any:
    try:
        return variable.parse(text.strip())
    except ValueError as error:
        raise SettingsError(f"{variable.name} must be {error}") from None


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"a path, not {text!r}: there is no such user") from None


def _host(text: str) -> str:
    if any(character.isspace() or character in "/@" for character in text):
        raise ValueError(f"a host name or an IP address, not {text!r}")
    return text.removeprefix("[").removesuffix("]")


def _whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and lowest <= int(text[:12]) <= highest):
            raise ValueError(f"a whole number from {lowest} to {highest}, not {text!r}")
        return int(text)

    return parse


def _database_url(text: str) -> str | None:
    """libpq's own complaint may quote the password, so it is not passed on."""
    try:
        conninfo_to_dict(text)
    except ProgrammingError:
        raise ValueError("a PostgreSQL address such as postgresql://user:password@host:5432/database") from None
    return text or None


def _bootstrap_servers(text: str) -> str | None:
    """host:port, several separated by commas; an IPv6 address in brackets."""
    servers = [part.strip() for part in text.split(",") if part.strip()]
    for server in servers:
        host, _, port = server.rpartition(":")
        if not (host.strip("[]") and not any(c.isspace() or c in "/@" for c in host) and port.isascii() and port.isdigit()):
            raise ValueError(f"host:port, several separated by commas, not {text!r}")
    return ",".join(servers) or None


def _admin_api_key(text: str) -> str | None:
    if text and (len(text) < 16 or not all("!" <= character <= "~" for character in text)):
        raise ValueError("at least 16 visible ASCII characters without blanks")
    return text or None


def _networks(text: str) -> tuple[Network, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        return tuple(ipaddress.ip_network(part) for part in parts)
    except ValueError as error:
        raise ValueError(f"a comma-separated list of networks such as 10.0.0.0/8,::1/128 ({error})") from None


def _log_level(text: str) -> str:
    if text.upper() not in LOG_LEVELS:
        raise ValueError(f"one of {', '.join(LOG_LEVELS)}, not {text!r}")
    return text.upper()


def _show_secret(value: str | None) -> str:
    return MASK if value else ""


def _show_optional(value: str | None) -> str:
    return value or ""


def _show_networks(value: tuple[Network, ...]) -> str:
    return ",".join(str(network) for network in value)


VARIABLES: tuple[Variable, ...] = (
    Variable(f"{PREFIX}HOME", "home", "data directory: embedded database, key files, media", "./.medialedger", _path),
    Variable(f"{PREFIX}HOST", "host", "where the API listens", "127.0.0.1", _host),
    Variable(f"{PREFIX}PORT", "port", "where the API listens; 0 takes any free port", "8080", _whole_number(0, 65535)),
    Variable(
        f"{PREFIX}DATABASE_URL",
        "database_url",
        "a PostgreSQL 15 or newer of one's own; empty: the embedded one",
        "",
        _database_url,
        masked_database_url,
    ),
    Variable(
        f"{PREFIX}KAFKA_BOOTSTRAP_SERVERS",
        "kafka_bootstrap_servers",
        "Kafka brokers, host:port separated by commas; consumers then read from Kafka. Empty: they read the event log itself",
        "",
        _bootstrap_servers,
        _show_optional,
    ),
    Variable(
        f"{PREFIX}ADMIN_API_KEY",
        "admin_api_key",
        "key of the client admin at the first start; empty: generated, written to HOME/admin-api-key",
        "",
        _admin_api_key,
        _show_secret,
    ),
    Variable(
        f"{PREFIX}MASTER_KEY_FILE",
        "master_key_file",
        "32-byte key that seals secrets and content keys; generated when missing",
        "HOME/master.key",
        _path,
    ),
    Variable(f"{PREFIX}MEDIA_ROOT", "media_root", "where VOD folders lie: MEDIA_ROOT/<contentId>/", "HOME/media", _path),
    Variable(
        f"{PREFIX}OUTBOUND_ALLOW",
        "outbound_allow",
        "networks that outbound calls may reach although they are not public, comma-separated",
        "",
        _networks,
        _show_networks,
    ),
    Variable(
        f"{PREFIX}SPEKE_RATE",
        "speke_rate",
        "content key requests that a client may make per second and process; four times as many at once",
        "50",
        _whole_number(1, 1_000_000),
    ),
    Variable(
        f"{PREFIX}STEPS",
        "steps",
        "steps of jobs that a process runs at a time, for each queue that it works for",
        "4",
        _whole_number(1, 1000),
    ),
    Variable(
        f"{PREFIX}LEASE_SECONDS",
        "lease_seconds",
        "how long nothing may be heard of a worker before its steps are given to others; the same for all",
        "30",
        _whole_number(3, 3600),
    ),
    Variable(f"{PREFIX}LOG_LEVEL", "log_level", f"one of {', '.join(LOG_LEVELS)}", "INFO", _log_level),
    Variable(
        f"{PREFIX}SHUTDOWN_SECONDS",
        "shutdown_seconds",
        "how long requests under way may take to finish when the process is asked to stop",
        "10",
        _whole_number(0, 3600),
    ),
)
