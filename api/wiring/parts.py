"""The settings of parts of the product: small values, which the container makes from the settings of the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from socket import gethostname
from typing import Any, Final
from urllib.parse import urlsplit

from api.kernel.version import product_version
from api.wiring.origin import own_origin
from api.wiring.settings import Settings
from domain.destination.targets import Target
from domain.kernel.clock import Clock
from domain.kernel.encryption import IngestKeys
from domain.kernel.internal_addresses import InternalAddresses
from projections.client.console_sessions import SessionLimits
from projections.kernel.sizes import GIB
from workers.adapters.kafka.connection import KafkaConnection
from workers.kernel.confinement import Places
from workers.kernel.media_programs import MEDIA_PROGRAMS
from workers.kernel.point_tokens import PointNames, PointTokens
from workers.kernel.settings import EncoderDevices, Home, Identity, MediaPlace, OutboundRules, StepSettings
from workers.ports.checkpoints import CheckpointPlaces
from workers.ports.media import MediaSource
from workers.ports.outbound import DownloadLimits
from workers.ports.playout import ItemLimits
from workers.ports.targets import ServiceAddresses, TargetSettings


@dataclass(frozen=True, slots=True)
class Directories:
    """The directories that this process fills, by their names."""

    paths: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefusedTargets:
    """The publishing targets that no destination may have here, with the reasons."""

    reasons: Mapping[Target, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceTemplates:
    """The directory where the operator has installed templates of infrastructure; None if there is none."""

    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class ServedMedia:
    """The source of published media; None if this process serves none."""

    source: MediaSource | None = None


@dataclass(frozen=True, slots=True)
class ConsoleOrigins:
    """Other origins from which players in the console may load."""

    media: Sequence[str] = ()


def console_origins(settings: Settings) -> ConsoleOrigins:
    return ConsoleOrigins(settings.console_media_origins)


def directories(settings: Settings) -> Directories:
    own = {} if settings.database_url is not None else {"database": settings.home / "postgres"}
    return Directories({"home": settings.home, "media": settings.media_directory, **own})


def download_limits(settings: Settings) -> DownloadLimits:
    return DownloadLimits(
        size=settings.download_gib * GIB,
        free=settings.download_free_gib * GIB,
        rate=settings.download_kib_per_second * 1024,
        seconds=settings.download_hours * 3600,
    )


def encoder_devices(settings: Settings) -> EncoderDevices:
    return EncoderDevices(settings.encoder_devices)


def home(settings: Settings) -> Home:
    return Home(settings.home, settings.terraform)


def identity(settings: Settings) -> Identity:
    machine = gethostname()
    return Identity(machine, urlsplit(settings.public_url).netloc if settings.public_url else machine, product_version())


def inside(settings: Settings) -> InternalAddresses:
    """Return the hosts that callers without a key must not see. The names of this server are no secret."""
    return InternalAddresses(
        [*(urlsplit(url).hostname or "" for url in (settings.public_url, settings.origin_url) if url), gethostname()]
    )


def item_limits(settings: Settings) -> ItemLimits:
    return ItemLimits(size=settings.playout_gib * GIB, age=settings.playout_hours * 3600.0)


def media_place(settings: Settings) -> MediaPlace:
    return MediaPlace(settings.media_directory, settings.media_bucket)


def media_programs(home: Path) -> Mapping[str, Path]:
    """Map the names of the media programs that are installed to their paths."""
    from workers.adapters.ffmpeg import find
    from workers.adapters.program_verdicts import Verdicts

    programs = {name: find(name, verdicts=Verdicts(home)) for name in MEDIA_PROGRAMS}
    return {name: program for name, program in programs.items() if program is not None}


def places(settings: Settings) -> Places:
    """Return the places that steps and encoders may read and write in addition to their own. Secrets are hidden, wherever they are
    stored."""
    from workers.adapters.ffmpeg import libraries

    secret = (settings.home, settings.master_key_file, settings.kafka_key_file)
    programs = media_programs(settings.home)
    return Places(
        hidden=tuple(str(path.absolute()) for path in secret if path is not None),
        run=tuple(str(folder) for program in programs.values() for folder in (program.resolve().parent, *libraries(program))),
        read=tuple(map(str, settings.step_reads)),
        write=tuple(map(str, settings.step_writes)),
        programs={name: str(program) for name, program in programs.items()},
    )


def outbound_rules(settings: Settings) -> OutboundRules:
    return OutboundRules(settings.outbound_allow, own_origin(settings))


def point_names(settings: Settings) -> PointNames:
    return PointNames([origin for origin in (own_origin(settings), settings.public_url) if origin is not None])


def point_tokens(settings: Settings, keys: IngestKeys, *, clock: Clock) -> PointTokens:
    return PointTokens(keys, clock, origin=own_origin(settings))


def refused_targets(settings: Settings) -> RefusedTargets:
    if settings.filesystem_root is None:
        return RefusedTargets({Target.FILESYSTEM: "is not available: the operator has not set MEDIALEDGER_FILESYSTEM_ROOT"})
    return RefusedTargets()


def session_limits(settings: Settings) -> SessionLimits:
    return SessionLimits.of(hours=settings.console_hours, idle_minutes=settings.console_idle_minutes)


def step_settings(settings: Settings) -> StepSettings:
    return StepSettings(settings.steps, settings.lease_seconds, settings.shutdown_seconds)


def target_settings(settings: Settings) -> TargetSettings:
    root = settings.filesystem_root
    services = ServiceAddresses(
        youtube=settings.youtube_url,
        youtube_token=settings.youtube_token_url,
        facebook=settings.facebook_url,
        facebook_video=settings.facebook_video_url,
    )
    return TargetSettings(None if root is None else root.absolute(), services)


def templates(home: Home) -> ServiceTemplates:
    return ServiceTemplates(home.path / "templates")


def checkpoint_places(settings: Settings) -> CheckpointPlaces:
    return settings.checkpoints


def kafka(settings: Settings) -> KafkaConnection | None:
    return settings.kafka


PARTS: Final[Mapping[Any, Any]] = {
    CheckpointPlaces: checkpoint_places,
    ConsoleOrigins: console_origins,
    Directories: directories,
    DownloadLimits: download_limits,
    EncoderDevices: encoder_devices,
    Home: home,
    Identity: identity,
    InternalAddresses: inside,
    ItemLimits: item_limits,
    KafkaConnection: kafka,
    MediaPlace: media_place,
    OutboundRules: outbound_rules,
    Places: places,
    PointNames: point_names,
    PointTokens: point_tokens,
    RefusedTargets: refused_targets,
    ServiceTemplates: templates,
    SessionLimits: session_limits,
    StepSettings: step_settings,
    TargetSettings: target_settings,
}
"""What makes the settings of each part."""
