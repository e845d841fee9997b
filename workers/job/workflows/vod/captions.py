"""The step that gathers the captions of a film: those in its pictures, of which CEA-608 becomes text too, and the subtitle tracks
of its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from domain.asset.values import FOUND, CaptionKind
from domain.job.values import Severity
from workers.job.caption_answers import removed_tracks
from workers.job.context import StepContext, StepResult
from workers.job.workflows.vod.embedded_captions import embedded_captions
from workers.job.workflows.vod.parameters import PackageParameters
from workers.job.workflows.vod.renditions import source_file
from workers.job.workflows.vod.subtitle_tracks import subtitle_tracks, subtitles
from workers.job.workflows.vod.texts import MOST_TEXTS, FilmTextTrack, comes_of_source, published_texts, read_texts
from workers.media.captions.a53 import CaptionServices
from workers.media.captions.cues import UnreadableCaptions, cut
from workers.media.captions.embedded import EmbeddedCaptions
from workers.media.captions.reading import read
from workers.media.captions.tracks import TextTrack, track_files
from workers.media.file import ProbedFile

CAPTIONS: Final = "captions"
_CHANNELS: Final = frozenset({"CC1", "CC2", "CC3", "CC4"})


def find_captions(context: StepContext[PackageParameters]) -> StepResult:
    made = context.results["renditions"]
    smallest, lasts = made["videos"][-1]["file"], float(made["duration"])
    embedded = embedded_captions(context, ProbedFile(context, context.job_file(smallest), "the rendition", {}))
    services, texts = embedded.services, _source_texts(context, lasts=lasts)
    languages = {text.name: text.language for text in texts if text.name in services.channels}
    languages |= context.parameters.caption_languages
    texts = [text for text in texts if text.name not in services.channels]
    texts += _picture_texts(context, embedded, languages=languages, lasts=lasts)
    texts = texts if comes_of_source(context) else _without_removed(texts, removed_tracks(context))
    if len(texts) > MOST_TEXTS:
        context.log(f"There are {len(texts)} text tracks; the first {MOST_TEXTS} are kept.", Severity.WARN)
    tracks: list[dict[str, str]] = []
    for text in texts[:MOST_TEXTS]:
        try:
            tracks.append(_keep_text(context, text, taken=[track["stem"] for track in tracks], lasts=lasts))
        except UnreadableCaptions as fault:
            context.log(f"The captions {text.name or text.language} are not kept. {fault}", Severity.WARN)
    return StepResult(
        message=f"{_summary(services)}; {len(tracks)} text tracks",
        metadata={
            "channels": list(services.channels),
            "services": list(services.services),
            "languages": languages,
            "tracks": tracks,
        },
    )


def _source_texts(context: StepContext[PackageParameters], *, lasts: float) -> list[FilmTextTrack]:
    """Return the texts of the source.

    A film that is packaged again keeps the tracks that were found before, if its file has none. What a film states about the
    language of the captions in its pictures remains true: their text has the same name.
    """
    texts = read_texts(context)
    if texts is not None:
        return texts
    content = context.job.content_id
    of_file = list(texts_of(context, source_file(context), lasts=lasts))
    before = published_texts(context, content, folder=FOUND)
    return of_file or [replace(text, cues=cut(text.cues, begin=0.0, end=lasts)) for text in before]


def _without_removed(texts: Sequence[FilmTextTrack], removed: Sequence[TextTrack]) -> list[FilmTextTrack]:
    """Leave out the texts that were deleted. Captions in the pictures are identified by their channel, whatever language a job
    states."""
    gone = {_identity(track) for track in removed}
    return [text for text in texts if _identity(text) not in gone]


def _identity(text: FilmTextTrack | TextTrack) -> tuple[str, str, str]:
    channel = text.kind is CaptionKind.CAPTIONS and text.name in _CHANNELS
    return (text.kind, text.name or text.language, "" if channel else text.language)


def texts_of(context: StepContext[Any], file: ProbedFile, *, lasts: float) -> Iterator[FilmTextTrack]:
    """Yield the subtitle tracks of a source, from its first picture until the time `lasts`."""
    for track, captions in subtitles(context, file, tracks=subtitle_tracks(context, file)):
        cues = cut(captions.cues, begin=0.0, end=lasts)
        if cues:
            yield FilmTextTrack(track.language, CaptionKind(track.kind), track.name, cues)


def text_tracks(listed: Sequence[dict[str, str]]) -> list[TextTrack]:
    """Return the tracks that this step kept, from its metadata."""
    return [
        TextTrack(name=entry["name"], language=entry["language"], kind=CaptionKind(entry["kind"]), stem=entry["stem"], folder=FOUND)
        for entry in listed
    ]


def _picture_texts(
    context: StepContext[Any], embedded: EmbeddedCaptions, *, languages: Mapping[str, str], lasts: float
) -> Iterator[FilmTextTrack]:
    for channel in embedded.services.channels:
        try:
            captions = read(embedded.scenarist(channel).encode())
        except UnreadableCaptions as fault:
            context.log(f"The captions {channel} within the pictures have no readable text. {fault}", Severity.WARN)
            continue
        if channel in embedded.truncated:
            context.log(f"The captions {channel} are too long; the rest of their text is left out.", Severity.WARN)
        language = languages.get(channel, "und")
        yield FilmTextTrack(language, CaptionKind.CAPTIONS, channel, cut(captions.cues, begin=0.0, end=lasts))


def _keep_text(context: StepContext[Any], text: FilmTextTrack, *, taken: Sequence[str], lasts: float) -> dict[str, str]:
    """Keep the files of a track, and return its entry for the metadata."""
    plain = f"{text.language}-{text.kind.value}"
    stem = next(name for name in (plain, *(f"{plain}-{number}" for number in range(2, MOST_TEXTS + 1))) if name not in taken)
    track = TextTrack(name=text.name or text.language, language=text.language, kind=text.kind, stem=stem, folder=FOUND)
    for name, content in track_files(track, text.cues, lasts=lasts).items():
        file = context.workspace / name.rpartition("/")[2]
        file.write_bytes(content)
        context.keep(file, file.name)
    return {"name": track.name, "language": track.language, "kind": track.kind.value, "stem": stem}


def _summary(services: CaptionServices) -> str:
    names = [*services.channels, *(f"service {number}" for number in services.services)]
    return f"The pictures carry the captions {', '.join(names)}" if names else "The pictures carry no captions"
