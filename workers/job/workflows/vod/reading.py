"""Reads a source for a step: brings each track to one form, and compares the output with what was read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from workers.job.context import StepContext
from workers.job.workflows.vod.codecs import progressive_sdr
from workers.media.filters import RATE, FilteredTrack, FormedTracks, Stay, fitted, sound_form
from workers.media.source import SourceFile
from workers.media.tracks import Listing, check_made, decoded, log_damage, log_oddities, sound_names
from workers.media.tracks import MeasuredTrack as Tracks

_SHORTER: Final = 1.0
"""Seconds by which a picture may end before the sound without being held."""


def listing_options(name: str, track: str = "0") -> tuple[str, ...]:
    """Return options that list the packets of a track of an output, for `Reading.check`."""
    return (f"-stats_mux_pre:{track}", f"made-{name}.txt", f"-stats_mux_pre_fmt:{track}", "{t}")


def stay(media: SourceFile, lines: int) -> Stay | None:
    """Return how long to hold a picture that, by the headers of the tracks, ends long before the sound; None if it does not."""
    until = max((sound.ends for sound in media.sounds if sound.ends is not None), default=0.0)
    ends = media.picture.ends
    return Stay(until, lines) if ends is not None and until - ends > _SHORTER else None


@dataclass(frozen=True)
class Reading:
    """A source that a step reads. `copied` are the streams of tracks that are not decoded."""

    context: StepContext[Any]
    media: SourceFile
    copied: Collection[int] = ()

    def formed(self, width: int, height: int) -> FormedTracks:
        """Return the tracks that are decoded: the picture in this size, then the sounds."""
        picture = self.media.picture
        shown = ",".join((*progressive_sdr(picture), fitted(width, height, coded=picture.colours.film.coded)))
        tracks = (
            FilteredTrack(f"0:{picture.index}", shown, is_picture=True),
            *(FilteredTrack(f"0:{sound.index}", sound_form(sound.channels), is_picture=False) for sound in self.media.sounds),
        )
        used = [(index, track) for index, track in zip(self._streams, tracks, strict=True) if index not in self.copied]
        return FormedTracks(tuple(track for _, track in used), tuple(_decoded_file(index) for index, _ in used))

    def listings(self) -> tuple[str, ...]:
        return tuple(option for listing in self._listings for option in listing.options())

    def check(self, *, made: Sequence[str], tells: bool) -> None:
        """Compare the outputs with the source.

        `made` are the names that were given to `listing_options`: that of the picture, then those of the outputs of the sounds,
        which may be the same. With `tells`, oddities of the source are logged.
        """
        read = self.read
        names = ["The picture", *(name for name, _ in sound_names(self.media, read[1:]))]
        if tells:
            log_oddities(self.media, picture=read[0], sounds=read[1:])
        folder, listed = self.context.workspace, dict[str, Tracks]()
        for place, (stream, track, file) in enumerate(zip(self._streams, read, made, strict=True)):
            if stream not in self.copied:
                frames = decoded(folder / _decoded_file(stream), rate=RATE if place else 0)
                log_damage(self.media, read=track, shown=frames, name=names[place])
                if file not in listed:
                    listed[file] = decoded(folder / f"made-{file}.txt")
                check_made(self.media, shown=frames, made=listed[file], name=names[place])

    @cached_property
    def read(self) -> tuple[Tracks, ...]:
        """The packets of the picture and of the sounds, after the run."""
        return tuple(listing.track() for listing in self._listings)

    @property
    def _streams(self) -> tuple[int, ...]:
        return (self.media.picture.index, *(sound.index for sound in self.media.sounds))

    @property
    def _listings(self) -> list[Listing]:
        return [Listing(stream, self.context.workspace) for stream in self._streams]


def _decoded_file(stream: int) -> str:
    return f"decoded-{stream}.txt"
