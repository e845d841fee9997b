"""The sources of an encode: a test picture, a film of the media root, a device of the machine, or a fetched stream.

ffmpeg opens nothing by a name from a caller, except a device. A film is a descriptor that was opened here, below the media root and
without following links; a stream is fetched by the outbound client and fed to standard input.
"""

from __future__ import annotations

import os
import re
from asyncio import StreamWriter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from domain.channel.encoder_settings import EncodeSettings
from domain.event.values import AudioInput, listed_inputs
from workers.adapters.encoders.canvas import Canvas
from workers.adapters.encoders.encode_command import REALTIME, TEST_FPS, Input, exact_rate, pattern_input
from workers.adapters.encoders.fetched_stream import FetchedStream
from workers.adapters.encoders.hls_reading import NotRead
from workers.adapters.encoders.playout import Playout
from workers.adapters.encoders.probe import probe_source, quotient, tracks_of
from workers.adapters.encoders.upcoming_items import PlayoutPatience
from workers.adapters.item_files import UnusableFile, open_below
from workers.kernel.confinement import Confinement
from workers.media.colours import Colours
from workers.ports.encoders import EncoderFailed
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused
from workers.ports.playout import Programme

Feed = Callable[[StreamWriter], Awaitable[str]]
"""Writes the source to a process and returns why it failed, empty if it ended."""

_VIDEO_DEVICE: Final = re.compile(r"/dev/video\d{1,3}")
_OSS: Final = re.compile(r"/dev/dsp\d{0,3}")
_ALSA: Final = re.compile(r"(?:plug)?hw:[A-Za-z0-9_,=-]{1,40}|default")
_WHITELIST: Final = ("-protocol_whitelist", "fd,pipe")
_NAME: Final = "encoderSpecific.source"
_SLOWEST, _FASTEST = 10, 120
"""The range of the frames per second with which a picture is sent."""


@dataclass
class OpenSource:
    """An open source. The process inherits `descriptor` under its number here."""

    input: Input
    descriptor: int | None = None
    feed: Feed | None = None
    fetched: FetchedStream | None = None
    playout: Playout | None = None

    def take_descriptors(self) -> Sequence[int]:
        taken = [self.descriptor] if self.descriptor is not None else []
        self.descriptor = None
        if self.playout is not None:
            taken += self.playout.take_descriptors()
        return taken

    async def close(self) -> None:
        """Close what was not taken."""
        for descriptor in self.take_descriptors():
            os.close(descriptor)
        if self.fetched is not None:
            await self.fetched.close()
        if self.playout is not None:
            self.playout.close()

    def take_playout(self) -> Playout | None:
        taken, self.playout = self.playout, None
        return taken

    def take_feed(self) -> Feed | None:
        self.fetched = None
        return self.feed


@dataclass(frozen=True)
class EncoderSources:
    """The sources of this machine. `media_root` is the folder of films; None if they are in a bucket. `devices` is True if the
    operator lets encoders read the devices of this machine."""

    media_root: Path | None
    client: OutboundConnections
    devices: bool = False

    async def open(self, settings: EncodeSettings, *, program: Path, confinement: Confinement) -> OpenSource:
        """Open the source of the settings. Raises `EncoderFailed`."""
        configured = listed_inputs(settings.audio_inputs)
        match settings.source.type:
            case "file":
                return await self._film(settings, configured, program=program, confinement=confinement)
            case "device":
                return self._device(settings, configured)
            case "url":
                return await self._stream(settings, configured, program=program, confinement=confinement)
        return OpenSource(pattern_input(settings, sounds=configured or [AudioInput(id="0", name="Tone")]))

    def play(
        self, settings: EncodeSettings, programme: Programme, *, program: Path, confinement: Confinement, patience: PlayoutPatience
    ) -> OpenSource:
        """Return the playout of a composition, with one sound: the first configured one."""
        sound = (listed_inputs(settings.audio_inputs) or [AudioInput(id="0", name="Programme")])[0]
        canvas = Canvas.of(settings, sound=sound.index)
        playout = Playout(programme, canvas, program, confinement, [sound], patience)
        return OpenSource(playout.opened(), playout=playout)

    async def _film(
        self, settings: EncodeSettings, configured: Sequence[AudioInput], *, program: Path, confinement: Confinement
    ) -> OpenSource:
        name = settings.source.file or ""
        if self.media_root is None:
            raise EncoderFailed(f"{_NAME}.file: media are in a bucket here, so an encoder cannot read them.")
        inspected = _open_film(self.media_root, name)
        probe = await probe_source(program, confinement=confinement, descriptor=inspected)
        descriptor = _open_film(self.media_root, name)
        loop = ("-stream_loop", "-1") if settings.source.loop else ()
        arguments = (*REALTIME, *loop, *_WHITELIST, "-fd", str(descriptor), "-i", "fd:")
        try:
            return OpenSource(input_of(arguments, probe, configured=configured), descriptor)
        except EncoderFailed:
            os.close(descriptor)
            raise

    def _device(self, settings: EncodeSettings, configured: Sequence[AudioInput]) -> OpenSource:
        video, audio = settings.source.video or "", settings.source.audio or ""
        if not self.devices:
            raise EncoderFailed(f"{_NAME}.type: the operator of this server does not let encoders read devices.")
        if not _VIDEO_DEVICE.fullmatch(video):
            raise EncoderFailed(f"{_NAME}.video: must be a device such as /dev/video0.")
        if audio and not (_OSS.fullmatch(audio) or _ALSA.fullmatch(audio)):
            raise EncoderFailed(f"{_NAME}.audio: must be a device such as hw:0 or /dev/dsp.")
        for member, device in (("video", video), ("audio", audio)):
            if device.startswith("/dev/") and not Path(device).is_char_device():
                raise EncoderFailed(f"{_NAME}.{member}: there is no device {device} on this machine.")
        arguments = ["-thread_queue_size", "64", "-f", "v4l2", "-i", video]
        if audio:
            arguments += ["-thread_queue_size", "512", "-f", "oss" if _OSS.fullmatch(audio) else "alsa", "-i", audio]
        sounds = (list(configured) or [AudioInput(id="0")])[:1] if audio else []
        return OpenSource(Input(arguments, sounds, None, ["1:a:0"] * len(sounds)))

    async def _stream(
        self, settings: EncodeSettings, configured: Sequence[AudioInput], *, program: Path, confinement: Confinement
    ) -> OpenSource:
        url = settings.source.url or ""
        if not re.match("https?://", url, re.IGNORECASE):
            raise EncoderFailed(f"{_NAME}.url: must begin with http:// or https://; other protocols cannot be read.")
        fetched = FetchedStream(self.client, url)
        try:
            head = await fetched.head()
            probe = await probe_source(program, confinement=confinement, given=head)
            arguments = (*REALTIME, *_WHITELIST, "-i", "pipe:0")
            return OpenSource(input_of(arguments, probe, configured=configured), feed=fetched.feed, fetched=fetched)
        except (OutboundRefused, OutboundFailed, NotRead) as fault:
            await fetched.close()
            raise EncoderFailed(f"{_NAME}.url: {fault}") from None
        except BaseException:
            await fetched.close()
            raise


def input_of(arguments: Sequence[str], probe: Mapping[str, Any], *, configured: Sequence[AudioInput]) -> Input:
    """Return the input of a source whose streams are known. Configured audio inputs that the source does not have are omitted.
    Raises `EncoderFailed`."""
    streams = tracks_of(probe)
    pictures = [each for each in streams if each.get("codec_type") == "video"]
    if not pictures:
        raise EncoderFailed(f"{_NAME}: it has no picture that can be read.")
    sounds = [_sound(each, index) for index, each in enumerate(each for each in streams if each.get("codec_type") == "audio")]
    by_index = {sound.index: sound for sound in configured}
    wanted = [_named(sound, by_index[sound.index]) for sound in sounds if sound.index in by_index] if configured else sounds
    places = [each.get("index", 0) for each in streams if each.get("codec_type") == "audio"]
    specifiers = [f"0:{places[sound.index]}" for sound in wanted]
    picture = pictures[0]
    index = f"0:{picture.get('index', 0)}"
    return Input(arguments, wanted, _rate(picture), specifiers, _shape(picture), index, Colours.of(picture))


def _sound(stream: Mapping[str, Any], index: int) -> AudioInput:
    tags = stream.get("tags") if isinstance(stream.get("tags"), dict) else {}
    language = str((tags or {}).get("language", ""))[:35]
    valid_language = language if re.fullmatch("[A-Za-z0-9-]+", language) and language != "und" else ""
    return AudioInput(id=str(index), name=str((tags or {}).get("title", ""))[:80], index=index, language=valid_language)


def _named(sound: AudioInput, configured: AudioInput) -> AudioInput:
    return AudioInput(
        id=configured.id,
        name=configured.name or sound.name,
        index=sound.index,
        language=configured.language or sound.language,
    )


def _rate(stream: Mapping[str, Any]) -> float:
    """Return the frames per second, rounded to a standard rate if one is near. A picture that is mostly still has few frames, and
    moves at the rate of which its times are multiples."""
    mean, steps = (quotient(stream.get(name)) for name in ("avg_frame_rate", "r_frame_rate"))
    rate = next((each for each in (mean, steps) if each is not None and _SLOWEST <= each <= _FASTEST), TEST_FPS)
    return float(exact_rate(rate, within=0.01))


def _shape(stream: Mapping[str, Any]) -> float | None:
    """Return width divided by height as displayed: with the shape of the pixels, and with the rotation."""
    try:
        across, down = int(stream["width"]), int(stream["height"])
        shape = across / down * (quotient(stream.get("sample_aspect_ratio")) or 1.0)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    sides = stream.get("side_data_list")
    turns = [each.get("rotation") for each in sides if isinstance(each, dict)] if isinstance(sides, list) else []
    turned = any(isinstance(turn, int | float) and round(turn / 90) % 2 for turn in turns)
    return 1 / shape if turned else shape


def _open_film(root: Path, name: str) -> int:
    """Open a film. Raises `EncoderFailed`."""
    try:
        return open_below(root, name)
    except UnusableFile as fault:
        raise EncoderFailed(f"{_NAME}.file: {fault}.") from None
