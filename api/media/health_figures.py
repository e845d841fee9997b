"""The figures of the overview of health: docs/reference/api/health.md#overview."""

from __future__ import annotations

from pydantic import Field

from api.kernel.wire import Instant, Wire
from api.media.consumer import Consumer
from api.media.quiet import Quiet


class DatabaseState(Wire):
    """The version and size of the database."""

    version: str = Field(description="The version of PostgreSQL.")
    bytes: int = Field(description="The size of the database.")


class LogState(Wire):
    """The end of the log, and the progress of its verification and checkpoints."""

    position: int = Field(description="The position of the last event; 0 in an empty log.")
    recorded_at: Instant | None = Field(description="The time when it was recorded; null in an empty log.")
    verified_position: int | None = Field(description="The last position verified in the background; null before the first run.")
    verified_at: Instant | None = Field(description="The time of the last verification; null before the first run.")
    bad_position: int | None = Field(description="The first position whose hash does not match; null if there is none.")
    sealed_at: Instant | None = Field(description="The time when the last checkpoint was signed; null if there is none.")
    unsealed_events: int = Field(description="Events that no checkpoint includes yet.")
    unsealed_seconds: float = Field(description="Age of the oldest of these events.")
    unanchored_seconds: float = Field(
        description="Age of the oldest checkpoint that is only in the database; 0 if there is no other place for checkpoints."
    )


class DiskState(Wire):
    """The disk of a directory of the answering machine."""

    name: str = Field(description="`home` or `media`.")
    free_bytes: int = Field(description="Free space.")
    low: bool = Field(description="True if the free space is too low.")


class ProcessState(Wire):
    """A process of the product that was active in the last seconds."""

    build: int = Field(description="The number of its build.")
    host: str = Field(description="The machine of the process.")
    pid: int = Field(description="The id of the process on its machine.")
    started_at: Instant = Field(description="The time when it started.")


class StepQueue(Wire):
    """A queue of steps of jobs."""

    queue: str = Field(description="The name of the queue.")
    ready: int = Field(description="Ready steps.")
    running: int = Field(description="Running steps.")


class JobsState(Wire):
    """The state of the job engine."""

    states: dict[str, int] = Field(description="Number of jobs that have not ended, by state, and of failed jobs.")
    oldest_queued_seconds: float = Field(description="Seconds that the oldest queued job has waited.")
    steps: list[StepQueue] = Field(description="The queues of steps.")
    workers: int = Field(description="Processes that run steps.")


class DeliveriesState(Wire):
    """Deliveries to webhooks and callbacks."""

    pending: int = Field(description="Deliveries that have not ended, counted up to 10,000.")
    due: int = Field(description="Pending deliveries that should have been sent.")
    in_flight: int = Field(description="Deliveries that are being sent.")
    oldest_seconds: float = Field(description="Seconds since the oldest due delivery became due.")


class SessionCount(Wire):
    """Sessions of one kind in one state."""

    kind: str = Field(description="The kind of session, such as an encoder.")
    state: str = Field(description="The state, such as `running` or `failed`.")
    count: int = Field(description="Number of sessions.")


class LostRecordingState(Wire):
    """A recording at the built-in origin that was removed for lack of space before an Event was captured."""

    point: str = Field(description="The name of the publishing point.")
    session: int = Field(description="The number of the session.")
    lost_at: Instant = Field(description="The time when it was removed.")


class HealthFigures(Wire):
    """The state of the whole installation. Figures come from the database; disks belong to the answering machine."""

    at: Instant = Field(description="The time of the reading, which may be a second old.")
    quiet: Quiet = Field(description="Quiet state with its reason and the time of its last change.")
    database: DatabaseState = Field(description="Version and size of the database.")
    log: LogState = Field(description="The end of the log, and the progress of its verification and sealing.")
    disks: list[DiskState] = Field(description="The disks of the answering machine.")
    processes: list[ProcessState] = Field(description="The processes of the product, on all machines.")
    consumers: list[Consumer] = Field(description="Consumers and worker roles with leases.")
    jobs: JobsState = Field(description="Jobs and steps that have not ended.")
    deliveries: DeliveriesState = Field(description="Deliveries that have not ended.")
    events_due: dict[str, int] = Field(description="Events that the schedule should have started or stopped, by action.")
    overlapping_events: int = Field(
        description="Events that the schedule starts within a day while another Event is scheduled or live on their channel. "
        "At most 1,000 are counted."
    )
    points: dict[str, int] = Field(description="Publishing points of live Events by their last reported state.")
    sessions: list[SessionCount] = Field(description="Sessions by kind and state.")
    unreadable_secrets: int = Field(description="Secrets encrypted with a master key that the product no longer has.")
    lost_recordings: list[LostRecordingState] = Field(
        description="Recordings at the built-in origin that were removed for lack of space in the last day, before they were "
        "captured."
    )
