"""Every setting, parsed once and passed down. Only this module reads the process's environment.

A setting is a field of `Settings`. Its parser takes the text of the variable and raises ValueError with the end of the sentence
"NAME must be …".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import Field, PrivateAttr, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from api.wiring import parsers
from api.wiring.parsers import Network, stripped, whole_number
from api.wiring.settings_checks import CLIENT_VARIABLES, PREFIX, check_bucket, check_kafka, first_error, variable_name
from api.wiring.tracing import Tracing, tracing
from projections.kernel.database.database import PoolLimits
from projections.kernel.sizes import MIB
from projections.log.append_queue import AppendLimits
from projections.log.limits import LogLimits
from workers.adapters.kafka.connection import KafkaConnection
from workers.ports.buckets import BucketAddress
from workers.ports.checkpoints import CheckpointPlaces
from workers.ports.targets import ServiceAddresses

MASK: Final = "********"


@dataclass(frozen=True, slots=True)
class Variable:
    """The description of a setting, without a value."""

    name: str
    field: str
    meaning: str
    default: str


@dataclass(frozen=True, slots=True)
class ListedSetting:
    """A line of `medialedger settings`."""

    name: str
    value: str
    meaning: str
    origin: str


def listed(settings: BaseSettings, variables: Sequence[Variable], *, arguments: Mapping[str, str]) -> list[ListedSetting]:
    """Return every setting with its value and the origin of that."""

    def origin(field: str) -> str:
        if field in arguments:
            return "argument"
        return "environment" if field in settings.model_fields_set else "default"

    return [
        ListedSetting(
            variable.name, shown(variable.field, getattr(settings, variable.field)), variable.meaning, origin(variable.field)
        )
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


HOME = "./.medialedger"


_SERVICES = ServiceAddresses()
_NO_ARGUMENTS: Mapping[str, str] = MappingProxyType({})
LOG_FORMATS = ("auto", "json", "text")
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _in_home(name: str) -> Callable[[dict[str, Any]], Path]:
    """Return the default of a path below `home`, which is parsed before it."""
    return lambda values: values["home"] / name


class Settings(BaseSettings):
    """All settings. A setting that the environment does not contain has its default."""

    model_config = SettingsConfigDict(frozen=True, env_prefix=PREFIX, validate_default=False, hide_input_in_errors=True)
    home: Annotated[Path, stripped(parsers.path)] = Field(
        default_factory=lambda: parsers.path(HOME), description="data directory: embedded database, key files, media"
    )
    host: Annotated[str, stripped(parsers.host)] = Field("127.0.0.1", description="address that the API listens on")
    port: Annotated[int, stripped(whole_number(0, 65535))] = Field(
        8080, description="port that the API listens on; 0: any free port"
    )
    metrics_port: Annotated[int | None, stripped(whole_number(0, 65535))] = Field(
        None, description="port on which `workers` answers /metrics and /livez, on MEDIALEDGER_HOST; 0: any free port. Empty: none"
    )
    processes: Annotated[int | None, stripped(whole_number(1, 64))] = Field(
        None,
        description="processes of `up`: one of the workers, the others of the API; 1: one process for both. "
        "Empty: one for each core, at most 8",
    )
    api_processes: Annotated[int, stripped(whole_number(1, 64))] = Field(
        1, description="processes of the API, which share the port. Where it is set, `up` does not use MEDIALEDGER_PROCESSES"
    )
    worker_processes: Annotated[int, stripped(whole_number(0, 64))] = Field(
        0,
        description="processes of the workers; 0: `up` runs the workers in the processes of the API. Where it is set, `up` does "
        "not use MEDIALEDGER_PROCESSES",
    )
    public_url: Annotated[str | None, stripped(parsers.public_url)] = Field(
        None,
        description="address by which callers reach the API, such as https://media.example: for links, and the only accepted "
        "host name. "
        "Empty: links have the host of the request, and every name is accepted; with a loopback MEDIALEDGER_HOST only localhost",
    )
    console_media_origins: Annotated[tuple[str, ...], NoDecode, stripped(parsers.media_origins)] = Field(
        (), description="other origins that players in the console may load from, such as https://cdn.example; comma-separated"
    )
    console_hours: Annotated[int, stripped(whole_number(1, 720))] = Field(12, description="how long a login to the console lasts")
    console_idle_minutes: Annotated[int, stripped(whole_number(2, 43_200))] = Field(
        60, description="minutes without a request after which the login ends"
    )
    connections: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        10_000, description="open connections of clients to a process of the API; further ones get 503"
    )
    connections_per_address: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        2_000,
        description="connections among these from one address; also requests under way that MEDIALEDGER_TRUSTED_PROXIES "
        "forward for it",
    )
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode, stripped(parsers.networks)] = Field(
        (), description="networks of the proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted, comma-separated"
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode, stripped(parsers.origins)] = Field(
        (), description="origins whose pages may call the API, such as https://app.example, comma-separated; *: all"
    )

    database_url: Annotated[SecretStr | None, stripped(parsers.database_url)] = Field(
        None, description="address of your own PostgreSQL, 15 or newer; empty: the embedded one"
    )
    owner_database_url: Annotated[SecretStr | None, stripped(parsers.database_url)] = Field(
        None,
        description="the same database with the login of the tables' owner, for migrations; the other login then needs no "
        "such rights",
    )
    database_connections: Annotated[int, stripped(whole_number(2, 1000))] = Field(
        8, description="connections of a process for writes, authentication and reads of single objects"
    )
    database_list_connections: Annotated[int, stripped(whole_number(1, 1000))] = Field(
        4, description="further connections of a process for lists, searches and the audit"
    )
    database_lists_waiting: Annotated[int, stripped(whole_number(1, 100_000))] = Field(
        1000, description="number of lists that may wait for one of these connections; further ones get 503"
    )
    database_query_seconds: Annotated[int, stripped(whole_number(1, 3600))] = Field(
        5, description="how long a query may take; a longer one is stopped, and its request gets 503"
    )
    log_partition_events: Annotated[int, stripped(whole_number(1000, 10**11))] = Field(
        100_000_000, description="events in each new partition of the log"
    )
    append_queue_mib: Annotated[int, stripped(whole_number(1, 100_000))] = Field(
        64, description="data that may wait to be written to the log, in all processes of the API; further changes get 503"
    )
    append_batch_mib: Annotated[int, stripped(whole_number(1, 1000))] = Field(
        8, description="data in one commit of the log; a larger change gets a separate commit"
    )
    aggregate_cache_mib: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        64, description="memory of a process for the most recently changed aggregates"
    )
    kafka_bootstrap_servers: Annotated[str | None, stripped(parsers.bootstrap_servers)] = Field(
        None,
        description="Kafka brokers, host:port separated by commas; consumers then read from Kafka. "
        "Empty: they read the event log itself",
    )
    kafka_security_protocol: Annotated[str, stripped(parsers.one_of(_PROTOCOLS))] = Field(
        "PLAINTEXT", description=f"protocol of connections to Kafka: one of {', '.join(_PROTOCOLS)}"
    )
    kafka_sasl_mechanism: Annotated[str | None, stripped(parsers.one_of(_MECHANISMS))] = Field(
        None, description=f"for SASL_…: one of {', '.join(_MECHANISMS)}"
    )
    kafka_username: str | None = Field(None, description="for SASL_…")
    kafka_password: SecretStr | None = Field(None, description="for SASL_…")
    kafka_ca_file: Annotated[Path | None, stripped(parsers.path)] = Field(
        None, description="certificates of the authorities that signed those of the brokers, PEM; empty: those of the system"
    )
    kafka_certificate_file: Annotated[Path | None, stripped(parsers.path)] = Field(
        None, description="certificate of the product, PEM, for brokers that require one"
    )
    kafka_key_file: Annotated[Path | None, stripped(parsers.path)] = Field(
        None, description="private key of this certificate, PEM, without a password"
    )
    kafka_replication_factor: Annotated[int | None, stripped(whole_number(1, 1000))] = Field(
        None, description="replicas of the topics that the relay creates; empty: the brokers' default"
    )
    kafka_min_in_sync_replicas: Annotated[int | None, stripped(whole_number(1, 1000))] = Field(
        None, description="replicas of those topics that must have a record before it counts as sent; empty: the brokers' default"
    )
    admin_api_key: Annotated[SecretStr | None, stripped(parsers.admin_api_key)] = Field(
        None, description="key of the client admin at the first start; empty: generated, written to HOME/admin-api-key"
    )
    master_key_file: Annotated[Path, stripped(parsers.path)] = Field(
        default_factory=_in_home("master.key"),
        description="32-byte key that encrypts secrets and content keys; generated when missing",
    )
    media_root: Annotated[Path | BucketAddress, NoDecode, stripped(parsers.media_root)] = Field(
        default_factory=_in_home("media"),
        description="location of VOD folders, MEDIA_ROOT/<contentId>/: a directory, or `s3://bucket/prefix`",
    )
    media_work: Annotated[Path, stripped(parsers.path)] = Field(
        default_factory=_in_home("work"), description="directory in which steps of jobs work on this machine when media are in S3"
    )
    filesystem_root: Annotated[Path | None, stripped(parsers.path)] = Field(None, description="root of FILESYSTEM destinations")
    youtube_url: Annotated[str, stripped(parsers.service_url)] = Field(
        _SERVICES.youtube, description="address of the YouTube Data API, for YOUTUBE destinations"
    )
    youtube_token_url: Annotated[str, stripped(parsers.service_url)] = Field(
        _SERVICES.youtube_token, description="address from which YOUTUBE destinations get their access tokens"
    )
    facebook_url: Annotated[str, stripped(parsers.service_url)] = Field(
        _SERVICES.facebook, description="address of Facebook's Graph API with its version, for FACEBOOK destinations"
    )
    facebook_video_url: Annotated[str, stripped(parsers.service_url)] = Field(
        _SERVICES.facebook_video, description="address to which films for FACEBOOK destinations are sent, with the version"
    )
    s3_endpoint: Annotated[str | None, stripped(parsers.public_url)] = Field(
        None, description="address of the S3 server with the media; empty: Amazon's server of the region"
    )
    s3_region: str = Field("us-east-1", description="region of the bucket")
    s3_access_key: str | None = Field(
        None, description="access key of the bucket; empty: credentials that the machine provides, such as those of its role"
    )
    s3_secret_key: SecretStr | None = Field(None, description="secret key that belongs to the access key")
    s3_path_style: Annotated[bool | None, stripped(parsers.switch)] = Field(
        None, description="whether the bucket is named in the path and not in the host: on or off. Empty: on with an endpoint"
    )
    quiet: Annotated[bool, stripped(parsers.switch)] = Field(
        False,
        description="whether a start orders that nothing leaves the installation, as `medialedger quiet on` does: on or off; off "
        "does "
        "not end an order",
    )
    media_serve: Annotated[bool | None, stripped(parsers.switch)] = Field(
        None, description="whether the API serves published files below /media/: on or off. Empty: on with `up`, off otherwise"
    )
    origin: Annotated[bool | None, stripped(parsers.switch)] = Field(
        None,
        description="whether the API receives and plays live streams below /origin/: on or off. Empty: on with `up`, off otherwise",
    )
    origin_url: Annotated[str | None, stripped(parsers.public_url)] = Field(
        None,
        description="address of the built-in origin if it is another process or machine, such as http://10.0.0.5:8090: encoders, "
        "captures and health checks may reach it. Empty: MEDIALEDGER_HOST and MEDIALEDGER_PORT, if MEDIALEDGER_ORIGIN is on",
    )
    origin_root: Annotated[Path, stripped(parsers.path)] = Field(
        default_factory=_in_home("origin"), description="directory in which the built-in origin stores recordings of live streams"
    )
    origin_hours: Annotated[int, stripped(whole_number(1, 8760))] = Field(
        24, description="how long it keeps a recording after its end, and the segments of a recording that continues"
    )
    origin_gib: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        20,
        description="data that it stores; beyond that, ended recordings are deleted, then the oldest segments of continuing ones; "
        "if only live windows remain, encoders get 507",
    )
    origin_free_gib: Annotated[int, stripped(whole_number(0, 1_000_000))] = Field(
        1, description="space of its disk that it leaves free, by the same rules"
    )
    origin_dvr_seconds: Annotated[int, stripped(whole_number(1, 86_400))] = Field(
        120, description="DVR window of its live playlists unless the encoder requests another; recordings are kept longer"
    )
    encoder_devices: Annotated[bool, stripped(parsers.switch)] = Field(
        False, description="whether encoders may read the cameras and sound cards of their machine: on or off"
    )
    playout_gib: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        20, description="data that each machine with encoders stores of the files of playlists that are played out, in HOME/playout"
    )
    playout_hours: Annotated[int, stripped(whole_number(1, 8760))] = Field(
        24, description="how long such a file is used before it is fetched again"
    )
    outbound_allow: Annotated[tuple[Network, ...], NoDecode, stripped(parsers.networks)] = Field(
        (), description="networks that outbound calls may reach even if they are not public, comma-separated"
    )
    speke_rate: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        50, description="content key requests that a client may make per second; four times as many in a burst"
    )
    steps: Annotated[int, stripped(whole_number(1, 1000))] = Field(
        4, description="steps of jobs that a process runs at a time, for each queue that it works for"
    )
    step_reads: Annotated[tuple[Path, ...], NoDecode, stripped(parsers.paths)] = Field(
        (), description="files and directories that steps of jobs may read in addition to the media, comma-separated, for plug-ins"
    )
    step_writes: Annotated[tuple[Path, ...], NoDecode, stripped(parsers.paths)] = Field(
        (), description="files and directories that steps of jobs may also write to, comma-separated"
    )
    terraform: Annotated[Path | None, stripped(parsers.path)] = Field(
        None,
        description="the program that provisions templates: terraform or tofu. Empty: found in the usual directories of programs",
    )
    lease_seconds: Annotated[int, stripped(whole_number(3, 3600))] = Field(
        30, description="how long a worker may be silent before its steps are given to others; equal on all machines"
    )
    delivery_days: Annotated[int, stripped(whole_number(1, 3650))] = Field(
        30, description="how long finished deliveries are kept, with their attempts"
    )
    download_gib: Annotated[int, stripped(whole_number(1, 1_000_000))] = Field(
        200, description="maximum size of a file that a job downloads"
    )
    download_free_gib: Annotated[int, stripped(whole_number(0, 1_000_000))] = Field(
        1, description="space that downloads leave free on the disk on which steps work"
    )
    download_kib_per_second: Annotated[int, stripped(whole_number(0, 1_000_000))] = Field(
        16, description="minimum average speed of a download after its first minute"
    )
    download_hours: Annotated[int, stripped(whole_number(1, 8760))] = Field(
        24, description="maximum total time of all downloads of a step"
    )
    job_line_days: Annotated[int, stripped(whole_number(1, 3650))] = Field(
        30, description="how long lines that steps write to the logs of jobs are kept"
    )
    job_days: Annotated[int, stripped(whole_number(1, 3650))] = Field(
        365, description="how long ended jobs are kept, with their secrets; their events stay"
    )
    session_days: Annotated[int, stripped(whole_number(1, 3650))] = Field(
        30, description="how long the last state of ended sessions is kept; their history stays in the log"
    )
    log_days: Annotated[int, stripped(whole_number(1, 3650))] = Field(365, description="how long entries of the log store are kept")
    seal_seconds: Annotated[int, stripped(whole_number(1, 86_400))] = Field(
        60, description="time after which the log is sealed by a signed checkpoint, unless 10,000 events come first"
    )
    seal_file: Annotated[Path | None, stripped(parsers.path)] = Field(
        None, description="file that each checkpoint is appended to; best where the database's administrator cannot write"
    )
    seal_bucket: Annotated[BucketAddress | None, NoDecode, stripped(parsers.bucket)] = Field(
        None, description="`s3://bucket/prefix` with object lock that each checkpoint is put to, with the S3 settings of media"
    )
    seal_bucket_days: Annotated[int, stripped(whole_number(1, 36_500))] = Field(
        3650, description="how long a checkpoint there cannot be deleted"
    )
    seal_timestamp_url: Annotated[SecretStr | None, stripped(parsers.timestamp_url)] = Field(
        None, description="address of an RFC 3161 server that time stamps each checkpoint"
    )
    log_level: Annotated[str, stripped(parsers.one_of(LOG_LEVELS))] = Field("INFO", description=f"one of {', '.join(LOG_LEVELS)}")
    log_format: Annotated[str, stripped(parsers.one_of(LOG_FORMATS))] = Field(
        "auto", description="one of auto, json, text: auto is text on a terminal, otherwise JSON"
    )
    shutdown_seconds: Annotated[int, stripped(whole_number(0, 3600))] = Field(
        10, description="how long requests under way may take to finish when the process is stopped"
    )

    _unknown: tuple[str, ...] = PrivateAttr(())
    _arguments: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _tracing: Tracing = PrivateAttr(Tracing())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the values that `from_env` has read, and neither the process nor files."""
        return (init_settings,)

    @classmethod
    def from_process(cls, arguments: Mapping[str, str] = _NO_ARGUMENTS) -> Settings:
        """Return the settings of this process. `arguments` are the texts of settings on the command line, by their fields. They
        override the environment and are written into it, because processes that this one starts read it too."""
        settings = cls.from_env(os.environ, arguments)
        os.environ.update({variable_name(field): text for field, text in arguments.items()})
        return settings

    @classmethod
    def from_env(cls, environment: Mapping[str, str], arguments: Mapping[str, str] = _NO_ARGUMENTS) -> Settings:
        """Return the settings of an environment. An empty variable counts as unset. Raise `SettingsError` for the first invalid
        one."""
        environment = {**environment, **{variable_name(field): text for field, text in arguments.items()}}
        source = EnvSettingsSource(cls)
        source.env_vars = {name.lower(): text for name, text in environment.items() if name.isupper() and text.strip()}
        try:
            settings = cls(**source())
        except ValidationError as refusal:
            raise first_error(refusal, arguments) from None
        check_kafka(settings)
        check_bucket(settings)
        known_names = {variable.name for variable in VARIABLES} | CLIENT_VARIABLES
        settings._unknown = tuple(sorted(name for name in environment if name.startswith(PREFIX) and name not in known_names))
        settings._arguments = dict(arguments)
        settings._tracing = tracing(environment)
        return settings

    @property
    def arguments(self) -> Mapping[str, str]:
        """The texts on the command line by their fields."""
        return self._arguments

    @property
    def media_bucket(self) -> BucketAddress | None:
        """The bucket of media; None if media are in a directory."""
        if isinstance(self.media_root, Path):
            return None
        return self._with_access(self.media_root)

    @property
    def checkpoints(self) -> CheckpointPlaces:
        bucket = None if self.seal_bucket is None else self._with_access(self.seal_bucket)
        url = None if self.seal_timestamp_url is None else self.seal_timestamp_url.get_secret_value()
        return CheckpointPlaces(self.seal_seconds, self.seal_file, bucket, self.seal_bucket_days, url)

    def _with_access(self, bucket: BucketAddress) -> BucketAddress:
        return replace(
            bucket,
            endpoint=self.s3_endpoint,
            region=self.s3_region,
            access_key=self.s3_access_key,
            secret_key=self.s3_secret_key.get_secret_value() if self.s3_secret_key is not None else None,
            path_style=self.s3_endpoint is not None if self.s3_path_style is None else self.s3_path_style,
        )

    @property
    def media_directory(self) -> Path:
        """The directory where steps work: the media root, unless that is a bucket."""
        return self.media_root if isinstance(self.media_root, Path) else self.media_work

    def complete(self) -> Settings:
        """Return settings for a complete product: it serves media and has an origin, unless these are switched off."""
        return self.model_copy(update={name: True for name in ("media_serve", "origin") if getattr(self, name) is None})

    def listening_on(self, port: int) -> Settings:
        """Return settings with the port that was chosen for port 0."""
        return self.model_copy(update={"port": port})

    @property
    def decided(self) -> Mapping[str, bool | int | None]:
        """The values that a command may have decided after the environment was read."""
        return {"media_serve": self.media_serve, "origin": self.origin, "port": self.port}

    @property
    def kafka(self) -> KafkaConnection | None:
        """The connection to Kafka; None if there is no broker."""
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
    def tracing(self) -> Tracing:
        """The tracing according to the standard variables of OpenTelemetry."""
        return self._tracing

    @property
    def unknown(self) -> tuple[str, ...]:
        """The variables with our prefix that name no setting."""
        return self._unknown

    def listing(self) -> Sequence[ListedSetting]:
        """Return every setting as a person may see it: secrets are masked."""
        return listed(self, VARIABLES, arguments=self._arguments)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{line.name}={line.value!r}' for line in self.listing())})"

    __str__ = __repr__


def _variable(field: str, info: FieldInfo) -> Variable:
    default = _COMPUTED.get(field) or shown(field, info.default)
    return Variable(variable_name(field), field, info.description or "", default)


_COMPUTED = {
    "home": HOME,
    "master_key_file": "HOME/master.key",
    "media_root": "HOME/media",
    "media_work": "HOME/work",
    "origin_root": "HOME/origin",
}
VARIABLES = tuple(_variable(field, info) for field, info in Settings.model_fields.items())
