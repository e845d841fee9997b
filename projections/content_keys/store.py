"""The content keys of all clients: the same answer to the same question, for ever. spec/1, and reference/drm.md, c.5.

A known key costs one indexed read of the view together with the vault, shared by all who ask in the same moment, and no append.
Nothing is kept in the clear between requests: reading and opening is what a request costs. Keys that are new are made for a whole
document in one append, all or nothing. Who is first is settled by the log, which takes a stream's first event once: everybody
else then reads what is there. All of it lies in the database (`events`, `content_key_view`, `vault`), so after a restart, and
after a dump was restored, the same rows give the same keys, as long as the master key is at hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from domain.content_key.aggregate import IV_BYTES, KEY_BYTES, ContentKey, KeyDiffers, KidElsewhere, Purpose
from domain.content_key.commands import IssueContentKey
from domain.content_key.identity import key_of, kid_of
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.errors import Malformed
from domain.kernel.sealed import Sealed
from projections.content_keys.answers import AnswerRecorder
from projections.content_keys.queries import of_content
from projections.kernel.arrays import uuids
from projections.kernel.coalesce import Coalesced
from projections.kernel.database import Database
from projections.log.ledger import Ledger
from projections.vault.vault import Vault

_KNOWN = """
SELECT k.id, k.content_id, k.kid, k.iv, v.reference, v.key_id, v.fingerprint, v.nonce, v.box
FROM content_key_view k JOIN vault v ON v.reference = k.sealed_key WHERE k.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class KeyAsked:
    """One key of a request. `period` is the key period, "" for none. `kid` is None where we are to make it; `slot` then tells
    several such keys of one document apart. `iv` is the one that the caller gave, if it did. With a `speke_version`, it is recorded
    with the issue that the key was given out; `systems` are those that it is for."""

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
class KeyBrought:
    """A key that somebody else made and that is to be answered from now on."""

    purpose: Purpose
    key: bytes = field(repr=False)
    iv: bytes | None = None


@dataclass(frozen=True, slots=True)
class KeyGiven:
    """A key in the clear. `iv` is the caller's own where it gave one, else the one that was kept when the key was issued: the first
    caller's, or random. `made`: by this very question. `id` names the key without saying anything of it."""

    id: UUID
    kid: UUID
    iv: bytes
    made: bool
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Held:
    content_id: str
    kid: UUID
    iv: bytes
    sealed: Sealed

    @classmethod
    def of(cls, command: IssueContentKey) -> _Held:
        return cls(command.purpose.content_id, command.purpose.kid, command.iv, command.secret)


class ContentKeys:
    """Gives keys out, takes keys in, and tells what was given. `start` and `stop` are for what is recorded behind the answers."""

    def __init__(self, database: Database, *, ledger: Ledger, vault: Vault, clock: Clock) -> None:
        self._database = database
        self._ledger = ledger
        self._vault = vault
        self._held = Coalesced[UUID, _Held](self._ask)
        self._answers = AnswerRecorder(ledger, clock)
        self.answered = self._answers.add
        self.start = self._answers.start
        self.stop = self._answers.stop
        self.of_content = partial(of_content, database)

    async def give(self, asked: Sequence[KeyAsked], *, cause: Cause) -> list[KeyGiven]:
        """The keys, in the order asked. Raises `KidElsewhere` before anything is made."""
        purposes = [one.purpose for one in asked]
        ids = [key_of(client=purpose.client, kid=purpose.kid) for purpose in purposes]
        held = await self._found(ids, purposes)
        made: frozenset[UUID] = frozenset()
        if len(held) < len(set(ids)):
            new = {
                key: self._first(key, purpose, one)
                for key, purpose, one in zip(ids, purposes, asked, strict=True)
                if key not in held
            }
            made = await self._carry_out(new, cause=cause)
            held |= {key: _Held.of(new[key]) for key in made}
            if len(held) < len(set(ids)):  # somebody else was first
                held = await self._found(ids, purposes)
        return [
            KeyGiven(key, held[key].kid, one.iv or held[key].iv, key in made, self._opened(held[key]))
            for key, one in zip(ids, asked, strict=True)
        ]

    async def take_in(self, brought: Sequence[KeyBrought], *, cause: Cause) -> int:
        """Keep keys that somebody else made, in one append; how many were new. Raises `KeyDiffers` for a kid that has another
        key. Where that key came in at the same moment from elsewhere, the rest of this has been kept."""
        purposes = [one.purpose for one in brought]
        ids = [key_of(client=purpose.client, kid=purpose.kid) for purpose in purposes]
        held = await self._found(ids, purposes)
        self._must_equal(held, ids, brought)
        new = {
            key: self._issue(key, one.purpose, key_bytes=one.key, iv=one.iv, imported=True)
            for key, one in zip(ids, brought, strict=True)
            if key not in held
        }
        if not new:
            return 0
        made = await self._carry_out(new, cause=cause)
        self._must_equal(await self._found(ids, purposes), ids, brought)
        return len(made)

    async def _carry_out(self, new: Mapping[UUID, IssueContentKey], *, cause: Cause) -> frozenset[UUID]:
        """Issue in one append what is not there by now; those of which the key is the one that came with the command."""

        async def wanted() -> Sequence[IssueContentKey]:
            return list(new.values())

        roots: list[ContentKey] = await self._ledger.execute_all(wanted, cause=cause)
        return frozenset(
            key for (key, command), root in zip(new.items(), roots, strict=True) if root.sealed_key == command.secret.ref
        )

    def _first(self, key: UUID, purpose: Purpose, asked: KeyAsked) -> IssueContentKey:
        command = self._issue(key, purpose, key_bytes=os.urandom(KEY_BYTES), iv=asked.iv)
        return replace(command, systems=asked.systems, speke_version=asked.speke_version)

    def _issue(self, key: UUID, purpose: Purpose, *, key_bytes: bytes, iv: bytes | None, imported: bool = False) -> IssueContentKey:
        secret = self._vault.seal(key_bytes.hex(), owner=ContentKey.stream(key))
        return IssueContentKey(key, purpose, iv or os.urandom(IV_BYTES), secret, imported)

    async def _found(self, ids: Iterable[UUID], purposes: Sequence[Purpose]) -> dict[UUID, _Held]:
        """What is there of these, each of the content that it is asked for."""
        found = await self._held.many(list(dict.fromkeys(ids)))
        for key, purpose in zip(ids, purposes, strict=True):
            if key in found and found[key].content_id != purpose.content_id:
                raise KidElsewhere(purpose.kid)
        return found

    async def _ask(self, ids: Sequence[UUID]) -> dict[UUID, _Held]:
        """A box opens for the owner that it was sealed for, so a row that was made to point at another's box opens nothing."""
        rows = await self._database.rows(_KNOWN, (uuids(ids),))
        return {
            key: _Held(content_id, kid, bytes.fromhex(iv), Sealed(reference, ContentKey.stream(key), *box))
            for key, content_id, kid, iv, reference, *box in rows
        }

    def _opened(self, held: _Held) -> bytes:
        return bytes.fromhex(self._vault.open(held.sealed))

    def _must_equal(self, held: Mapping[UUID, _Held], ids: Sequence[UUID], brought: Sequence[KeyBrought]) -> None:
        """Each key brought is the one that its kid has, or the only one that is brought for it."""
        keys = {key: self._opened(one) for key, one in held.items()}
        for key, one in zip(ids, brought, strict=True):
            if len(one.key) != KEY_BYTES:
                raise Malformed.at("key", f"{KEY_BYTES} bytes are required")
            if keys.setdefault(key, one.key) != one.key:
                raise KeyDiffers(one.purpose.kid)
