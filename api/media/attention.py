"""Findings that need an operator's attention, from the overview of health: docs/reference/api/health.md#attention.

The console, `medialedger status` and other readers all show these findings.
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
"""Seconds after which due deliveries, and jobs that could start, count as late."""
_BEHIND: Final = 10_000
_UNSEALED: Final = 600.0
_UNANCHORED: Final = 24 * 3600.0


class AttentionLevel(StrEnum):
    """The urgency of a finding: a fault, or a warning to look at."""

    FAULT = "fault"
    LOOK = "look"


class Attention(Wire):
    """A finding that needs an operator's attention."""

    level: AttentionLevel = Field(description="fault, or look if nothing is lost yet.")
    about: str = Field(
        description="The subject: quiet, log, disks, programs, processes, secrets, consumers, events, points, jobs, "
        "deliveries or sessions."
    )
    text: str = Field(description="The finding, as a sentence.")
    command: str | None = Field(description="A helpful command of the command line; null if there is none.")
    jobs: str | None = Field(description="The state of the jobs concerned: failed or queued; null if it does not concern jobs.")


def attention(figures: HealthFigures, *, missing: Sequence[str]) -> list[Attention]:
    """Return the findings, faults first. `missing` lists the programs for media that the answering machine does not have."""
    findings = [*_quiet(figures), *_log(figures), *_machine(figures, missing), *_secrets(figures)]
    if not figures.quiet.quiet:  # the findings that follow are expected while the installation is quiet
        findings += [*_consumers(figures), *_events(figures), *_jobs(figures), *_deliveries(figures), *_sessions(figures)]
    return sorted(findings, key=lambda finding: finding.level is not AttentionLevel.FAULT)


def _fault(about: str, text: str, command: str | None = None) -> Attention:
    return Attention(level=AttentionLevel.FAULT, about=about, text=text, command=command, jobs=None)


def _look(about: str, text: str, command: str | None = None, *, jobs: str | None = None) -> Attention:
    return Attention(level=AttentionLevel.LOOK, about=about, text=text, command=command, jobs=jobs)


def _quiet(figures: HealthFigures) -> Iterator[Attention]:
    if figures.quiet.quiet:
        reason = "" if figures.quiet.reason is None else f" ({figures.quiet.reason})"
        yield _look("quiet", f"The installation is quiet{reason}: it sends nothing to other systems.", "medialedger quiet off")


def _log(figures: HealthFigures) -> Iterator[Attention]:
    log = figures.log
    if log.bad_position is not None:
        yield _fault(
            "log", f"The log is damaged from position {log.bad_position} on: its hashes do not match.", "medialedger audit verify"
        )
    if log.unsealed_seconds > _UNSEALED and log.sealed_at is not None:
        text = f"{log.unsealed_events} events have had no signed checkpoint for {_for(log.unsealed_seconds)}."
        yield _look("log", text, "medialedger workers sealer")
    if log.unanchored_seconds > _UNANCHORED:
        text = f"No checkpoint has been stored outside the database for {_for(log.unanchored_seconds)}."
        yield _look("log", text, "medialedger audit checkpoint")


def _machine(figures: HealthFigures, missing: Sequence[str]) -> Iterator[Attention]:
    for disk in figures.disks:
        if disk.low:
            yield _fault("disks", f"There is too little space on the disk of {disk.name}.", "medialedger doctor")
    for program in missing:
        yield _look("programs", missing_program(program), "medialedger doctor")
    if not figures.processes:
        yield _fault("processes", "No process of the product has been active in the last seconds.", "medialedger up")


def _secrets(figures: HealthFigures) -> Iterator[Attention]:
    if count := figures.unreadable_secrets:
        text = f"{_count(count, 'secret')} cannot be decrypted: no master key of the product matches."
        yield _fault("secrets", text, "medialedger doctor")


def _consumers(figures: HealthFigures) -> Iterator[Attention]:
    for consumer in figures.consumers:
        failing = next((member for member in consumer.members if member.failing_seconds), None)
        if failing is not None:
            text = f"{consumer.name} has failed on {failing.host} for {_for(failing.failing_seconds or 0.0)}: {failing.fault}"
            yield _fault("consumers", text)
        if consumer.position is not None and consumer.held < consumer.shards and figures.processes:
            role = consumer.name.split()[0]  # the relay's name contains the id of its cluster
            gone = (
                " If its broker was removed permanently: medialedger consumers forget." if consumer.name.startswith(RELAY) else ""
            )
            yield _fault("consumers", f"No process runs {consumer.name}.{gone}", f"medialedger workers {role}")
        if consumer.parked:
            text = f"{consumer.name} could not process {_count(consumer.parked, 'record')}."
            yield _fault("consumers", text, f"medialedger consumers parked {consumer.name}")
        if (consumer.lag or 0) > _BEHIND:
            yield _look("consumers", f"{consumer.name} is {consumer.lag:,} events behind.")
    reading = {
        consumer.name: max((member.reads_log_seconds or 0.0 for member in consumer.members), default=0.0)
        for consumer in figures.consumers
    }
    names = [name for name, seconds in reading.items() if seconds]
    if names:
        verb, since = "reads" if len(names) == 1 else "read", _for(max(reading.values()))
        yield _look("consumers", f"The broker has been unavailable for {since}: {', '.join(names)} {verb} the log instead.")


def _events(figures: HealthFigures) -> Iterator[Attention]:
    for action, count in figures.events_due.items():
        if count:
            verb = "is" if count == 1 else "are"
            yield _look("events", f"{_count(count, 'Event')} {verb} late for the scheduled action “{action}”.")
    if count := figures.overlapping_events:
        verb = "starts" if count == 1 else "start"
        text = f"{_count(count, 'Event')} {verb} within a day while another Event uses the same channel."
        yield _look("events", text, "medialedger events list")
    if silent := figures.points.get("not_receiving", 0):
        receive = "receives" if silent == 1 else "receive"
        yield _fault("points", f"{_count(silent, 'publishing point')} of live Events {receive} nothing.")
    if idle := figures.points.get("not_started", 0):
        yield _look("points", f"{_count(idle, 'publishing point')} of live Events {'has' if idle == 1 else 'have'} not started.")

    for lost in figures.lost_recordings:
        yield _fault(
            "points",
            f"The recording of session {lost.session} at {lost.point} was removed for lack of space before it was captured.",
        )


def _jobs(figures: HealthFigures) -> Iterator[Attention]:
    if failed := figures.jobs.states.get("failed", 0):
        text = f"{_count(failed, 'job')} {'has' if failed == 1 else 'have'} failed."
        yield _look("jobs", text, "medialedger jobs list --failed", jobs="failed")
    if figures.jobs.workers == 0 and any(queue.ready for queue in figures.jobs.steps):
        yield _fault("jobs", "Steps of jobs are ready, but no process runs them.", "medialedger workers work")
    if figures.jobs.oldest_queued_seconds > LATE:
        text = f"A job has been queued for {_for(figures.jobs.oldest_queued_seconds)}."
        yield _look("jobs", text, "medialedger jobs list --state queued", jobs="queued")


def _deliveries(figures: HealthFigures) -> Iterator[Attention]:
    if figures.deliveries.oldest_seconds > LATE:
        text = f"A delivery has been due for {_for(figures.deliveries.oldest_seconds)}."
        yield _look("deliveries", text, "medialedger webhooks health")


def _sessions(figures: HealthFigures) -> Iterator[Attention]:
    for session in figures.sessions:
        if session.state == "failed" and session.count:
            text = f"{_count(session.count, f'{session.kind} session')} {'has' if session.count == 1 else 'have'} failed."
            yield _fault("sessions", text, "medialedger sessions list")


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def _for(seconds: float) -> str:
    """Format a duration in its two largest units."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
