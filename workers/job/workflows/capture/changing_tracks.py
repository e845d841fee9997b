"""Tracks that change on their way: which they are, the form that they get, and their entries in the job's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from domain.job.values import Severity
from workers.job.context import StepContext, StepFailed
from workers.job.workflows.capture.film import picture_filters, sound_filter
from workers.job.workflows.capture.forms import Form, PictureForm, TrackForms, changes, leading
from workers.job.workflows.capture.pieces import SegmentRun, Workbench
from workers.job.workflows.capture.segments import shown_time

_ENCODERS: Final = {
    "h264": ("libx264", "-preset", "veryfast", "-crf", "12", "-bf", "0"),
    "hevc": ("libx265", "-preset", "veryfast", "-crf", "14", "-x265-params", "bframes=0:log-level=none"),
    "aac": ("aac", "-b:a", "320k"),
    "mp2": ("mp2", "-b:a", "384k"),
    "ac3": ("ac3", "-b:a", "640k"),
    "eac3": ("eac3", "-b:a", "640k"),
}
"""The encoders of parts in another codec than the rest of their track, which is encoded once more when the film is made. MPEG-TS
supports them, and frames keep their times in them. A track of several codecs that is mostly in none of these is converted to the
usual one."""
_HELD: Final = frozenset({*_ENCODERS, "mpeg2video", "mpeg1video", "mp3"})
"""The codecs that MPEG-TS can carry."""
_USUAL: Final = {"v": "h264", "a": "aac"}
_MOST_TOLD: Final = 20


Conversion = tuple[str, ...]
"""Options that convert tracks of a piece to the codec and the colours of the rest of them."""


@dataclass(frozen=True, slots=True)
class TrackFile:
    """A file of tracks, piece by piece, with the coding of each track of each piece."""

    pieces: Sequence[Mapping[str, TrackForms]]

    def track(self, name: str) -> list[TrackForms]:
        return [piece[name] for piece in self.pieces if name in piece]

    def varying(self, kinds: str, *, joined: bool) -> dict[str, Form]:
        """Return the tracks of these kinds that cannot be copied, with the form that they get.

        `joined` means that their pieces are joined as MPEG-TS.
        """
        forms: dict[str, Form] = {}
        for name in dict.fromkeys(name for piece in self.pieces for name in piece if name[0] in kinds):
            track = self.track(name)
            form, codecs = leading(track), {form.codec for piece in track for _, form in piece.forms}
            if changes(track) or (joined and not codecs <= _HELD):
                keeps_codec = not joined or form.codec in _ENCODERS or (len(codecs) == 1 and codecs <= _HELD)
                forms[name] = form if keeps_codec else replace(form, codec=_USUAL[name[0]])
        return forms


class Coding:
    """The coding of the pieces of all files of tracks. `joined` means that they are joined as MPEG-TS."""

    def __init__(
        self, workbench: Workbench, files: Sequence[Sequence[SegmentRun]], *, joined: bool, transport_stream: bool
    ) -> None:
        runs = dict.fromkeys(run for file in files for run in file)
        self._coded = {run: workbench.coded(run, transport_stream=transport_stream) for run in runs}
        self.lines = [TrackFile([self._coded[run] for run in dict.fromkeys(file)]) for file in files]
        kinds = ("va",) if len(files) == 1 else ("v", "a")
        self.files = [line.varying(kind, joined=joined) for line, kind in zip(self.lines, kinds, strict=True)]
        self.varying: Mapping[str, Form] = {name: form for file in self.files for name, form in file.items()}
        """Tracks that are to be encoded again, with the form that they get."""
        picture = leading(self.lines[0].track("v")) if self.lines[0].track("v") else None
        if not isinstance(picture, PictureForm):
            raise StepFailed("The picture of the recording cannot be read.", final=True)
        needs = {form.colours.converted() for picture in self._pictures() for form in picture}
        self._mixed = joined and "v" in self.varying and len(needs) > 1
        self.picture = picture
        """The form of most of the picture."""
        self.converted = () if self._mixed else picture.colours.converted()
        """Filters that the colours of the picture need in the film."""

    def _pictures(self) -> Iterator[list[PictureForm]]:
        for piece in self.lines[0].track("v"):
            yield [form for _, form in piece.forms if isinstance(form, PictureForm)]

    def conversion(self, run: SegmentRun, *, file: int) -> Conversion:
        """Return options for the tracks of a piece that, unlike most of them, are in another codec, or in colours that must be
        converted."""
        conversion: list[str] = []
        for name, form in self.files[file].items():
            coded = self._coded[run].get(name)
            forms = [] if coded is None else [coded_form for _, coded_form in coded.forms]
            colours = (
                [coded_form.colours.converted() for coded_form in forms if isinstance(coded_form, PictureForm)]
                if self._mixed
                else []
            )
            if any(colours) or any(coded_form.codec != form.codec for coded_form in forms):
                track = f":{name[0]}:{name[1:] or '0'}"
                filters = (
                    ",".join((*(colours[:1] or [()])[0], picture_filters(form)))
                    if isinstance(form, PictureForm)
                    else sound_filter(form)
                )
                times = ("-fps_mode:v", "passthrough", "-enc_time_base:v", "demux") if isinstance(form, PictureForm) else ()
                encoder, *options = _ENCODERS[form.codec]
                conversion += (f"-filter{track}", filters, f"-c{track}", encoder, *options, *times)
        return tuple(conversion)


def log_changes(context: StepContext[Any], coding: Coding, *, clocked: bool) -> None:
    """Log the times at which tracks change."""
    for name, form in coding.varying.items():
        line = next(line for line, varying in zip(coding.lines, coding.files, strict=True) if name in varying)
        track_changes = changes(line.track(name))
        what = named(name)
        for moment, before, after in track_changes[:_MOST_TOLD]:
            context.log(f"{what} changes from {before} to {after} at {at_time(moment, clocked=clocked)}.", Severity.WARN)
        if track_changes[_MOST_TOLD:]:
            context.log(f"{what} changes {len(track_changes) - _MOST_TOLD} more times.", Severity.WARN)
        if track_changes:
            how = f"at {form.size[0]}x{form.size[1]}" if isinstance(form, PictureForm) else f"with {str(form).partition(' in ')[0]}"
            bars = " Black bars fill the space that another shape leaves." if isinstance(form, PictureForm) else ""
            context.log(f"{what} is encoded again {how}: a film has one form from beginning to end.{bars}", Severity.WARN)


def named(track: str) -> str:
    return {"v": "The picture", "a0": "The sound"}.get(track) or f"The sound of track {int(track[1:]) + 1}"


def at_time(moment: float, *, clocked: bool) -> str:
    """Return the time of day, or seconds from the start of the stream, as text."""
    return str(shown_time(moment, clocked=True)) if clocked else f"{moment:.3f} s".replace(".000 s", " s")
