"""Use cases on clients: register, change roles, issue and revoke API keys, and change DRM settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol

from domain.client.aggregate import Client, NewKey
from domain.client.commands import ConfigureClientDrm, RegisterClient
from domain.client.names import FIRST
from domain.kernel.command import Command
from domain.kernel.errors import ClaimTaken, Conflict
from domain.kernel.ports import Executor, Invocation, Outcome


class AdminLookup(Protocol):
    """Tells whether another admin exists. Adapter: `ClientDirectory`."""

    def admin_lock(self) -> AbstractAsyncContextManager[None]:
        """Return a lock across all processes, which is held while a command depends on `other_admins`."""
        ...

    async def other_admins(self, name: str) -> bool:
        """Return True if another client with the role admin, except that of the demo, has a key that does not expire."""
        ...

    def invalidate(self) -> None:
        """Drop cached clients, which must be loaded again after a change."""
        ...


API_KEY = "key"
"""The name of a new API key in the secrets of an outcome."""


@dataclass(frozen=True, slots=True)
class PlainApiKey:
    """A new API key in plain text. Only its hash is stored, so it can be shown once."""

    key_id: str
    text: str = field(repr=False)

    def hashed(self) -> NewKey:
        return NewKey(self.key_id, sha256(self.text.encode()).hexdigest())


class ClientHandlers:
    """Use cases on clients. The cached clients of this process are invalidated after each change."""

    def __init__(self, executor: Executor, admins: AdminLookup) -> None:
        self._executor = executor
        self._admins = admins

    async def register(
        self, name: str, roles: Sequence[str], *, key: PlainApiKey, trust_actor: bool = False, invocation: Invocation
    ) -> Outcome[Client]:
        founding = name == FIRST and not await self._admins.other_admins(name)
        command = RegisterClient(name, tuple(roles), key.hashed(), trust_actor, founding)
        try:
            outcome = await self._execute(command, invocation)
        except ClaimTaken:
            raise Conflict(
                f"a client has the name {name} or one that looks like it: case, 0 and O, and 1, I and L are not distinguished"
            ) from None
        return replace(outcome, secrets={API_KEY: key.text})

    async def issue_key(
        self, name: str, *, key: PlainApiKey, expire_others_after: int | None = None, invocation: Invocation
    ) -> Outcome[Client]:
        """Issue a key, which becomes the last one of the client."""
        outcome = await self._execute(
            Client.issue_key.on(name, key.hashed(), expire_others_after=expire_others_after),
            invocation,
        )
        return replace(outcome, secrets={API_KEY: key.text})

    async def change(
        self, name: str, roles: Sequence[str] | None, *, trust_actor: bool | None = None, invocation: Invocation
    ) -> Outcome[Client]:
        """Change the roles and the trust in reported end users. None leaves a value unchanged."""
        async with self._admins.admin_lock():
            others = await self._admins.other_admins(name)
            command = Client.change.on(name, None if roles is None else tuple(roles), other_admins=others, trust_actor=trust_actor)
            return await self._execute(command, invocation)

    async def revoke_key(self, name: str, key_id: str, *, invocation: Invocation) -> Outcome[Client]:
        async with self._admins.admin_lock():
            command = Client.revoke_key.on(name, key_id, other_admins=await self._admins.other_admins(name))
            return await self._execute(command, invocation)

    async def delete(self, name: str, *, invocation: Invocation) -> Outcome[Client]:
        async with self._admins.admin_lock():
            return await self._execute(Client.delete.on(name, other_admins=await self._admins.other_admins(name)), invocation)

    async def configure_drm(self, name: str, changes: Mapping[str, Any], *, invocation: Invocation) -> Outcome[Client]:
        """Change DRM settings. A setting that `changes` lacks stays; None sets its default."""
        return await self._execute(ConfigureClientDrm(name, changes), invocation)

    async def _execute(self, command: Command[Client], invocation: Invocation) -> Outcome[Client]:
        outcome = await self._executor.execute(command, invocation=invocation)
        self._admins.invalidate()
        return outcome
