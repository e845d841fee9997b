"""`medialedger doctor --media`: tries ffmpeg and ffprobe, and stores the verdict on those that the operator installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from api.cli.media_trials import TRIALS, Stage, TrialFailed, extras
from api.cli.output import Finding
from workers.adapters.ffmpeg import find, version
from workers.adapters.program_verdicts import Verdicts
from workers.kernel.media_programs import missing

_TRIED: Final = ("ffmpeg", "ffprobe")
_NOWHERE: Final = "/nonexistent"
_SHOWN: Final = 100


def try_programs(home: Path) -> list[Finding]:
    """Return a finding for each program and each trial. Programs on PATH are preferred over those of the product."""
    own = {name: Path(path) for name in _TRIED if (path := shutil.which(name)) is not None}
    programs = {name: own.get(name) or find(name, path=_NOWHERE) for name in _TRIED}
    findings = [_program(name, path) for name, path in programs.items()]
    ffmpeg, ffprobe = programs.values()
    if ffmpeg is None or ffprobe is None:
        return findings
    with TemporaryDirectory(prefix="medialedger-media-") as folder:
        stage = Stage(ffmpeg, ffprobe, Path(folder).resolve())
        results = list(_results(stage))
        can = extras(stage)
    faults = [f"{result.name}: {result.attention}" for result in results if result.attention]
    return [*findings, *results, Finding("further abilities", ", ".join(can) or "none"), _store_verdict(home, own, faults)]


def _program(name: str, path: Path | None) -> Finding:
    if path is None:
        return Finding(name, "not found", missing(name))
    return Finding(name, f"{path}: {version(path).partition(chr(10))[0][:_SHOWN]}")


def _results(stage: Stage) -> Iterator[Finding]:
    for trial in TRIALS:
        begun = monotonic()
        try:
            trial.run(stage)
        except TrialFailed as fault:
            yield Finding(trial.name, "failed", str(fault).replace(";", ","))
        except Exception as fault:  # the output of a program is not trusted
            yield Finding(trial.name, "failed", f"its result cannot be read ({type(fault).__name__})")
        else:
            yield Finding(trial.name, f"passed in {monotonic() - begun:.1f} s")


def _store_verdict(home: Path, own: dict[str, Path], faults: Sequence[str]) -> Finding:
    """Store the verdict for the operator's programs. The product's own programs are used whatever the result is."""
    if not own:
        return Finding("verdict", "the programs that came with the product " + ("do not pass" if faults else "pass"))
    names = " and ".join(str(path) for path in own.values())
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in own.values():
            Verdicts(home).note(path, version=version(path), faults=faults)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Finding("verdict", "cannot be stored", f"{reason}: work as the user of the product, whose home is {home}")
    if faults:
        wheel = "the programs of medialedger[media] are used" if find("ffmpeg", path=_NOWHERE) else "install medialedger[media]"
        return Finding("verdict", f"{names} are not used: {len(faults)} of {len(TRIALS)} trials failed", wheel)
    return Finding("verdict", f"{names} are used from the next start of the product on")
