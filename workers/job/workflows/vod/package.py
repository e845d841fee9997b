"""The step that packages renditions for players, and publishes everything: segments and playlists first, `metadata.json` last.

One set of segments serves HLS and DASH: CMAF, each track in one file that players read by byte ranges. If the Event uses DRM, there
are two sets, one for each encryption scheme, and none in clear. ADR 0048.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from re import compile as regex
from typing import Any, Final

from domain.asset.values import CAPTIONS as ADDED
from domain.asset.values import FOUND
from domain.channel.placeholders import CLEAR
from domain.event import metadata_file
from workers.job.caption_answers import caption_tracks
from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.protocol import Protection
from workers.job.workflow import Step, Workflow
from workers.job.workflows.encode import fail_for_space
from workers.job.workflows.vod.breaks import BREAKS, cue_flags, in_manifest, in_playlist
from workers.job.workflows.vod.captions import CAPTIONS, find_captions, text_tracks
from workers.job.workflows.vod.embedded_captions import closed_captions
from workers.job.workflows.vod.parameters import PackageParameters
from workers.job.workflows.vod.quality import QUALITY, REPORT
from workers.job.workflows.vod.renditions import CONVERTED, has_source, make_renditions
from workers.job.workflows.vod.sounds import named_in_manifest, named_in_playlist, packaged_roles
from workers.job.workflows.vod.thumbnails import POSTER, make_thumbnails
from workers.media.captions.tracks import TextTrack
from workers.media.captions.tracks import in_manifest as tracks_in_manifest
from workers.media.captions.tracks import in_playlist as tracks_in_playlist
from workers.media.filters import KEY_SECONDS

_HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>\n<smil xmlns="http://www.w3.org/2001/SMIL20/Language">\n'


def smil(made: Mapping[str, Any], *, folder: str) -> str:
    """Return the manifest. `folder` is the folder with the files of the renditions."""
    videos = [
        f'<video src="{folder}/{video["file"]}" systemBitrate="{video["bitRate"]}"'
        f' width="{video["width"]}" height="{video["height"]}"/>'
        for video in made["videos"]
    ]
    audios = [f'<audio src="{folder}/{audio["file"]}"{_language(audio["language"])}/>' for audio in made["audios"]]
    tracks = "".join(f"      {track}\n" for track in (*videos, *audios))
    return f"{_HEAD}  <head/>\n  <body>\n    <switch>\n{tracks}    </switch>\n  </body>\n</smil>\n"


def _language(language: str) -> str:
    return f' systemLanguage="{language}"' if language else ""


PLAYLIST: Final = "master.m3u8"
MANIFEST: Final = "manifest.mpd"
_SECONDS: Final = 6 * 3600.0
_FAIRPLAY_SCHEME: Final = "cbcs"
_IDENTITY: Final = regex(r"#EXT-X-(?:SESSION-)?KEY:.*KEYFORMAT=\"identity\".*\n")
"""The lines that the packager writes for the box that only lists kids. In HLS they name a plain key at an address that does not
exist."""
_DIGITS: Final = regex(r"[0-9A-Fa-f]{16,}")


def package(context: StepContext[PackageParameters]) -> StepResult:
    made: Mapping[str, Any] = context.results["renditions"]
    protection = context.protection()
    schemes = [CLEAR] if protection is None else list(protection.boxes)
    texts, added = text_tracks(context.results[CAPTIONS]["tracks"]), caption_tracks(context)
    for number, scheme in enumerate(schemes, 1):
        _package_scheme(context, scheme, made, *((), b"") if protection is None else _encryption(scheme, protection))
        _add_texts(context.workspace / scheme, texts, text_folder=FOUND)
        _add_texts(context.workspace / scheme, added, text_folder=ADDED)
        context.progress(number / (len(schemes) + 1), scheme)
    content_id = context.job.content_id
    files: dict[str, Path] = {}
    if has_source(context):
        files[f"{content_id}.mp4"] = _take_file(context, CONVERTED)
    files |= {name: _take_file(context, name) for name in context.results["thumbnails"]["files"]}
    files |= {name: _take_file(context, Path(name).name) for text in texts for name in text.files}
    files |= {f"{folder}/{path.name}": path for folder in schemes for path in _in_order(context.workspace / folder)}
    if context.results.get(QUALITY):
        files[REPORT] = _take_file(context, REPORT)
    files[f"{content_id}.ism"] = _write_text(context, "renditions.ism", smil(made, folder=schemes[0]))
    described = json.dumps(_metadata(context, made, files), ensure_ascii=False, indent=1)
    files[metadata_file.NAME] = _write_text(context, metadata_file.NAME, described)
    for name, path in files.items():
        context.publish(path, name)
    return StepResult(
        message=f"Packaged {content_id}",
        metadata={
            "duration": made["duration"],
            "thumbnail": POSTER,
            "playlists": [f"{folder}/{file}" for folder in schemes for file in (PLAYLIST, MANIFEST)],
            "drm": None if protection is None else dict(protection.drm_json),
        },
    )


def _metadata(context: StepContext[PackageParameters], made: Mapping[str, Any], files: Mapping[str, Path]) -> dict[str, Any]:
    """Return the members of `metadata.json`.

    The step that captured the film knows when its first picture was captured, and this remains true for a file that is packaged
    again.
    """
    content_id = context.job.content_id
    source = f"{content_id}.mp4"
    sizes = {name: path.stat().st_size for name, path in files.items()}
    began = context.results.get("join", {}).get("startTime")
    if source not in files:
        sizes = {source: context.path(f"{content_id}/{source}").stat().st_size} | sizes
        began = _earlier_start(context.path(f"{content_id}/{metadata_file.NAME}"))
    listed = [{"name": name, "size": size} for name, size in sizes.items()]
    noted = {} if began is None else {"startTime": began}
    texts = [
        {"file": track.file, "language": track.language, "kind": track.kind.value, "name": track.name}
        for track in text_tracks(context.results[CAPTIONS]["tracks"])
    ]
    return {"contentId": content_id, "duration": made["duration"], **noted, "captions": texts, "files": listed}


def _earlier_start(file: Path) -> str | None:
    try:
        with file.open("rb") as opened:
            return metadata_file.start_time(opened.read(metadata_file.LARGEST))
    except OSError:
        return None


def _package_scheme(context: StepContext[Any], folder: str, made: Mapping[str, Any], flags: Sequence[str], secret: bytes) -> None:
    """Make one set of segments. The packager reads `secret`, further flags, from its standard input."""
    (context.workspace / folder).mkdir()
    breaks, duration = BREAKS.validate_python(context.results.get("join", {}).get("breaks", ())), float(made["duration"])
    audios: Sequence[Mapping[str, Any]] = made["audios"]
    default = ("--default_language", audios[0]["language"]) if audios and audios[0]["language"] else ()
    manifests = ("--hls_master_playlist_output", f"{folder}/{PLAYLIST}", "--mpd_output", f"{folder}/{MANIFEST}")
    cut = ("--segment_duration", str(2 * KEY_SECONDS), *cue_flags(breaks, duration=duration))
    embedded = closed_captions(context.results[CAPTIONS])
    captions = ("--closed_captions", embedded) if embedded else ()
    segments = (*cut, *captions, "--temp_dir", ".", "--quiet")
    tracks = [*_videos(context, folder, made["videos"]), *_audios(context, folder, audios)]
    ended = context.run("packager", *tracks, *manifests, *default, *segments, *flags, seconds=_SECONDS, given=secret)
    if ended.status != 0:
        fail_for_space(context)
        lines = [line for line in ended.errors.decode(errors="replace").splitlines() if line.strip()]
        last = _DIGITS.sub("…", lines[-1].partition("] ")[2]) if lines else f"it ended with status {ended.status}"
        raise StepFailed(f"packager: {last}", final=ended.status > 0)
    for playlist in (context.workspace / folder).glob("*.m3u8"):
        text = _IDENTITY.sub("", playlist.read_text())
        if playlist.name == PLAYLIST:
            text = named_in_playlist(text, audios)
        marked = breaks and playlist.name != PLAYLIST
        playlist.write_text(in_playlist(text, breaks, duration=duration) if marked else text)
    manifest = context.workspace / folder / MANIFEST
    manifest.write_bytes(named_in_manifest(manifest.read_bytes(), audios))
    if breaks:
        manifest.write_bytes(in_manifest(manifest.read_bytes(), breaks, duration=duration))


def _add_texts(folder: Path, tracks: Sequence[TextTrack], *, text_folder: str) -> None:
    """Add text tracks to the playlist and the manifest. `text_folder` is the folder with the files of the tracks."""
    playlist, manifest = folder / PLAYLIST, folder / MANIFEST
    playlist.write_text(tracks_in_playlist(playlist.read_text(), tracks, folder=text_folder))
    manifest.write_bytes(tracks_in_manifest(manifest.read_bytes(), tracks, folder=text_folder))


def _encryption(scheme: str, protection: Protection) -> tuple[tuple[str, ...], bytes]:
    """Return flags, and the secret flags that no other process may read."""
    chained = scheme == _FAIRPLAY_SCHEME
    constant = f":iv={protection.iv}" if chained else ""
    secret = [
        f"--keys=label=:key_id={protection.kid}:key={protection.key}{constant}",
        f"--pssh={protection.boxes[scheme]}",
    ]
    flags = ["--enable_raw_key_encryption", "--protection_scheme", scheme, "--clear_lead", "0", "--create_session_keys"]
    if chained:
        flags += ["--protection_systems", "FairPlay"]
        secret.append(f"--hls_key_uri={protection.fairplay_uri}")
    return (*flags, "--flagfile=/dev/stdin"), "\n".join([*secret, ""]).encode()


def _videos(context: StepContext[Any], folder: str, videos: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for video in videos:
        name = Path(video["file"]).stem
        yield (
            f"in={_relative_path(context, video['file'])},stream=video,output={folder}/{name}.mp4,playlist_name={name}.m3u8,"
            f"iframe_playlist_name={name}-iframes.m3u8"
        )


def _audios(context: StepContext[Any], folder: str, audios: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    before: Counter[str] = Counter()
    roles = packaged_roles(audios)
    for number, (audio, role) in enumerate(zip(audios, roles, strict=True), 1):
        language, name = str(audio["language"]), f"audio-{number}"
        before[language] += 1
        spoken = f",language={language}" if language else ""
        label = f"{language or 'audio'}{f' {before[language]}' if before[language] > 1 else ''}"
        yield (
            f"in={_relative_path(context, audio['file'])},stream=audio,output={folder}/{name}.mp4,playlist_name={name}.m3u8,"
            f"hls_group_id=audio,hls_name={label},{role}{spoken}"
        )


def _relative_path(context: StepContext[Any], name: str) -> str:
    """Return the path of a kept file relative to the workspace: the path of the media root may have characters that the packager
    interprets."""
    return os.path.relpath(context.job_file(name), context.workspace.resolve())


def _take_file(context: StepContext[Any], name: str) -> Path:
    """Bring a file that an earlier step kept into this workspace, as a hard link, which copies nothing, if the file system supports
    it."""
    source, path = context.job_file(name), context.workspace / name
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)
    return path


def _in_order(folder: Path) -> list[Path]:
    """List the files in the order in which they are published: each file before those that refer to it."""
    last = {PLAYLIST: 2, MANIFEST: 2}
    return sorted(folder.iterdir(), key=lambda path: (last.get(path.name, path.suffix == ".m3u8"), path.name))


def _write_text(context: StepContext[Any], name: str, text: str) -> Path:
    path = context.workspace / name
    path.write_text(text)
    return path


def packaging(*before: str) -> tuple[Step, ...]:
    """Return the steps after the renditions. Further steps of the workflow may come `before` the package."""
    return (
        Step("thumbnails", make_thumbnails, after=("renditions",)),
        Step(CAPTIONS, find_captions, after=("renditions",)),
        Step("package", package, after=("renditions", "thumbnails", CAPTIONS, *before)),
    )


PACKAGING: Final = packaging()
VOD_PACKAGE: Final = Workflow(
    "vod_package",
    PackageParameters,
    (Step("renditions", make_renditions), *PACKAGING),
    description="Makes renditions of <content_id>.mp4 and packages them for HLS and DASH.",
)
