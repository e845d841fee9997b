"""The segments that a capture has, as files of its workspace with an index. A later run of the step takes them over."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from workers.job.workflows.capture.segments import CapturedSegment, MediaResource
from workers.media.resources import ResourceRange

_FOLDER: Final = "segments"
_INDEX: Final = "segments.jsonl"


class Shelf:
    """The segments of a run. `base` is the moment from which the times of the parameters count, once it is known."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._folder = workspace / _FOLDER
        self._folder.mkdir(exist_ok=True)
        self._have: set[str] = set()
        self.base: float | None = None

    def take_over(self, previous: Path | None) -> list[CapturedSegment]:
        """Take over the segments of an earlier run whose files are complete, and return them.

        They are linked or copied, not moved, since that run may still be active. All of them are noted here too, for the run after
        this one.
        """
        segments: dict[str, CapturedSegment] = {}
        for line in _lines(None if previous is None else previous / _INDEX):
            try:
                if "base" in line:
                    self.note_base(float(line["base"]))
                elif self._take(previous, str(line["name"]), int(line["size"])):
                    self._write(line)
                    if "at" in line:
                        segment = _segment(line)
                        segments[segment.name] = segment
            except (KeyError, TypeError, ValueError, OSError):
                continue
        return list(segments.values())

    def path(self, name: str) -> Path:
        return self._folder / name

    def has(self, name: str) -> bool:
        return name in self._have

    def note_base(self, base: float) -> None:
        self.base = base
        self._write({"base": base})

    def put(self, made: Path, name: str, segment: CapturedSegment | None = None) -> None:
        """Add a complete file. Without `segment` it is an initialization section."""
        made.replace(self.path(name))
        fields = {} if segment is None else asdict(segment)
        self._have.add(name)
        self._write({**fields, "name": name, "size": self.path(name).stat().st_size})

    def _take(self, previous: Path | None, name: str, size: int) -> bool:
        old = None if previous is None else previous / _FOLDER / name
        if old is None or "/" in name or not old.is_file() or old.stat().st_size != size:
            return False
        if not self.has(name):
            try:
                os.link(old, self.path(name))
            except OSError:
                shutil.copyfile(old, self.path(name))
            self._have.add(name)
        return True

    def _write(self, line: dict[str, Any]) -> None:
        with (self._workspace / _INDEX).open("a") as file:
            file.write(json.dumps(line) + "\n")


def _lines(index: Path | None) -> list[dict[str, Any]]:
    try:
        text = index.read_text() if index is not None else ""
    except OSError:
        return []
    lines = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        if isinstance(value, dict):
            lines.append(value)
    return lines


def _segment(line: dict[str, Any]) -> CapturedSegment:
    names = ("source", "kind", "epoch", "sequence", "at", "lasts", "breaks")
    fields = {name: line[name] for name in names}
    return CapturedSegment(resource=_resource(line["resource"]), init=_resource(line["init"]) if line["init"] else None, **fields)


def _resource(fields: dict[str, Any]) -> MediaResource:
    return MediaResource(fields["url"], ResourceRange(*fields["part"]) if fields["part"] else None)
