"""What needs somebody's attention, from the overview of health: docs/reference/api/health.md#attention.

The console, `medialedger status` and every other reader show these findings, so that all say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from pydantic import Field

from api.kernel.wire import Wire
from api.media.health_figures import HealthFigures
from projections.consumers.leases import RELAY
from workers.kernel.media_programs import missing as missing_program

LATE: Final = 300.0
"""Seconds after which deliveries that are due, and jobs that could start, are late."""
_BEHIND: Final = 10_000
_UNSEALED: Final = 600.0
_UNANCHORED: Final = 24 * 3600.0


class AttentionLevel(StrEnum):
    """How urgent a finding is: a fault, or something to look at."""

    FAULT = "fault"
    LOOK = "look"


class Attention(Wire):
    """Something that somebody should look at."""

    level: AttentionLevel = Field(description="fault, or look where nothing is lost yet.")
    about: str = Field(
        description="What it is about: quiet, log, disks, programs, processes, secrets, consumers, events, points, jobs, "
        "deliveries or sessions."
    )
    text: str = Field(description="What is the matter, as a sentence.")
    command: str | None = Field(description="A command of the command line that helps; null where there is none.")
    jobs: str | None = Field(description="The state of the jobs that it is about: failed or queued; null where it is about none.")


def attention(seen: HealthFigures, *, missing: Sequence[str]) -> list[Attention]:
    """Faults first. `missing`: programs for media that the answering machine does not have."""
    found = [*_quiet(seen), *_log(seen), *_machine(seen, missing), *_secrets(seen)]
    if not seen.quiet.quiet:  # while it is, all that follows is to be expected
        found += [*_consumers(seen), *_events(seen), *_jobs(seen), *_deliveries(seen), *_sessions(seen)]
    return sorted(found, key=lambda one: one.level is not AttentionLevel.FAULT)


def _fault(about: str, text: str, command: str | None = None) -> Attention:
    return Attention(level=AttentionLevel.FAULT, about=about, text=text, command=command, jobs=None)


def _look(about: str, text: str, command: str | None = None, *, jobs: str | None = None) -> Attention:
    return Attention(level=AttentionLevel.LOOK, about=about, text=text, command=command, jobs=jobs)


def _quiet(seen: HealthFigures) -> Iterator[Attention]:
    if seen.quiet.quiet:
        reason = "" if seen.quiet.reason is None else f" ({seen.quiet.reason})"
        yield _look("quiet", f"The installation is quiet{reason}: nothing leaves it.", "medialedger quiet off")


def _log(seen: HealthFigures) -> Iterator[Attention]:
    log = seen.log
    if log.bad_position is not None:
        yield _fault("log", f"The log does not fit its hashes from position {log.bad_position} on.", "medialedger audit verify")
    if log.unsealed_seconds > _UNSEALED and log.sealed_at is not None:
        text = f"{log.unsealed_events} events have no signed checkpoint for {_for(log.unsealed_seconds)}."
        yield _look("log", text, "medialedger workers sealer")
    if log.unanchored_seconds > _UNANCHORED:
        text = f"Checkpoints were kept outside of the database last {_for(log.unanchored_seconds)} ago."
        yield _look("log", text, "medialedger audit checkpoint")


def _machine(seen: HealthFigures, missing: Sequence[str]) -> Iterator[Attention]:
    for disk in seen.disks:
        if disk.low:
            yield _fault("disks", f"Too little room on the disk of {disk.name}.", "medialedger doctor")
    for program in missing:
        yield _look("programs", missing_program(program), "medialedger doctor")
    if not seen.processes:
        yield _fault("processes", "No process of the product was seen in the last seconds.", "medialedger up")


def _secrets(seen: HealthFigures) -> Iterator[Attention]:
    if count := seen.unreadable_secrets:
        text = f"{_count(count, 'secret')} {'fits' if count == 1 else 'fit'} no master key of the product, and cannot be decrypted."
        yield _fault("secrets", text, "medialedger doctor")


def _consumers(seen: HealthFigures) -> Iterator[Attention]:
    for one in seen.consumers:
        failing = next((member for member in one.members if member.failing_seconds), None)
        if failing is not None:
            text = f"{one.name} fails on {failing.host} for {_for(failing.failing_seconds or 0.0)}: {failing.fault}"
            yield _fault("consumers", text)
        if one.position is not None and one.held < one.shards and seen.processes:
            role = one.name.split()[0]  # the relay's name has the id of its cluster
            gone = " If its broker is gone for good: medialedger consumers forget." if one.name.startswith(RELAY) else ""
            yield _fault("consumers", f"Nobody runs {one.name}.{gone}", f"medialedger workers {role}")
        if one.parked:
            text = f"{one.name} could not process {_count(one.parked, 'record')}."
            yield _fault("consumers", text, f"medialedger consumers parked {one.name}")
        if (one.lag or 0) > _BEHIND:
            yield _look("consumers", f"{one.name} is {one.lag:,} events behind.")
    reading = {one.name: max((member.reads_log_seconds or 0.0 for member in one.members), default=0.0) for one in seen.consumers}
    names = [name for name, seconds in reading.items() if seconds]
    if names:
        verb, since = "reads" if len(names) == 1 else "read", _for(max(reading.values()))
        yield _look("consumers", f"The broker gives nothing for {since}: {', '.join(names)} {verb} the log instead.")


def _events(seen: HealthFigures) -> Iterator[Attention]:
    for action, count in seen.events_due.items():
        if count:
            verb = "is" if count == 1 else "are"
            yield _look("events", f"{_count(count, 'Event')} {verb} late: the schedule should have done “{action}”.")
    if silent := seen.points.get("not_receiving", 0):
        receive = "receives" if silent == 1 else "receive"
        yield _fault("points", f"{_count(silent, 'publishing point')} of live Events {receive} nothing.")
    if idle := seen.points.get("not_started", 0):
        yield _look("points", f"{_count(idle, 'publishing point')} of live Events {'has' if idle == 1 else 'have'} not started.")

    for lost in seen.lost_recordings:
        yield _fault("points", f"The recording of session {lost.session} at {lost.point} had to make room before it was captured.")


def _jobs(seen: HealthFigures) -> Iterator[Attention]:
    if failed := seen.jobs.states.get("failed", 0):
        text = f"{_count(failed, 'job')} {'has' if failed == 1 else 'have'} failed."
        yield _look("jobs", text, "medialedger jobs list --failed", jobs="failed")
    if seen.jobs.workers == 0 and any(queue.ready for queue in seen.jobs.steps):
        yield _fault("jobs", "Steps of jobs could start, and no process runs them.", "medialedger workers work")
    if seen.jobs.oldest_queued_seconds > LATE:
        text = f"A job has been queued for {_for(seen.jobs.oldest_queued_seconds)}."
        yield _look("jobs", text, "medialedger jobs list --state queued", jobs="queued")


def _deliveries(seen: HealthFigures) -> Iterator[Attention]:
    if seen.deliveries.oldest_seconds > LATE:
        text = f"A delivery has been due for {_for(seen.deliveries.oldest_seconds)}."
        yield _look("deliveries", text, "medialedger webhooks health")


def _sessions(seen: HealthFigures) -> Iterator[Attention]:
    for one in seen.sessions:
        if one.state == "failed" and one.count:
            text = f"{_count(one.count, f'{one.kind} session')} {'has' if one.count == 1 else 'have'} failed."
            yield _fault("sessions", text, "medialedger sessions list")


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def _for(seconds: float) -> str:
    """A length of time in its two largest units."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
