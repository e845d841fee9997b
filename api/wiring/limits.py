"""Limits on the downloads of workers and on the files that their steps may open, from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from api.wiring.settings import Settings
from projections.kernel.sizes import GIB
from workers.adapters.ffmpeg import find, libraries
from workers.adapters.program_verdicts import Verdicts
from workers.kernel.confinement import Places
from workers.kernel.media_programs import MEDIA_PROGRAMS
from workers.playout_ports import ItemLimits
from workers.ports import DownloadLimits


def download_limits(settings: Settings) -> DownloadLimits:
    """Return the limits on downloads of jobs."""
    return DownloadLimits(
        size=settings.download_gib * GIB,
        free=settings.download_free_gib * GIB,
        rate=settings.download_kib_per_second * 1024,
        seconds=settings.download_hours * 3600,
    )


def playout_limits(settings: Settings) -> ItemLimits:
    """Return the limits on the item caches of playouts."""
    return ItemLimits(size=settings.playout_gib * GIB, age=settings.playout_hours * 3600.0)


def step_places(settings: Settings) -> Places:
    """Return the places that steps and encoders may read and write in addition to their own. Secrets are hidden, wherever they are
    stored."""
    secret = (settings.home, settings.master_key_file, settings.kafka_key_file)
    programs = media_programs(settings.home)
    return Places(
        hidden=tuple(str(path.absolute()) for path in secret if path is not None),
        run=tuple(str(folder) for program in programs.values() for folder in (program.resolve().parent, *libraries(program))),
        read=tuple(map(str, settings.step_reads)),
        write=tuple(map(str, settings.step_writes)),
        programs={name: str(program) for name, program in programs.items()},
    )


def media_programs(home: Path) -> Mapping[str, Path]:
    """Map the names of the media programs that are installed to their paths."""
    programs = {name: find(name, verdicts=Verdicts(home)) for name in MEDIA_PROGRAMS}
    return {name: program for name, program in programs.items() if program is not None}
