"""The sound tracks of a film: the tracks of the source that they are made from, their purpose, and their loudness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from re import compile as regex
from typing import Annotated, Any, Final, Literal, Self

import langcodes
from lxml import etree
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from workers.job.context import StepContext, StepFailed
from workers.job.workflows.encode import encode
from workers.media import filters
from workers.media.filters import RATE, SOUND_LINE, FilteredTrack, FormedTracks, sound_form
from workers.media.loudness import meter, read_meter
from workers.media.outputs import language
from workers.media.quality import PROFILES
from workers.media.source import Sound, SourceFile

MOST_SOURCE_TRACKS: Final = 16
"""The largest number of tracks that are read from a source whose tracks are joined: broadcast recorders write each channel as a
track."""
_MOST: Final = 8
_TOLERANCE: Final = 0.5
"""The difference to the target, in LU, within which sound stays as it is."""
_NEAR: Final = 0.2
"""The accepted difference in LU. A limiter reduces the loudness of amplified sound, which is then amplified once more."""
_TRIES: Final = 3
_MOST_GAIN: Final = 40.0
"""The largest gain in dB. Anything softer is noise."""
_HEADROOM: Final = 0.5
"""The distance in dB from the allowed true peak, since the codec adds a little."""
_OVERSAMPLED: Final = 4 * RATE
_JOINED: Final = (1, 2, 6)
"""The numbers of tracks that can become one: a single track, a stereo pair, and 5.1."""


class SoundRole(StrEnum):
    """The purpose of a sound track."""

    MAIN = "main"
    DESCRIPTION = "description"
    COMMENTARY = "commentary"
    ORIGINAL = "original"
    DUB = "dub"


_DISPOSITIONS: Final = {
    SoundRole.MAIN: "default",
    SoundRole.DESCRIPTION: "visual_impaired+descriptions",
    SoundRole.COMMENTARY: "comment",
    SoundRole.ORIGINAL: "original",
    SoundRole.DUB: "dub",
}
_MARKS: Final = {
    "visual_impaired": SoundRole.DESCRIPTION,
    "descriptions": SoundRole.DESCRIPTION,
    "comment": SoundRole.COMMENTARY,
    "original": SoundRole.ORIGINAL,
    "dub": SoundRole.DUB,
}


def _three_letters(text: str) -> str:
    language = langcodes.get(text)
    if not language.is_valid():
        raise PydanticCustomError("language", "must be a language of ISO 639, such as de or deu")
    return language.to_alpha3()


def _joinable(tracks: tuple[int, ...]) -> tuple[int, ...]:
    if len(tracks) not in _JOINED:
        raise PydanticCustomError("tracks", "must be one track, two for a stereo pair, or six for 5.1")
    if len(set(tracks)) < len(tracks):
        raise PydanticCustomError("tracks", "must be different")
    return tracks


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise PydanticCustomError("name", "must consist of printable characters")
    return text.strip()


class SoundTrack(BaseModel):
    """A sound track of the film. `tracks` are sound tracks of the source, counted from 1."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    tracks: Annotated[
        tuple[Annotated[int, Field(ge=1, le=MOST_SOURCE_TRACKS)], ...], Field(min_length=1, max_length=6), AfterValidator(_joinable)
    ] = Field(description="Sound tracks of the source, from 1: one; two of one channel for a stereo pair; six of them for 5.1.")
    role: Literal["main", "description", "commentary", "original", "dub"] | None = Field(
        None, description="Purpose of the track; by default as the source states, else main."
    )
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$"), AfterValidator(_three_letters)] | None = Field(
        None, description="Language by ISO 639; by default that of the source."
    )
    name: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)] | None = Field(
        None, description="Name that players show; by default that of the source."
    )


class LoudnessTarget(BaseModel):
    """The wanted loudness of sound. Without `target` it is that of the profile."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    target: Annotated[float, Field(ge=-40, le=-9)] | None = Field(
        None, description="Integrated loudness in LUFS, by default that of the profile.", examples=[-23]
    )
    profile: Literal["ebu-r128", "a85"] = Field(
        "ebu-r128", description="ebu-r128 is -23 LUFS with peaks of -1 dBTP, a85 is -24 LUFS with peaks of -2 dBTP."
    )

    @property
    def lufs(self) -> float:
        """The wanted integrated loudness in LUFS."""
        usual = PROFILES[self.profile].loudness
        assert usual is not None
        return self.target if self.target is not None else usual

    @property
    def peak(self) -> float:
        """The largest true peak in dBTP."""
        usual = PROFILES[self.profile].true_peak
        assert usual is not None
        return usual


class SoundParameters(BaseModel):
    """The parameters of a workflow that choose the sound tracks of its film."""

    sounds: Annotated[tuple[SoundTrack, ...], Field(min_length=1, max_length=_MOST)] | None = Field(
        None,
        description="The sound tracks of the film in their order; by default the first eight of the source.",
        examples=[[{"tracks": [1, 2], "language": "de"}, {"tracks": [3, 4], "role": "description"}]],
    )
    stereo_pairs: bool | None = Field(
        None, description="Whether tracks of one channel that follow each other are joined to stereo pairs: 1 and 2, 3 and 4."
    )
    loudness: LoudnessTarget | None = Field(None, description="Loudness of the sound; by default it is unchanged.")

    @model_validator(mode="after")
    def _pairs_or_tracks(self) -> Self:
        if self.sounds is not None and self.stereo_pairs:
            raise PydanticCustomError("sounds", "must not have both sounds and stereo_pairs")
        return self


def limiter(peak: float) -> tuple[str, ...]:
    """Return filters that keep peaks between samples below a true peak in dBTP."""
    limit = min(10 ** ((peak - _HEADROOM) / 20), 1.0)
    limiter = f"alimiter=limit={limit:.5f}:attack=5:release=50:level=false:latency=true"
    return (f"aresample={_OVERSAMPLED}", limiter, f"aresample={RATE}")


@dataclass(frozen=True, slots=True)
class FilmSound:
    """A sound track of the film.

    `parts` are the tracks of the source, each a channel if there are several. `gain` is in dB, `peak` the largest true peak in dBTP
    of amplified sound.
    """

    parts: tuple[Sound, ...]
    role: SoundRole
    language: str
    name: str
    gain: float = 0.0
    peak: float = 0.0

    @property
    def channels(self) -> int:
        return self.parts[0].channels if len(self.parts) == 1 else len(self.parts)

    @property
    def changed(self) -> bool:
        """Return True if it must be encoded again."""
        return len(self.parts) > 1 or self.gain != 0.0

    def graph(self, decoded: Sequence[str], made: str, *, behind: str = "") -> str:
        """Return a graph from the parts in their one form to the sound that is encoded.

        It begins with the first picture, with silence while there is no sound. `behind` are filters at its end.
        """
        louder = [f"volume={self.gain:.3f}dB"] if self.gain else []
        if self.gain > 0:
            louder += limiter(self.peak)
        end = ",".join((*louder, sound_form(self.channels, sample="fltp"), *((behind,) if behind else ())))
        if len(self.parts) == 1:
            return f"[{decoded[0]}]{SOUND_LINE},{end}[{made}]"
        layout = filters.LAYOUTS[len(self.parts)]
        placed = (f"[{label}]{SOUND_LINE},pan={layout}|c{channel}=c0[{made}-{channel}]" for channel, label in enumerate(decoded))
        labels = "".join(f"[{made}-{channel}]" for channel in range(len(decoded)))
        return f"{';'.join(placed)};{labels}amix=inputs={len(decoded)}:normalize=0:duration=longest,{end}[{made}]"

    def tags(self, place: int) -> tuple[str, ...]:
        """Return options with the language, name and disposition of the track at this place of an output."""
        named = (f"-metadata:s:a:{place}", f"title={self.name}") if self.name else ()
        first = "default" if place == 0 else "0"
        disposition = first if self.role is SoundRole.MAIN else _DISPOSITIONS[self.role] + ("+default" if place == 0 else "")
        return (*language(self.language, place), *named, f"-disposition:a:{place}", disposition)

    def noted(self) -> dict[str, str]:
        return {"language": self.language, "role": self.role.value, "name": self.name}


@dataclass(frozen=True)
class FilmSounds:
    """The sound tracks of a film. `media` is its source with the tracks that are used, each once."""

    media: SourceFile
    tracks: tuple[FilmSound, ...]

    @cached_property
    def files(self) -> Mapping[int, int]:
        """The first track of the film that each stream of the source is part of."""
        places: dict[int, int] = {}
        for place, track in enumerate(self.tracks):
            for part in track.parts:
                places.setdefault(part.index, place)
        return places

    def graph(self, place: int, decoded: Mapping[int, str], *, made: str, behind: str = "") -> str:
        """Return the graph of a track. `decoded` are labels of the streams that are decoded."""
        track = self.tracks[place]
        return track.graph([decoded[part.index] for part in track.parts], made, behind=behind)


def film_sounds(context: StepContext[Any], media: SourceFile, *, parameters: SoundParameters) -> FilmSounds:
    """Return the sound tracks of the film. If the source lacks a requested track, the step fails for good, with the reason."""
    if parameters.sounds is not None:
        tracks = [_track(media, sound) for sound in parameters.sounds]
    elif parameters.stereo_pairs:
        tracks = _pair_tracks(media.sounds)
        pairs = sum(len(track.parts) == 2 for track in tracks)
        context.log(f"{pairs} pairs of sound tracks of {media.file.name} are joined to stereo.")
    else:
        tracks = [track_of(sound) for sound in media.sounds]
    if len(tracks) > _MOST:
        context.log(f"The film would have {len(tracks)} sound tracks; it has the first {_MOST}.")
    used_tracks = tuple(tracks[:_MOST])
    used = {part.index: part for track in used_tracks for part in track.parts}
    sounds = FilmSounds(replace(media, sounds=tuple(used.values())), used_tracks)
    return sounds if parameters.loudness is None else replace(sounds, tracks=_level_tracks(context, sounds, parameters.loudness))


def track_of(sound: Sound) -> FilmSound:
    """Return a track of the source as a track of the film."""
    role = next((role for mark, role in _MARKS.items() if mark in sound.marks), SoundRole.MAIN)
    return FilmSound((sound,), role, sound.language, sound.name)


def _pair_tracks(sounds: Sequence[Sound]) -> list[FilmSound]:
    tracks: list[FilmSound] = []
    unpaired: Sound | None = None
    for sound in sounds:
        if sound.channels != 1:
            tracks += [*([] if unpaired is None else [track_of(unpaired)]), track_of(sound)]
            unpaired = None
        elif unpaired is None:
            unpaired = sound
        else:
            tracks.append(replace(track_of(unpaired), parts=(unpaired, sound)))
            unpaired = None
    return [*tracks, *([] if unpaired is None else [track_of(unpaired)])]


def _track(media: SourceFile, requested: SoundTrack) -> FilmSound:
    count = len(media.sounds)
    beyond = next((number for number in requested.tracks if number > count), None)
    if beyond is not None:
        raise StepFailed(f"{media.file.name} has no sound track {beyond}: it has {count}.", final=True)
    parts = tuple(media.sounds[number - 1] for number in requested.tracks)
    if len(parts) > 1:
        for number, part in zip(requested.tracks, parts, strict=True):
            if part.channels != 1:
                reason = f"Sound track {number} of {media.file.name} has {part.channels} channels; only tracks of one are joined."
                raise StepFailed(reason, final=True)
    usual = track_of(parts[0])
    role = usual.role if requested.role is None else SoundRole(requested.role)
    return FilmSound(parts, role, requested.language or usual.language, requested.name or usual.name)


@dataclass
class _Level:
    """A track while its gain is determined."""

    track: FilmSound
    number: int
    source: float | None = field(default=None)
    done: bool = False


def _level_tracks(context: StepContext[Any], sounds: FilmSounds, loudness_target: LoudnessTarget) -> tuple[FilmSound, ...]:
    """Return the tracks with their gains. Only sound is decoded, once to measure it, and again for sound that is limited."""
    levels = [_Level(track, number) for number, track in enumerate(sounds.tracks, 1)]
    for attempt in range(_TRIES):
        remaining = [level for level in levels if not level.done]
        if not remaining:
            break
        for level, measured in zip(remaining, _measure(context, sounds.media, [level.track for level in remaining]), strict=True):
            if attempt == 0:
                level.source = measured
            apart = 0.0 if measured is None else loudness_target.lufs - measured
            if abs(apart) <= (_NEAR if attempt else _TOLERANCE):
                level.done = True
                continue
            gain = max(min(level.track.gain + apart, _MOST_GAIN), -_MOST_GAIN)
            level.track = replace(level.track, gain=gain, peak=loudness_target.peak)
            level.done = gain <= 0
    for level in levels:
        name = f"Sound track {level.number}" if len(levels) > 1 else "The sound"
        if level.source is None:
            context.log(f"{name} is silent, or too short to be measured; its loudness stays as it is.")
        else:
            done = f"is changed by {level.track.gain:+.1f} dB" if level.track.gain else "stays as it is"
            context.log(f"{name} has {level.source:.1f} LUFS; for {loudness_target.lufs:g} LUFS it {done}.")
    return tuple(level.track for level in levels)


def _measure(context: StepContext[Any], media: SourceFile, tracks: Sequence[FilmSound]) -> list[float | None]:
    """Return the integrated loudness of each track in LUFS; None for a silent one."""
    used = {part.index: part for track in tracks for part in track.parts}
    formed = FormedTracks(
        tuple(FilteredTrack(f"0:{index}", sound_form(part.channels), is_picture=False) for index, part in used.items())
    )
    labels = {index: formed.label(place) for place, index in enumerate(used)}
    graphs = [
        track.graph([labels[part.index] for part in track.parts], f"level{place}", behind=meter(_level_file(place)))
        for place, track in enumerate(tracks)
    ]
    outputs = [option for place in range(len(tracks)) for option in ("-map", f"[level{place}]", "-f", "null", "-")]
    encode(
        context,
        media.file,
        *media.file.input(used=used),
        *formed.options(),
        "-filter_complex",
        ";".join(graphs),
        *outputs,
        lasts=0.0,
    )
    files = [context.workspace / Path(_level_file(place)) for place in range(len(tracks))]
    measured = [read_meter(file).integrated for file in files]
    for file in files:
        file.unlink(missing_ok=True)
    return measured


def _level_file(place: int) -> str:
    return f"level-{place}.txt"


_DASH_ROLES: Final = ("main", "alternate", "supplementary", "commentary", "dub", "description", "caption", "subtitle")
"""Roles that distinguish audio tracks of one language; without them a player takes the tracks for renditions of one."""
_PACKAGED: Final = {
    SoundRole.DESCRIPTION: "description",
    SoundRole.COMMENTARY: "commentary",
    SoundRole.ORIGINAL: "alternate",
    SoundRole.DUB: "dub",
}
_FOR_THE_BLIND: Final = (
    ",hls_characteristics=public.accessibility.describes-video,dash_accessibilities=urn:tva:metadata:cs:AudioPurposeCS:2007=1"
)
_MPD: Final = "{urn:mpeg:dash:schema:mpd:2011}"
_NAME: Final = regex(r'(?<=,)NAME="[^"]*"')
_NO_LABEL: Final = frozenset('"\\')


def packaged_roles(audios: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the packager's flags for the role of each track, as `FilmSound.noted` noted it."""
    taken: set[tuple[str, str]] = set()
    roles: list[str] = []
    for audio in audios:
        language, role = str(audio["language"]), SoundRole(audio.get("role") or SoundRole.MAIN)
        preferred = (_PACKAGED[role],) if role in _PACKAGED else ()
        chosen = next(dash_role for dash_role in (*preferred, *_DASH_ROLES) if (language, dash_role) not in taken)
        taken.add((language, chosen))
        roles.append(f"dash_roles={chosen}{_FOR_THE_BLIND if role is SoundRole.DESCRIPTION else ''}")
    return roles


def named_in_playlist(text: str, audios: Sequence[Mapping[str, Any]]) -> str:
    """Return the master playlist with the names of the tracks, which the packager cannot take if they have commas."""
    names = {f'URI="audio-{number}.m3u8"': _label(audio) for number, audio in enumerate(audios, 1) if audio.get("name")}
    lines = []
    for line in text.splitlines():
        name = next((name for uri, name in names.items() if uri in line), None)
        if name is not None and line.startswith("#EXT-X-MEDIA:TYPE=AUDIO"):
            line = _NAME.sub(lambda _, name=name: f'NAME="{name}"', line, count=1)  # type: ignore[misc]
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def named_in_manifest(manifest: bytes, audios: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the DASH manifest with the names of the tracks."""
    names = {f"audio-{number}.mp4": _label(audio) for number, audio in enumerate(audios, 1) if audio.get("name")}
    if not names:
        return manifest
    mpd = etree.fromstring(manifest, etree.XMLParser(remove_blank_text=True))
    for adaptation in mpd.iter(f"{_MPD}AdaptationSet"):
        name = next((names[url.text] for url in adaptation.iter(f"{_MPD}BaseURL") if url.text in names), None)
        if name is not None:
            label = etree.Element(f"{_MPD}Label")
            label.text = name
            adaptation.insert(0, label)
    return etree.tostring(mpd, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _label(audio: Mapping[str, Any]) -> str:
    return "".join("'" if letter in _NO_LABEL else letter if letter.isprintable() else " " for letter in str(audio["name"]))
