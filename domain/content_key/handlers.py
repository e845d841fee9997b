"""Use cases on content keys: issue them on request, and import them.

The same request always gets the same key. A known key costs one look-up and no append. New keys of a document are issued in one
append, all or nothing. If two processes issue the same key, the log accepts one of them, and the other process looks the key up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from domain.content_key.aggregate import IV_BYTES, KEY_BYTES, ContentKey, KeyMismatch, KidTaken, Purpose
from domain.content_key.commands import IssueContentKey
from domain.content_key.ports import KeyCeiling, KeyLookup, RandomBytes, StoredKey
from domain.kernel.errors import DecryptionFailed, Malformed
from domain.kernel.ids import hashed
from domain.kernel.ports import Executor, Invocation, Plan, Vault

# Ids of content keys, computed from the request: docs/reference/api/key-provider.md#keys. The stream of a key is named by its
# client and kid, so the log accepts only one key for a kid. A kid that the packager leaves to the product is computed from the
# request: the same request finds the same key without a look-up, and so does a request that sends this kid. The parts are hashed
# with their lengths, so different lists of parts never give the same text.


def kid_of(*, client: str, content_id: str, period: str, slot: str) -> UUID:
    """Return the kid of a key that was requested without one. It reveals nothing about the key, which is random."""
    return hashed("kid", client, content_id, period, slot)


def key_of(*, client: str, kid: UUID) -> UUID:
    """Return the key of the aggregate."""
    return hashed("content key", client, kid.hex)


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A request for one key.

    `period` is the key period, "" for none. `kid` is None if the packager leaves it to the product; `slot` then distinguishes
    several such keys of one document. `iv` is the IV that the packager sent. With a `speke_version` the event of a new key also
    records its first use, for `systems`.
    """

    client: str
    content_id: str
    period: str = ""
    kid: UUID | None = None
    slot: str = ""
    iv: bytes | None = None
    systems: tuple[str, ...] = ()
    speke_version: str = ""

    @property
    def purpose(self) -> Purpose:
        kid = self.kid or kid_of(client=self.client, content_id=self.content_id, period=self.period, slot=self.slot)
        return Purpose(self.client, self.content_id, self.period, kid)


@dataclass(frozen=True, slots=True)
class ImportedKey:
    """A key that was made elsewhere."""

    purpose: Purpose
    key: bytes = field(repr=False)
    iv: bytes | None = None


@dataclass(frozen=True, slots=True)
class PlainKey:
    """A key in plain text.

    `iv` is the IV of the request; without one, that of the issued key, which is the first request's or random. `is_new` says that
    this request issued the key. `id` is the key of the aggregate and reveals nothing about the key.
    """

    id: UUID
    kid: UUID
    iv: bytes
    is_new: bool
    key: bytes = field(repr=False)


class ContentKeyHandlers:
    """Use cases on content keys. Keys in plain text are never cached."""

    def __init__(
        self, executor: Executor, keys: KeyLookup, *, vault: Vault, random: RandomBytes, ceiling: KeyCeiling | None = None
    ) -> None:
        """Create the handlers. Without a `ceiling` each client may have any number of keys."""
        self._executor = executor
        self._keys = keys
        self._vault = vault
        self._random = random
        self._ceiling = ceiling

    async def issue(self, requests: Sequence[KeyRequest], *, invocation: Invocation) -> list[PlainKey]:
        """Return the keys, in the order of the requests. Raises `KidTaken` and `TooManyKeys` before any key is issued."""
        purposes = [request.purpose for request in requests]
        ids = _ids(purposes)
        stored = await self._stored(ids, purposes)
        issued: frozenset[UUID] = frozenset()
        if len(stored) < len(set(ids)):
            commands = {
                key: self._issue(key, purpose, request)
                for key, purpose, request in zip(ids, purposes, requests, strict=True)
                if key not in stored
            }
            if self._ceiling is not None:
                for client, count in Counter(command.purpose.client for command in commands.values()).items():
                    await self._ceiling.admit(client, count)
            issued = await self._execute(commands, invocation=invocation)
            stored |= {key: _stored(commands[key]) for key in issued}
            if len(stored) < len(set(ids)):  # another process issued some of them first
                stored = await self._stored(ids, purposes)
        return [
            PlainKey(key, stored[key].kid, request.iv or stored[key].iv, key in issued, self._decrypted(stored[key]))
            for key, request in zip(ids, requests, strict=True)
        ]

    async def import_keys(self, keys: Sequence[ImportedKey], *, invocation: Invocation) -> int:
        """Import keys in one append, and return the number of new ones.

        Raises `KeyMismatch` if a kid has another key. If another process imports a different key for the same kid at the same
        moment, the other keys of this import are kept.
        """
        purposes = [key.purpose for key in keys]
        ids = _ids(purposes)
        stored = await self._stored(ids, purposes)
        self._check_equal(stored, ids, keys)
        commands = {
            key: self._command(key, imported.purpose, key_bytes=imported.key, iv=imported.iv, imported=True)
            for key, imported in zip(ids, keys, strict=True)
            if key not in stored
        }
        if not commands:
            return 0
        issued = await self._execute(commands, invocation=invocation)
        self._check_equal(await self._stored(ids, purposes), ids, keys)
        return len(issued)

    async def _execute(self, commands: Mapping[UUID, IssueContentKey], *, invocation: Invocation) -> frozenset[UUID]:
        """Issue the keys that do not exist yet in one append. Return those whose key comes from its command."""

        async def plan() -> Plan:
            return Plan(list(commands.values()))

        outcome = await self._executor.execute(plan, invocation=invocation.at_any_version())
        pairs = zip(commands.items(), outcome.aggregates, strict=True)
        return frozenset(key for (key, command), content_key in pairs if content_key.sealed_key == command.secret.ref)

    def _issue(self, key: UUID, purpose: Purpose, request: KeyRequest) -> IssueContentKey:
        command = self._command(key, purpose, key_bytes=self._random(KEY_BYTES), iv=request.iv)
        return replace(command, systems=request.systems, speke_version=request.speke_version)

    def _command(
        self, key: UUID, purpose: Purpose, *, key_bytes: bytes, iv: bytes | None, imported: bool = False
    ) -> IssueContentKey:
        secret = self._vault.encrypt(key_bytes.hex(), owner=ContentKey.stream(key))
        return IssueContentKey(key, purpose, iv or self._random(IV_BYTES), secret, imported)

    async def _stored(self, ids: Sequence[UUID], purposes: Sequence[Purpose]) -> dict[UUID, StoredKey]:
        """Return the stored keys among these. Raises `KidTaken` if one belongs to another content id."""
        stored = dict(await self._keys.stored(list(dict.fromkeys(ids))))
        for key, purpose in zip(ids, purposes, strict=True):
            if key in stored and stored[key].content_id != purpose.content_id:
                raise KidTaken(purpose.kid)
        return stored

    def _decrypted(self, stored: StoredKey) -> bytes:
        try:
            return bytes.fromhex(self._vault.decrypt(stored.secret))
        except DecryptionFailed as error:
            raise type(error)(f"the key {stored.kid} of the content {stored.content_id}") from None

    def _check_equal(self, stored: Mapping[UUID, StoredKey], ids: Sequence[UUID], imported: Sequence[ImportedKey]) -> None:
        """Check that each imported key equals the stored key of its kid and every other key imported for it."""
        keys = {key: self._decrypted(stored_key) for key, stored_key in stored.items()}
        for key, imported_key in zip(ids, imported, strict=True):
            if len(imported_key.key) != KEY_BYTES:
                raise Malformed.at("key", f"{KEY_BYTES} bytes are required")
            if keys.setdefault(key, imported_key.key) != imported_key.key:
                raise KeyMismatch(imported_key.purpose.kid)


def _ids(purposes: Sequence[Purpose]) -> list[UUID]:
    return [key_of(client=purpose.client, kid=purpose.kid) for purpose in purposes]


def _stored(command: IssueContentKey) -> StoredKey:
    return StoredKey(command.purpose.content_id, command.purpose.kid, command.iv, command.secret)
