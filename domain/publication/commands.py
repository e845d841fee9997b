"""Commands of publications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.destination.targets import Target
from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import NotFound, PlanOutdated
from domain.publication.aggregate import Publication
from domain.publication.values import PublicationKind, PublicationState, PublicationText


@dataclass(frozen=True)
class _PublicationCommand(Command[Publication]):
    key: UUID

    def kind(self) -> type[Publication]:
        return Publication


@dataclass(frozen=True, kw_only=True)
class SchedulePublication(_PublicationCommand):
    """Schedule a publication. `job` publishes it, and is accepted in the same append; without a job it fails with `fault` at
    once."""

    publication: PublicationKind
    content_id: str
    destination_id: UUID
    target: Target
    transaction_id: UUID
    client: str
    text: PublicationText
    audio_input_id: str | None = None
    job: int | None = None
    fault: tuple[PublicationState, str] | None = None
    sealed: Sequence[EncryptedSecret] = field(default=())

    @property
    def creates(self) -> bool:
        return True

    def decide(self, root: Publication | None, *, at: datetime) -> Publication:
        if root is not None:  # a key is made once, so this is a repeat of the same command
            return root
        made = Publication.schedule(
            self.key,
            at,
            kind=self.publication,
            content_id=self.content_id,
            destination_id=self.destination_id,
            target=self.target,
            transaction_id=self.transaction_id,
            client=self.client,
            text=self.text,
            audio_input_id=self.audio_input_id,
        )
        if self.job is not None:
            made.process(at, self.job)
        if self.fault is not None:
            made.fail(at, *self.fault)
        return made


@dataclass(frozen=True, kw_only=True)
class CompletePublication(_PublicationCommand):
    """Record that the job has ended."""

    job: int
    job_version: int
    details: dict[str, Any]

    def act(self, root: Publication, *, at: datetime) -> None:
        root.complete(at, self.job, job_version=self.job_version, details=self.details)


@dataclass(frozen=True, kw_only=True)
class FailPublicationJob(_PublicationCommand):
    """Record that the job has failed or was cancelled."""

    job: int
    job_version: int
    state: PublicationState
    reason: str

    def act(self, root: Publication, *, at: datetime) -> None:
        root.fail_job(at, self.job, job_version=self.job_version, state=self.state, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class RestartPublication(_PublicationCommand):
    """Record that the job continues after its end, or that it repeats the job `rerun_of`."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Publication, *, at: datetime) -> None:
        if self.rerun_of is None:
            root.resume(at, self.job, job_version=self.job_version)
        else:
            root.rerun(at, self.job, job_version=self.job_version, rerun_of=self.rerun_of)


@dataclass(frozen=True, kw_only=True)
class GoOnWithPublication(_PublicationCommand):
    """Let a client resume the job, or repeat it by `job`, in the same append. `job_version` is the version of the job
    afterwards."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Publication, *, at: datetime) -> None:
        root.go_on(at, self.job, job_version=self.job_version, rerun_of=self.rerun_of)


@dataclass(frozen=True)
class ShowPublication(_PublicationCommand):
    """Record that the target has made the content public, or private."""

    published: bool

    def act(self, root: Publication, *, at: datetime) -> None:
        root.show(at, self.published)


@dataclass(frozen=True, kw_only=True)
class AmendPublication(_PublicationCommand):
    """Change the text. `still` is the text that the command was made from. `refusal` is the target's reason for refusing the new
    text."""

    text: PublicationText
    still: PublicationText
    refusal: str | None = None
    sealed: Sequence[EncryptedSecret] = field(default=())

    def act(self, root: Publication, *, at: datetime) -> None:
        if root.text != self.still:
            raise PlanOutdated(root.KIND, root.key)
        root.amend(at, self.text)
        if self.refusal is not None:
            root.fail(at, PublicationState.FailedPublication, self.refusal)


@dataclass(frozen=True, kw_only=True)
class WithdrawPublication(_PublicationCommand):
    """Withdraw a publication; `running_job` is cancelled in the same append. `looked_up` says that the plan has found the
    publication, so if it no longer exists, the plan must be made again."""

    hard: bool
    running_job: int | None
    looked_up: bool = False

    def act(self, root: Publication, *, at: datetime) -> None:
        try:
            root.withdraw(at, hard=self.hard, running_job=self.running_job)
        except NotFound:
            if self.looked_up:
                raise PlanOutdated(root.KIND, root.key) from None
            raise


@dataclass(frozen=True)
class ClearTarget(_PublicationCommand):
    """Record that nothing of the publication remains at its target."""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.clear_target(at)


@dataclass(frozen=True)
class ReadPublication(_PublicationCommand):
    """Change nothing, so that the outcome has the publication as it is."""

    def act(self, root: Publication, *, at: datetime) -> None:
        return None


@dataclass(frozen=True)
class StartPublication(_PublicationCommand):
    """Start a live publication. `details` is the target's description of what it has made for the live stream."""

    details: dict[str, Any] | None
    served_by: UUID | None = None

    def act(self, root: Publication, *, at: datetime) -> None:
        root.start(at, self.details, served_by=self.served_by)


@dataclass(frozen=True)
class AwaitPublicationStart(_PublicationCommand):
    """Start the publication when its Event goes live."""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.await_start(at)


@dataclass(frozen=True)
class FailPublicationStart(_PublicationCommand):
    state: PublicationState
    reason: str

    def act(self, root: Publication, *, at: datetime) -> None:
        root.fail_start(at, self.state, self.reason)


@dataclass(frozen=True, kw_only=True)
class RecordArrival(_PublicationCommand):
    """Record that the push of this run has reached the target."""

    run: int
    details: dict[str, Any]

    def act(self, root: Publication, *, at: datetime) -> None:
        root.arrive(at, self.run, details=self.details)


@dataclass(frozen=True, kw_only=True)
class FailPush(_PublicationCommand):
    """Record that the push of this run is given up."""

    run: int
    state: PublicationState
    reason: str

    def act(self, root: Publication, *, at: datetime) -> None:
        root.fail_push(at, self.run, state=self.state, reason=self.reason)


@dataclass(frozen=True)
class StopPublication(_PublicationCommand):
    reason: str = ""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.stop(at, self.reason)


@dataclass(frozen=True)
class RecreatePublication(_PublicationCommand):
    """Recreate a publication. `closing` is the error of notifying the target of the end of the previous stream, or empty; None
    means that the target was not notified."""

    closing: str | None = None

    def act(self, root: Publication, *, at: datetime) -> None:
        root.recreate(at, self.closing)


@dataclass(frozen=True)
class CloseTarget(_PublicationCommand):
    """Record that the target knows of the end of the live stream; with `fault` it does not, and notifying it is given up."""

    fault: str = ""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.close_target(at, self.fault)
