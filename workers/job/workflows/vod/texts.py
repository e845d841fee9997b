"""The text tracks of films: as files of a job, between the step that finds them in a source and the step that packages them; and
those that are published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from domain.asset.values import CaptionKind
from domain.channel.placeholders import CLEAR
from domain.job.values import Severity
from workers.job.context import StepContext
from workers.media.captions import webvtt
from workers.media.captions.cues import Cue, UnreadableCaptions
from workers.media.captions.reading import MOST_BYTES, read
from workers.media.captions.tracks import TextTrack, listed_tracks

TEXTS: Final = "texts"
"""The name under which the metadata of a step list the tracks that it kept."""
MOST_TEXTS: Final = 40
_STEPS: Final = ("convert", "join")
_FOLDERS: Final = (CLEAR, "cenc", "cbcs")
_PLAYLIST: Final = "master.m3u8"
_LARGEST: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class FilmTextTrack:
    """A text track of a film. The cues count from the first picture of the film. `language` is a tag of BCP 47."""

    language: str
    kind: CaptionKind
    name: str
    cues: Sequence[Cue]


def keep_texts(context: StepContext[Any], texts: Iterable[FilmTextTrack]) -> list[dict[str, str]]:
    """Keep the texts for later steps, and return the list of them for the metadata of the step."""
    listed = []
    for number, text in enumerate(texts, 1):
        file = f"text-{number}.vtt"
        (context.workspace / file).write_text(webvtt.whole(text.cues))
        context.keep(context.workspace / file, file)
        listed.append({"file": file, "language": text.language, "kind": text.kind.value, "name": text.name})
    return listed


def comes_of_source(context: StepContext[Any]) -> bool:
    """Return True if the job makes the film from a source; other jobs package an existing film again."""
    return any(step in context.results for step in _STEPS)


def read_texts(context: StepContext[Any]) -> list[FilmTextTrack] | None:
    """Return the texts that an earlier step of the job kept; None if no step was to look for any."""
    listed = next((context.results[step].get(TEXTS, ()) for step in _STEPS if step in context.results), None)
    if listed is None:
        return None
    return [
        FilmTextTrack(
            entry["language"], CaptionKind(entry["kind"]), entry["name"], read(context.job_file(entry["file"]).read_bytes()).cues
        )
        for entry in listed
    ]


def published_tracks(context: StepContext[Any], content: str) -> list[TextTrack]:
    """Return the text tracks of a film as it is published now, by any of its playlists."""
    for folder in _FOLDERS:
        try:
            with context.path(f"{content}/{folder}/{_PLAYLIST}").open("rb") as opened:
                return listed_tracks(opened.read(_LARGEST).decode(errors="replace"))
        except OSError:
            continue
    return []


def published_texts(context: StepContext[Any], content: str, *, folder: str | None = None) -> list[FilmTextTrack]:
    """Return the published tracks with their cues; with `folder`, only those whose files are in that folder.

    A track that cannot be read is left out with a warning.
    """
    texts = []
    for track in published_tracks(context, content):
        if folder is not None and track.folder != folder:
            continue
        try:
            with context.path(f"{content}/{track.file}").open("rb") as opened:
                cues = read(opened.read(MOST_BYTES + 1)).cues
        except (OSError, UnreadableCaptions) as fault:
            why = str(fault) if isinstance(fault, UnreadableCaptions) else "The file is not there."
            context.log(f"The captions {content}/{track.file} are left out. {why}", Severity.WARN)
            continue
        texts.append(FilmTextTrack(track.language, track.kind, track.name, cues))
    return texts
