"""A loser costs itself, not its batch: it is refused with its reason, and the others are written in one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from domain.kernel.aggregate import Claim
from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, LinkBroken
from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed, IdempotencyRecord
from projections.kernel.database.database import Database
from projections.log.append import Appender
from projections.log.statement import LinkRow, WriteSet
from tests.projections.log.conftest import Writing
from tests.projections.log.helpers import appenders, event, log_locked, logged, rows, until, whole, write_of


async def outcomes(appender: Appender, *appends: WriteSet) -> list[int | BaseException]:
    return await asyncio.gather(*(appender.append(append) for append in appends), return_exceptions=True)


def name(value: str, owner: str) -> Claim:
    return Claim("tag.name", value, owner)


def keyed(key: str) -> IdempotencyRecord:
    return IdempotencyRecord(IdempotencyKey("playout", key, b"fingerprint", 201, ""), (), {})


async def test_all_others_of_a_batch_are_written_in_one_commit(appender: Appender, writing: Writing) -> None:
    await appender.append(WriteSet([event("tag:1")], claims=[name("football", "tag:1")], now_linkable=["tag:1"]))
    await appender.append(WriteSet([event("event:1")], linked=[LinkRow("event:1", "tag:1")], idempotency=keyed("k1")))
    losers = {
        3: (write_of("tag:1"), ConcurrencyConflict),
        7: (write_of("tag:2", claims=[name("football", "tag:2")]), ClaimTaken),
        11: (WriteSet([event("event:2")], idempotency=keyed("k1")), IdempotencyKeyUsed),
        15: (WriteSet([event("event:3")], linked=[LinkRow("event:3", "tag:9")]), LinkBroken),
        19: (WriteSet([event("tag:1", 2)], no_longer_linkable=["tag:1"]), LinkBroken),
    }
    batch = [losers[number][0] if number in losers else write_of(f"test:{number}") for number in range(40)]
    results = await outcomes(appender, *batch)
    assert {number: type(each) for number, each in enumerate(results) if not isinstance(each, int)} == {
        number: refusal for number, (_, refusal) in losers.items()
    }
    assert [each for each in results if isinstance(each, int)] == list(range(3, 38))
    assert writing.ends == [1, 2, 37]
    assert rows(writing.url, "SELECT first_position, last_position FROM commits ORDER BY 1 DESC LIMIT 1") == [(3, 37)]
    assert whole(writing.url) == 37


async def test_a_dependent_command_of_a_batch_is_judged_after_the_other(appender: Appender, writing: Writing) -> None:
    """The claim of the third is free only if the first is refused, and it is; the fourth then finds it taken."""
    await appender.append(write_of("tag:1"))
    batch = [write_of(stream, claims=[name("ski", stream)]) for stream in ("tag:1", "tag:2", "tag:3")]
    results = await outcomes(appender, write_of("test:0"), *batch)
    assert [type(each) for each in results] == [int, ConcurrencyConflict, int, ClaimTaken]
    assert rows(writing.url, "SELECT owner FROM unique_claims") == [("tag:2",)]


@dataclass
class Serial:
    """A naive model of the same rules, which processes one command after the other."""

    versions: dict[str, int] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    links: set[tuple[str, str]] = field(default_factory=set)

    def command(self, dice: Random, stream: str) -> WriteSet:
        """Return a command of a process that has read the stream, or (one in six) has read it too early."""
        version = self.versions.get(stream, 0)
        stale = version > 0 and dice.random() < 1 / 6
        append = WriteSet([event(stream, version if stale else version + 1)])
        owned = [value for value, owner in self.claims.items() if owner == stream]
        if owned and dice.random() < 0.5:
            append.releases.append(name(owned[0], stream))
        if dice.random() < 0.4:
            append.claims.append(name(dice.choice([v for v in "abcd" if v not in owned] or ["e"]), stream))
        if dice.random() < 0.3:
            append.idempotency = keyed(str(dice.randrange(40)))
        if stream.startswith("room") and dice.random() < 0.6:
            (append.no_longer_linkable if stream in self.targets else append.now_linkable).append(stream)
        if stream.startswith("event"):
            held_links = [target for owner, target in self.links if owner == stream]
            if held_links and dice.random() < 0.5:
                append.unlinked.append(LinkRow(stream, held_links[0]))
            target = dice.choice(["room:0", "room:1", "room:2"])
            if target not in held_links:
                append.linked.append(LinkRow(stream, target))
        return append

    def expected(self, append: WriteSet) -> type:
        """Return the type of the command's outcome, and update the state if it is written."""
        of = append.events[0]
        claims = {claim.value for claim in append.claims}
        freed = {claim.value for claim in append.releases}
        key = append.idempotency.of.key if append.idempotency else ""
        links = self.links - {(link.owner, link.target) for link in append.unlinked}
        gone = set(append.no_longer_linkable)
        if self.versions.get(of.stream, 0) >= of.version:
            return ConcurrencyConflict
        if key in self.keys:
            return IdempotencyKeyUsed
        if any(value in self.claims and value not in freed for value in claims):
            return ClaimTaken
        if any(link.target not in self.targets for link in append.linked) or any(target in gone for _, target in links):
            return LinkBroken
        self.versions[of.stream] = of.version
        self.keys |= {key} - {""}
        self.claims = {value: owner for value, owner in self.claims.items() if value not in freed} | dict.fromkeys(
            claims, of.stream
        )
        self.targets = (self.targets | set(append.now_linkable)) - gone
        self.links = links | {(link.owner, link.target) for link in append.linked}
        return int


@pytest.mark.parametrize("seed", range(4))
async def test_a_batch_comes_out_like_one_command_after_the_other(appender: Appender, writing: Writing, seed: int) -> None:
    dice, serial, seen = Random(seed), Serial(), dict[str, int]()
    streams = [f"{kind}:{number}" for kind in ("event", "tag") for number in range(5)] + [f"room:{n}" for n in range(3)]
    await appender.append(write_of("test:loser"))
    for _ in range(60):
        with pytest.raises(ConcurrencyConflict):
            await appender.append(write_of("test:loser"))  # from here on losers are looked for before each append
        batch = [serial.command(dice, stream) for stream in dice.sample(streams, dice.randrange(2, 13))]
        wanted = [serial.expected(append) for append in batch]
        results = await outcomes(appender, *batch)
        assert [type(each) for each in results] == wanted
        for each in wanted:
            seen[each.__name__] = seen.get(each.__name__, 0) + 1
    assert min(seen.values()) > 5, f"every outcome happened: {seen}"
    assert len(seen) == 5
    assert dict(rows(writing.url, "SELECT value, owner FROM unique_claims")) == serial.claims
    assert {(owner, target) for owner, target in rows(writing.url, "SELECT owner, target FROM links")} == serial.links
    assert whole(writing.url) == seen["int"] + 1


async def waiting_at_the_lock(url: str, *turns: tuple[Appender, Sequence[WriteSet]]) -> list[list[int | BaseException]]:
    """Each appender has taken the snapshot of its statement and waits for the lock, in this order, before the first goes on."""
    async with log_locked(url):
        tasks = []
        for number, (appender, appends) in enumerate(turns, 1):
            tasks.append(asyncio.create_task(outcomes(appender, *appends)))
            await until(lambda number=number: len(appenders(url, waiting=True)) == number)  # type: ignore[misc]
    return await asyncio.gather(*tasks)


@pytest.fixture
async def second(writing: Writing, migrated: tuple[str, str | None]) -> object:
    """The appender of another process."""
    appender = Appender(Database(writing.url, role=migrated[1]))
    await appender.start()
    yield appender
    await appender.stop()


@pytest.mark.parametrize("wary", [False, True], ids=["refused", "sifted"])
async def test_a_race_lost_after_the_question_is_found(appender: Appender, second: Appender, writing: Writing, wary: bool) -> None:
    """The other process's commit is not there yet when we ask, and is there when we have the lock."""
    await appender.append(write_of("test:old"))
    if wary:
        await outcomes(second, write_of("test:old"))
    mine = [
        write_of("test:a"),
        write_of("test:raced"),
        write_of("test:b", claims=[name("ski", "test:b")]),
        write_of("test:c"),
    ]
    theirs, ours = await waiting_at_the_lock(
        writing.url, (appender, [WriteSet([event("test:raced")], claims=[name("ski", "test:raced")])]), (second, mine)
    )
    assert theirs == [2]
    assert [type(each) for each in ours] == [int, ConcurrencyConflict, ClaimTaken, int]
    assert [stream for _, stream, _ in logged(writing.url)] == ["test:old", "test:raced", "test:a", "test:c"]
    assert whole(writing.url) == 4


async def test_a_claim_freed_while_we_wait_for_the_lock_is_taken(appender: Appender, second: Appender, writing: Writing) -> None:
    await appender.append(write_of("tag:1", claims=[name("ski", "tag:1")]))
    freed, taken = await waiting_at_the_lock(
        writing.url,
        (appender, [write_of("tag:1", 2, releases=[name("ski", "tag:1")])]),
        (second, [write_of("tag:2", claims=[name("ski", "tag:2")]), write_of("test:a")]),
    )
    assert (freed, taken) == ([2], [3, 4])
    assert rows(writing.url, "SELECT owner FROM unique_claims") == [("tag:2",)]


async def test_a_link_to_a_record_that_is_deleted_during_the_wait_for_its_lock_is_refused(
    appender: Appender, second: Appender, writing: Writing
) -> None:
    await appender.append(WriteSet([event("room:1")], now_linkable=["room:1"]))
    optional = WriteSet([event("event:2")], linked=[LinkRow("event:2", "room:1", required=False)])
    deleted, linked = await waiting_at_the_lock(
        writing.url,
        (appender, [WriteSet([event("room:1", 2)], no_longer_linkable=["room:1"])]),
        (second, [WriteSet([event("event:1")], linked=[LinkRow("event:1", "room:1")]), optional, write_of("test:a")]),
    )
    assert deleted == [2]
    assert [type(each) for each in linked] == [LinkBroken, int, int]
    assert rows(writing.url, "SELECT owner FROM links") == []
    assert whole(writing.url) == 4
