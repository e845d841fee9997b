"""The figures of the overview of health: docs/reference/api/health.md#overview."""

from __future__ import annotations

from pydantic import Field

from api.kernel.wire import Instant, Wire
from api.media.consumer import Consumer
from api.media.quiet import Quiet


class DatabaseState(Wire):
    """The database."""

    version: str = Field(description="The version of PostgreSQL.")
    bytes: int = Field(description="The size of the database.")


class LogState(Wire):
    """The log."""

    position: int = Field(description="The position of the last event; 0 in an empty log.")
    recorded_at: Instant | None = Field(description="When it was recorded; null in an empty log.")
    verified_position: int | None = Field(description="The end of what was verified in the background; null before its first turn.")
    verified_at: Instant | None = Field(description="When it last read; null before its first turn.")
    bad_position: int | None = Field(description="The first position that does not fit its hash; null where there is none.")
    sealed_at: Instant | None = Field(description="When the last checkpoint was signed; null where there is none.")
    unsealed_events: int = Field(description="Events that no checkpoint has yet.")
    unsealed_seconds: float = Field(description="How long ago the first of these was recorded.")
    unanchored_seconds: float = Field(
        description="How long ago the first checkpoint was signed that only the database has; 0 where there is no other place."
    )


class DiskState(Wire):
    """The disk of a directory of the answering machine."""

    name: str = Field(description="`home` or `media`.")
    free_bytes: int = Field(description="Free space.")
    low: bool = Field(description="Whether that is too little to go on with.")


class ProcessState(Wire):
    """A process of the product that was seen in the last seconds."""

    build: int = Field(description="The number of its build.")
    host: str = Field(description="Its machine.")
    pid: int = Field(description="Its process id there.")
    started_at: Instant = Field(description="When it started.")


class StepQueue(Wire):
    """A queue of steps of jobs."""

    queue: str = Field(description="Its name.")
    ready: int = Field(description="Steps that could run.")
    running: int = Field(description="Steps that run.")


class JobsState(Wire):
    """The job engine."""

    states: dict[str, int] = Field(description="How many jobs have not ended, by state, and how many have failed.")
    oldest_queued_seconds: float = Field(description="For how long the first queued job has waited.")
    steps: list[StepQueue] = Field(description="The queues of steps.")
    workers: int = Field(description="Processes that run steps.")


class DeliveriesState(Wire):
    """Deliveries to webhooks and callbacks."""

    pending: int = Field(description="Deliveries that have not ended, counted up to 10,000.")
    due: int = Field(description="Those of them that should have been sent.")
    in_flight: int = Field(description="Those that are being sent.")
    oldest_seconds: float = Field(description="How long ago the first of the due ones became due.")


class SessionCount(Wire):
    """Sessions of one kind in one state."""

    kind: str = Field(description="What runs, such as an encoder.")
    state: str = Field(description="Its state, such as `running` or `failed`.")
    count: int = Field(description="How many.")


class LostRecordingState(Wire):
    """A recording at the built-in origin that had to make room before an Event was captured."""

    point: str = Field(description="The name of the publishing point.")
    session: int = Field(description="The number of the session.")
    lost_at: Instant = Field(description="When it was removed.")


class HealthFigures(Wire):
    """The state of the whole installation. Figures come from the database; disks are those of the answering machine."""

    at: Instant = Field(description="When this was read; it may be a second old.")
    quiet: Quiet = Field(description="Whether nothing leaves the installation.")
    database: DatabaseState = Field(description="Version and size of the database.")
    log: LogState = Field(description="The end of the log, and how far it is verified and sealed.")
    disks: list[DiskState] = Field(description="The disks of the answering machine.")
    processes: list[ProcessState] = Field(description="The processes of the product, on all machines.")
    consumers: list[Consumer] = Field(description="Consumers and worker roles with leases.")
    jobs: JobsState = Field(description="Jobs and steps that have not ended.")
    deliveries: DeliveriesState = Field(description="Deliveries that have not ended.")
    events_due: dict[str, int] = Field(description="Events that the schedule should have started or stopped, by action.")
    points: dict[str, int] = Field(description="Publishing points of live Events by what was last heard of them.")
    sessions: list[SessionCount] = Field(description="Sessions by kind and state.")
    unreadable_secrets: int = Field(
        description="Secrets that were encrypted with a master key that the product does not have any more."
    )
    lost_recordings: list[LostRecordingState] = Field(
        description="Recordings at the built-in origin that had to make room in the last day, before they were captured."
    )
