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
            kind=self.publication,
            content_id=self.content_id,
            destination_id=self.destination_id,
            target=self.target,
            transaction_id=self.transaction_id,
            client=self.client,
            text=self.text,
            audio_input_id=self.audio_input_id,
            at=at,
        )
        if self.job is not None:
            made.process(self.job, at=at)
        if self.fault is not None:
            made.fail(*self.fault, at=at)
        return made


@dataclass(frozen=True, kw_only=True)
class CompletePublication(_PublicationCommand):
    """Record that the job has ended."""

    job: int
    job_version: int
    details: dict[str, Any]

    def act(self, root: Publication, *, at: datetime) -> None:
        root.complete(self.job, job_version=self.job_version, details=self.details, at=at)


@dataclass(frozen=True, kw_only=True)
class FailPublicationJob(_PublicationCommand):
    """Record that the job has failed or was cancelled."""

    job: int
    job_version: int
    state: PublicationState
    reason: str

    def act(self, root: Publication, *, at: datetime) -> None:
        root.fail_job(self.job, job_version=self.job_version, state=self.state, reason=self.reason, at=at)


@dataclass(frozen=True, kw_only=True)
class RestartPublication(_PublicationCommand):
    """Record that the job continues after its end, or that it repeats the job `rerun_of`."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Publication, *, at: datetime) -> None:
        if self.rerun_of is None:
            root.resume(self.job, job_version=self.job_version, at=at)
        else:
            root.rerun(self.job, job_version=self.job_version, rerun_of=self.rerun_of, at=at)


@dataclass(frozen=True, kw_only=True)
class GoOnWithPublication(_PublicationCommand):
    """Let a client resume the job, or repeat it by `job`, in the same append. `job_version` is the version of the job
    afterwards."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Publication, *, at: datetime) -> None:
        root.go_on(self.job, job_version=self.job_version, rerun_of=self.rerun_of, at=at)


@dataclass(frozen=True)
class ShowPublication(_PublicationCommand):
    """Record that the target has made the content public, or private."""

    published: bool

    def act(self, root: Publication, *, at: datetime) -> None:
        root.show(self.published, at=at)


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
        root.amend(self.text, at=at)
        if self.refusal is not None:
            root.fail(PublicationState.FailedPublication, self.refusal, at=at)


@dataclass(frozen=True, kw_only=True)
class WithdrawPublication(_PublicationCommand):
    """Withdraw a publication; `running_job` is cancelled in the same append. `looked_up` says that the plan has found the
    publication, so if it no longer exists, the plan must be made again."""

    hard: bool
    running_job: int | None
    looked_up: bool = False

    def act(self, root: Publication, *, at: datetime) -> None:
        try:
            root.withdraw(hard=self.hard, running_job=self.running_job, at=at)
        except NotFound:
            if self.looked_up:
                raise PlanOutdated(root.KIND, root.key) from None
            raise


@dataclass(frozen=True)
class ClearTarget(_PublicationCommand):
    """Record that nothing of the publication remains at its target."""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.clear_target(at=at)


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
        root.start(self.details, served_by=self.served_by, at=at)


@dataclass(frozen=True)
class AwaitPublicationStart(_PublicationCommand):
    """Start the publication when its Event goes live."""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.await_start(at=at)


@dataclass(frozen=True)
class FailPublicationStart(_PublicationCommand):
    state: PublicationState
    reason: str

    def act(self, root: Publication, *, at: datetime) -> None:
        root.fail_start(self.state, self.reason, at=at)


@dataclass(frozen=True, kw_only=True)
class RecordArrival(_PublicationCommand):
    """Record that the push of this run has reached the target."""

    run: int
    details: dict[str, Any]

    def act(self, root: Publication, *, at: datetime) -> None:
        root.arrive(self.run, details=self.details, at=at)


@dataclass(frozen=True, kw_only=True)
class FailPush(_PublicationCommand):
    """Record that the push of this run is given up."""

    run: int
    state: PublicationState
    reason: str

    def act(self, root: Publication, *, at: datetime) -> None:
        root.fail_push(self.run, state=self.state, reason=self.reason, at=at)


@dataclass(frozen=True)
class StopPublication(_PublicationCommand):
    reason: str = ""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.stop(self.reason, at=at)


@dataclass(frozen=True)
class RecreatePublication(_PublicationCommand):
    """Recreate a publication. `closing` is the error of notifying the target of the end of the previous stream, or empty; None
    means that the target was not notified."""

    closing: str | None = None

    def act(self, root: Publication, *, at: datetime) -> None:
        root.recreate(self.closing, at=at)


@dataclass(frozen=True)
class CloseTarget(_PublicationCommand):
    """Record that the target knows of the end of the live stream; with `fault` it does not, and notifying it is given up."""

    fault: str = ""

    def act(self, root: Publication, *, at: datetime) -> None:
        root.close_target(self.fault, at=at)
