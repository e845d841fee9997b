"""The step that measures the quality of a film and judges it by a profile, and the workflow `quality_check`, which does only that.

It decodes the whole film once. The results are written to `quality.json`, and the Event of the content is notified of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.job.values import Severity
from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.media_paths import RelativePath
from workers.job.workflow import JobParameters, Step, Workflow
from workers.job.workflows.content_file import probe
from workers.job.workflows.encode import ANY_PICTURE, encode
from workers.media.file import ProbedFile, probe_at
from workers.media.filters import FilteredTrack, FormedTracks, fitted, sound_form
from workers.media.quality import (
    FRAMES,
    LARGEST_PROFILE,
    PROFILES,
    Profile,
    Report,
    Verdict,
    judge,
    picture_filters,
    read_picture,
    read_sound,
    sound_filters,
)
from workers.media.source import SourceFile, source

QUALITY: Final = "quality"
REPORT: Final = "quality.json"
MOST_REASONS: Final = 20
"""The largest number of reasons that an Event keeps; the report has all."""
ProfileName = Annotated[
    RelativePath,
    Field(
        description=f"{', '.join(PROFILES)}, or the path of a JSON file with a profile below the media root.", examples=["ebu-r128"]
    ),
]


class Quality(BaseModel):
    """The check of quality that a client requests."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    profile: ProfileName = "ebu-r128"
    keep_private: bool | None = Field(
        None, description="Whether a film that fails stays private; by default as the profile specifies."
    )


class QualityCheck(JobParameters):
    """The parameters of `quality_check`.

    `file` is below the folder of the content; without it the film of the content is checked, and its Event is notified.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"content_id": "match-17", "file": "match.mp4", "profile": "a85"}]})

    file: RelativePath | None = Field(
        None, description="Path of the file below the folder of the content; by default the film, <content_id>.mp4."
    )
    profile: ProfileName = "ebu-r128"


def profile_of(context: StepContext[Any], requested: Quality) -> Profile:
    """Return the profile. A profile that does not exist or is invalid fails the step for good, with the reason."""
    profile = PROFILES.get(requested.profile) or _read_profile(context, requested.profile)
    return profile if requested.keep_private is None else profile.model_copy(update={"keep_private": requested.keep_private})


def _read_profile(context: StepContext[Any], name: str) -> Profile:
    path = context.path(name)
    if not path.is_file():
        builtin = ", ".join(PROFILES)
        raise StepFailed(f"There is no quality profile {name}: use {builtin}, or a file below the media root.", final=True)
    try:
        with path.open("rb") as opened:
            text = opened.read(LARGEST_PROFILE + 1)
        if len(text) > LARGEST_PROFILE:
            raise StepFailed(f"The quality profile {name} has more than {LARGEST_PROFILE} bytes.", final=True)
        return Profile.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise StepFailed(f"The quality profile {name} is not valid: {where}: {first['msg']}.", final=True) from None


def measure(context: StepContext[Any], file: ProbedFile, *, profile: Profile) -> Report:
    """Decode the film and judge it. The verdict and the reasons are written to the log of the job."""
    media = source(file)
    errors = _decode(context, media)
    folder = context.workspace
    shown = read_picture(folder, colours=media.picture.colours)
    if shown is None:
        raise StepFailed(f"{file.name} shows no picture.", final=True)
    sounds = [
        read_sound(folder, track, end=shown.duration, language=sound.language, channels=sound.channels)
        for track, sound in enumerate(media.sounds, 1)
    ]
    report = judge(file.name, profile, picture=shown, sounds=sounds, decoding_errors=errors)
    context.log(_summary(report), Severity.INFO if report.verdict is Verdict.PASS else Severity.WARN)
    for reason in report.reasons:
        context.log(f"{reason.verdict.upper()} {reason.check}: {reason.message}", Severity.WARN)
    return report


def _decode(context: StepContext[Any], media: SourceFile) -> int:
    """Count the errors that the decoders find. A source may change in its middle, so it is brought to one form first."""
    picture = media.picture
    shown = FilteredTrack(f"0:{picture.index}", f"{fitted(picture.width, picture.height)},format=yuv420p", True)
    formed = FormedTracks(
        (shown, *(FilteredTrack(f"0:{sound.index}", sound_form(sound.channels), False) for sound in media.sounds))
    )
    frames = (
        "-map",
        "[frames]",
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "1/1000",
        "-c:v",
        "rawvideo",
        "-f",
        "framecrc",
        FRAMES,
    )
    levels = ("-map", "[levels]", "-f", "null", "-")
    tracks = range(1, len(media.sounds) + 1)
    heard = [option for track in tracks for option in ("-map", f"[sound{track}]", "-f", "null", "-")]
    sounds = (f"[{formed.label(track)}]{sound_filters(track)}[sound{track}]" for track in tracks)
    graph = ("-filter_complex", ";".join((picture_filters(formed.label(0)), *sounds)))
    read = (*ANY_PICTURE, *media.file.input(), *formed.options(), *graph)
    ended = encode(context, media.file, *read, *frames, *levels, *heard, lasts=media.lasts)
    return sum(1 for line in ended.errors.splitlines() if line.strip())


def _summary(report: Report) -> str:
    heard = ", ".join(
        f"track {sound.track} {'silent' if sound.integrated is None else f'{sound.integrated:.1f} LUFS'}"
        + ("" if sound.true_peak is None else f" {sound.true_peak:.1f} dBTP")
        for sound in report.sounds
    )
    picture = report.picture
    seen = f"{picture.duration:.1f} s, black {len(picture.black)}, still {len(picture.freeze)}, gaps {len(picture.missing)}"
    return f"Quality of {report.file} by {report.profile.name}: {report.verdict}. {seen}{'; ' if heard else ''}{heard}."


def noted_by_event(context: StepContext[Any], report: Report) -> dict[str, Any]:
    """Return the part of a report that the Event keeps."""
    sounds = [sound.model_dump(exclude={"silence", "momentary", "short_term"}) for sound in report.sounds]
    reasons = [reason.model_dump(mode="json") for reason in report.reasons[:MOST_REASONS]]
    return {
        "job": context.job.id,
        "profile": report.profile.name,
        "verdict": report.verdict.value,
        "keep_private": report.profile.keep_private,
        "reasons": reasons,
        "sounds": sounds,
        "duration": report.picture.duration,
    }


def write_report(context: StepContext[Any], report: Report) -> None:
    (context.workspace / REPORT).write_text(report.model_dump_json(indent=1))


def check(context: StepContext[QualityCheck]) -> StepResult:
    parameters, content_id = context.parameters, context.job.content_id
    profile = profile_of(context, Quality(profile=parameters.profile))
    report = measure(context, probe(context, parameters.file or f"{content_id}.mp4"), profile=profile)
    write_report(context, report)
    context.publish(context.workspace / REPORT, REPORT if parameters.file is None else f"{parameters.file}.{REPORT}")
    noted = (
        {"quality_check": noted_by_event(context, report)}
        if parameters.file is None
        else {QUALITY: noted_by_event(context, report)}
    )
    return StepResult(message=_summary(report), metadata=noted)


def measure_film(context: StepContext[Any], film: str) -> StepResult:
    """Measure the film that an earlier step kept under this name, if the job requests a check."""
    requested: Quality | None = context.parameters.quality
    if requested is None:
        return StepResult(message="No quality check was requested", metadata={})
    profile = profile_of(context, requested)
    name = f"{context.job.content_id}.mp4"
    report = measure(context, probe_at(context, context.job_file(film), name=name), profile=profile)
    write_report(context, report)
    context.keep(context.workspace / REPORT, REPORT)
    return StepResult(message=_summary(report), metadata={QUALITY: noted_by_event(context, report)})


QUALITY_CHECK: Final = Workflow(
    "quality_check",
    QualityCheck,
    (Step("check", check),),
    description="Measures loudness, true peak, black, freeze, silence and more of a film, and judges it by a profile.",
)
