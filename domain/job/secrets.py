"""The secrets of a job's request: encrypted for the vault, masked everywhere else."""

from __future__ import annotations

from uuid import UUID

from pydantic_core import to_json

from domain.job.aggregate import Job
from domain.job.ports import CheckedJob
from domain.job.values import Semaphore, Submission
from domain.kernel.encryption import EncryptedSecret, SecretRef
from domain.kernel.masking import masked
from domain.kernel.named_callback import NamedCallback
from domain.kernel.ports import Vault


class JobSecrets:
    """Encrypts the secrets of one job. The command that stores the job passes `encrypted` to the vault."""

    def __init__(self, vault: Vault, job: int) -> None:
        self._vault = vault
        self._owner = Job.stream(job)
        self.encrypted: list[EncryptedSecret] = []

    def semaphore(self, url: str, *, shown: str) -> Semaphore:
        """Return a semaphore. `shown` is the URL without user info and query."""
        return Semaphore(url=shown, sealed_url=None if shown == url else self._encrypt(url))

    def callback(self, key: UUID, url: str, *, shown: str) -> NamedCallback:
        """Return a callback. `shown` is the URL without user info and query."""
        return NamedCallback(id=key, url=shown, sealed_url=None if shown == url else self._encrypt(url))

    def submission(self, client: str, checked: CheckedJob, *, owner: str | None = None) -> Submission:
        """Return the part of a request that the event log stores, without its callbacks."""
        shown = masked(checked.parameters)
        return Submission(
            client=client,
            workflow=checked.workflow,
            content_id=checked.content_id,
            parameters=shown,
            tasks=checked.tasks,
            owner=owner,
            sealed_parameters=None if shown == checked.parameters else self._encrypt(to_json(checked.parameters).decode()),
        )

    def _encrypt(self, secret: str) -> SecretRef:
        self.encrypted.append(self._vault.encrypt(secret, owner=self._owner))
        return self.encrypted[-1].ref
