"""Every setting, parsed once and passed down: the only place that looks at the process's environment.

A setting is one field of `Settings`. Its parser takes the text of the variable and raises ValueError with the end of the sentence
"NAME must be …".
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from projections.kernel.database import PoolLimits
from projections.kernel.sizes import MIB
from projections.log.append import AppendLimits
from projections.log.limits import LogLimits
from workers.adapters.kafka.connection import KafkaConnection

PREFIX = "MEDIALEDGER_"
MASK = "********"
_HOME = "./.medialedger"
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SettingsError(Exception):
    """One line that names the variable and says what belongs there."""


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


def _public_url(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if text and not (good and text.rstrip("/") == f"{parts.scheme}://{parts.netloc}" and "@" not in text):
        raise ValueError(f"http:// or https:// and a host, without a path, not {text!r}")
    return text.rstrip("/") or None


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


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.upper() not in words:
            raise ValueError(f"one of {', '.join(words)}, not {text!r}")
        return text.upper()

    return parse


def _networks(text: str) -> tuple[Network, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        return tuple(ipaddress.ip_network(part) for part in parts)
    except ValueError as error:
        raise ValueError(f"a comma-separated list of networks such as 10.0.0.0/8,::1/128 ({error})") from None


def _stripped(parse: Callable[[str], Any]) -> BeforeValidator:
    return BeforeValidator(lambda text: parse(text.strip()))


def _in_home(name: str) -> Callable[[dict[str, Any]], Path]:
    """The default of a path below `home`, which is read before it."""
    return lambda known: known["home"] / name


class Settings(BaseSettings):
    """A setting that the environment does not name has its default."""

    model_config = SettingsConfigDict(frozen=True, env_prefix=PREFIX, validate_default=False, hide_input_in_errors=True)

    home: Annotated[Path, _stripped(_path)] = Field(
        default_factory=lambda: _path(_HOME), description="data directory: embedded database, key files, media"
    )
    host: Annotated[str, _stripped(_host)] = Field("127.0.0.1", description="where the API listens")
    port: Annotated[int, _stripped(_whole_number(0, 65535))] = Field(
        8080, description="where the API listens; 0 takes any free port"
    )
    api_processes: Annotated[int, _stripped(_whole_number(1, 64))] = Field(
        1, description="processes of the API, which share the port; about one for each core"
    )
    worker_processes: Annotated[int, _stripped(_whole_number(0, 64))] = Field(
        0, description="processes of the workers; 0: `up` runs the workers in the processes of the API"
    )
    public_url: Annotated[str | None, _stripped(_public_url)] = Field(
        None,
        description="where callers reach the API, such as https://media.example: for links, and the only name that it answers to. "
        "Empty: links have the host of the request, and every name is answered; with a loopback MEDIALEDGER_HOST only localhost",
    )
    connections: Annotated[int, _stripped(_whole_number(1, 1_000_000))] = Field(
        10_000, description="open connections of clients to a process of the API; further ones get 503"
    )
    connections_per_address: Annotated[int, _stripped(_whole_number(1, 1_000_000))] = Field(
        2_000, description="of these from one address; and requests under way that MEDIALEDGER_TRUSTED_PROXIES pass on for it"
    )
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode, _stripped(_networks)] = Field(
        (), description="networks of the proxies in front whose X-Forwarded-For and X-Forwarded-Proto are believed, comma-separated"
    )
    database_url: Annotated[SecretStr | None, _stripped(_database_url)] = Field(
        None, description="a PostgreSQL 15 or newer of one's own; empty: the embedded one"
    )
    database_connections: Annotated[int, _stripped(_whole_number(2, 1000))] = Field(
        8, description="connections of a process for writes, authentication and reads of one thing"
    )
    database_list_connections: Annotated[int, _stripped(_whole_number(1, 1000))] = Field(
        4, description="further connections of a process for lists, searches and the audit"
    )
    database_lists_waiting: Annotated[int, _stripped(_whole_number(1, 100_000))] = Field(
        1000, description="how many lists may wait for one of these connections; further ones get 503"
    )
    database_query_seconds: Annotated[int, _stripped(_whole_number(1, 3600))] = Field(
        5, description="how long a query may take; a longer one is stopped, and its request gets 503"
    )
    log_partition_events: Annotated[int, _stripped(_whole_number(1000, 10**11))] = Field(
        100_000_000, description="events in each partition of the log that is made from now on"
    )
    append_queue_mib: Annotated[int, _stripped(_whole_number(1, 100_000))] = Field(
        64, description="how much may wait to be written to the log, in all processes of the API; further changes get 503"
    )
    append_batch_mib: Annotated[int, _stripped(_whole_number(1, 1000))] = Field(
        8, description="how much goes into one commit of the log; a larger change has one of its own"
    )
    aggregate_cache_mib: Annotated[int, _stripped(_whole_number(1, 1_000_000))] = Field(
        128, description="how much of the aggregates that were changed last a process keeps in memory"
    )
    kafka_bootstrap_servers: Annotated[str | None, _stripped(_bootstrap_servers)] = Field(
        None,
        description="Kafka brokers, host:port separated by commas; consumers then read from Kafka. "
        "Empty: they read the event log itself",
    )
    kafka_security_protocol: Annotated[str, _stripped(_one_of(SECURITY_PROTOCOLS))] = Field(
        "PLAINTEXT", description=f"how Kafka is spoken to: one of {', '.join(SECURITY_PROTOCOLS)}"
    )
    kafka_sasl_mechanism: Annotated[str | None, _stripped(_one_of(SASL_MECHANISMS))] = Field(
        None, description=f"for SASL_…: one of {', '.join(SASL_MECHANISMS)}"
    )
    kafka_username: str | None = Field(None, description="for SASL_…")
    kafka_password: SecretStr | None = Field(None, description="for SASL_…")
    kafka_ca_file: Annotated[Path | None, _stripped(_path)] = Field(
        None, description="certificates that the brokers' are signed by, PEM; empty: those of the system"
    )
    kafka_certificate_file: Annotated[Path | None, _stripped(_path)] = Field(
        None, description="certificate of the product, PEM, for brokers that ask for one"
    )
    kafka_key_file: Annotated[Path | None, _stripped(_path)] = Field(None, description="its private key, PEM, without a password")
    kafka_replication_factor: Annotated[int | None, _stripped(_whole_number(1, 1000))] = Field(
        None, description="replicas of the topics that the relay makes; empty: the brokers' default"
    )
    kafka_min_in_sync_replicas: Annotated[int | None, _stripped(_whole_number(1, 1000))] = Field(
        None, description="replicas that must have a record before it counts as sent, of those topics; empty: the brokers' default"
    )
    admin_api_key: Annotated[SecretStr | None, _stripped(_admin_api_key)] = Field(
        None, description="key of the client admin at the first start; empty: generated, written to HOME/admin-api-key"
    )
    master_key_file: Annotated[Path, _stripped(_path)] = Field(
        default_factory=_in_home("master.key"),
        description="32-byte key that seals secrets and content keys; generated when missing",
    )
    media_root: Annotated[Path, _stripped(_path)] = Field(
        default_factory=_in_home("media"), description="where VOD folders lie: MEDIA_ROOT/<contentId>/"
    )
    outbound_allow: Annotated[tuple[Network, ...], NoDecode, _stripped(_networks)] = Field(
        (), description="networks that outbound calls may reach although they are not public, comma-separated"
    )
    speke_rate: Annotated[int, _stripped(_whole_number(1, 1_000_000))] = Field(
        50, description="content key requests that a client may make per second; four times as many at once"
    )
    steps: Annotated[int, _stripped(_whole_number(1, 1000))] = Field(
        4, description="steps of jobs that a process runs at a time, for each queue that it works for"
    )
    lease_seconds: Annotated[int, _stripped(_whole_number(3, 3600))] = Field(
        30, description="how long nothing may be heard of a worker before its steps are given to others; the same for all"
    )
    delivery_days: Annotated[int, _stripped(_whole_number(1, 3650))] = Field(
        30, description="how long finished deliveries are kept, with their attempts"
    )
    job_line_days: Annotated[int, _stripped(_whole_number(1, 3650))] = Field(
        30, description="how long the lines are kept that steps write to the logs of jobs"
    )
    job_days: Annotated[int, _stripped(_whole_number(1, 3650))] = Field(
        365, description="how long ended jobs are kept, with their secrets; their events stay"
    )
    log_days: Annotated[int, _stripped(_whole_number(1, 3650))] = Field(
        365, description="how long entries of the log store are kept"
    )
    log_level: Annotated[str, _stripped(_one_of(LOG_LEVELS))] = Field("INFO", description=f"one of {', '.join(LOG_LEVELS)}")
    shutdown_seconds: Annotated[int, _stripped(_whole_number(0, 3600))] = Field(
        10, description="how long requests under way may take to finish when the process is asked to stop"
    )

    _unknown: tuple[str, ...] = PrivateAttr(())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `from_env` has read: no second look at the process, whatever files lie about."""
        return (init_settings,)

    @classmethod
    def from_process(cls) -> Settings:
        return cls.from_env(os.environ)

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Settings:
        """An empty variable counts as one that is not set. `SettingsError` tells of the first that is wrong."""
        source = EnvSettingsSource(cls)
        source.env_vars = {name.lower(): text for name, text in environment.items() if name.isupper() and text.strip()}
        try:
            settings = cls(**source())
        except ValidationError as refusal:
            first = refusal.errors(include_url=False, include_input=False)[0]
            raise SettingsError(f"{_name(str(first['loc'][0]))} must be {first['ctx']['error']}") from None
        settings._check_kafka()
        known = {variable.name for variable in VARIABLES}
        settings._unknown = tuple(sorted(name for name in environment if name.startswith(PREFIX) and name not in known))
        return settings

    @property
    def kafka(self) -> KafkaConnection | None:
        """None where there is no broker."""
        if self.kafka_bootstrap_servers is None:
            return None
        return KafkaConnection(
            self.kafka_bootstrap_servers,
            security_protocol=self.kafka_security_protocol,
            sasl_mechanism=self.kafka_sasl_mechanism,
            username=self.kafka_username,
            password=self.kafka_password.get_secret_value() if self.kafka_password is not None else None,
            ca_file=self.kafka_ca_file,
            certificate_file=self.kafka_certificate_file,
            key_file=self.kafka_key_file,
            replication_factor=self.kafka_replication_factor,
            min_in_sync_replicas=self.kafka_min_in_sync_replicas,
        )

    def _check_kafka(self) -> None:
        """What goes together comes together: a client that misses half of it would fail at its first connection only."""
        sasl = self.kafka_security_protocol.startswith("SASL_")
        for field in ("kafka_sasl_mechanism", "kafka_username", "kafka_password"):
            if (getattr(self, field) is not None) != sasl:
                needed = "be set for" if sasl else "stay empty without"
                raise SettingsError(f"{_name(field)} must {needed} {_name('kafka_security_protocol')}=SASL_…")
        tls = self.kafka_security_protocol.endswith("SSL")
        for field in ("kafka_ca_file", "kafka_certificate_file", "kafka_key_file"):
            path: Path | None = getattr(self, field)
            if path is not None and not tls:
                raise SettingsError(f"{_name(field)} must stay empty without {_name('kafka_security_protocol')}=SSL or SASL_SSL")
            if path is not None and not path.is_file():
                raise SettingsError(f"{_name(field)} must be a file; there is none at {path}")

    @property
    def database_limits(self) -> PoolLimits:
        return PoolLimits(
            self.database_connections,
            self.database_list_connections,
            waiting=self.database_lists_waiting,
            seconds=self.database_query_seconds,
        )

    @property
    def log_limits(self) -> LogLimits:
        appends = AppendLimits(batch_bytes=self.append_batch_mib * MIB, waiting_bytes=self.append_queue_mib * MIB)
        return LogLimits(appends, cache=self.aggregate_cache_mib * MIB, partition=self.log_partition_events)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Variables of ours that name no setting."""
        return self._unknown

    def listing(self) -> Sequence[Listed]:
        """Every setting as a person may see it: secrets are masked."""
        return [
            Listed(
                variable.name,
                _shown(variable.field, getattr(self, variable.field)),
                variable.meaning,
                "environment" if variable.field in self.model_fields_set else "default",
            )
            for variable in VARIABLES
        ]

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{line.name}={line.value!r}' for line in self.listing())})"

    __str__ = __repr__


def masked_database_url(url: str) -> str:
    """The connection as libpq understands it, in its `key=value` form, whatever form it was given in."""
    parts = {
        key: MASK if "password" in key or "secret" in key or key.startswith("scram_") else value
        for key, value in conninfo_to_dict(url).items()
    }
    return make_conninfo("", **parts)


def _shown(field: str, value: Any) -> str:
    if isinstance(value, SecretStr):
        return masked_database_url(value.get_secret_value()) if field == "database_url" else MASK
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)


def _name(field: str) -> str:
    return PREFIX + field.upper()


def _variable(field: str, info: FieldInfo) -> Variable:
    default = _COMPUTED.get(field) or _shown(field, info.default)
    return Variable(_name(field), field, info.description or "", default)


_COMPUTED = {"home": _HOME, "master_key_file": "HOME/master.key", "media_root": "HOME/media"}
VARIABLES = tuple(_variable(field, info) for field, info in Settings.model_fields.items())
