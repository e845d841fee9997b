"""The behaviour of every provisioner, in few tests: each run of Terraform costs a second."""

from __future__ import annotations

import asyncio

from domain.provision.desired import Provided
from tests.contract.provisioner.stages import Stage
from tests.workers.provision.site import A, B, Notes, names
from workers.ports.provisioners import Halt, Provisioner

NEVER = Halt()
LARGE = {**A, "size": "large"}


async def provide(stage: Stage, key: str, *resources: dict[str, str], allow_updates: bool = False) -> Provided:
    wanted = stage.desired(key, *resources, allow_updates=allow_updates)
    async with asyncio.timeout(120):
        return await stage.provisioner.provide(wanted, progress=Notes(), halt=NEVER)


def sizes(provided: Provided) -> list[str]:
    return [resource.get("size", "small") for resource in provided.resources]


async def test_what_is_wanted_is_up_and_goes(stage: Stage) -> None:
    made = await provide(stage, "k", A)
    assert (names(made), made.reason, made.exists, made.left) == (["a"], "", True, False)
    assert made.resources[0].items() >= A.items(), "with all that the profile says of it"
    gone = await provide(stage, "k")
    assert (gone.resources, gone.left, gone.exists, gone.reason) == ([], False, False, "")


async def test_nothing_was_ever_made(stage: Stage) -> None:
    gone = await provide(stage, "k")
    assert (list(gone.resources), gone.left, gone.exists, gone.reason) == ([], False, False, "")


async def test_what_exists_changes_only_with_leave_and_a_part_goes(making: Stage) -> None:
    made = await provide(making, "k", A)
    assert str(made.resources[0]["ipAddress"]).startswith("198.51.100.")
    unchanged = await provide(making, "k", LARGE, B)
    assert (names(unchanged), making.world.up("k"), unchanged.reason) == (["a", "b"], ["a", "b"], "")
    changed = await provide(making, "k", LARGE, B, allow_updates=True)
    assert (sizes(changed), making.world.up("k")) == (["large", "small"], ["a", "b"])
    part = await provide(making, "k", B)
    assert (names(part), part.left, making.world.up("k")) == (["b"], False, ["b"])


async def test_what_does_not_come_up_comes_up_later_and_what_does_not_go_is_left(making: Stage) -> None:
    making.world.break_resource("b")
    provided = await provide(making, "k", A, B)
    assert (names(provided), making.world.up("k"), provided.exists) == (["a"], ["a"], True)
    assert provided.reason
    making.world.mend("b")
    assert names(await provide(making, "k", A, B)) == ["a", "b"]
    making.world.break_resource("a")
    gone = await provide(making, "k")
    assert (gone.left, gone.exists, making.world.up("k")) == (True, True, ["a"])
    assert gone.reason
    making.world.mend("a")
    assert (await provide(making, "k")).exists is False


async def halted(making: Stage, key: str) -> Provided:
    """A run in the middle: `a` is up, `b` is not."""
    halt = Halt()
    making.world.hold("b")
    running = asyncio.create_task(making.provisioner.provide(making.desired(key, A, B), progress=Notes(), halt=halt))
    await making.world.reached(key, up="a")
    halt.set()
    async with asyncio.timeout(60):
        provided = await running
    assert (provided.reason, provided.exists) == ("it was interrupted", True)
    return provided


async def test_what_is_cancelled_in_the_middle_goes(making: Stage) -> None:
    await halted(making, "k")
    wanted = making.desired("k")
    making.world.free("b")
    async with asyncio.timeout(60):
        gone = await making.another.provide(wanted, progress=Notes(), halt=NEVER)
    assert (gone.left, gone.exists, making.world.up("k")) == (False, False, [])


async def test_two_keys_side_by_side_and_a_successor_that_goes_on(making: Stage) -> None:
    async def through(provisioner: Provisioner, key: str) -> Provided:
        return await provisioner.provide(making.desired(key, A, B), progress=Notes(), halt=NEVER)

    await halted(making, "k")
    making.world.free("b")
    async with asyncio.timeout(120):
        both = await asyncio.gather(through(making.another, "k"), through(making.provisioner, "l"))
    assert [names(provided) for provided in both] == [["a", "b"], ["a", "b"]]
    assert [making.world.up(key) for key in ("k", "l")] == [["a", "b"], ["a", "b"]]
    assert (await provide(making, "k")).exists is False
    assert [making.world.up(key) for key in ("k", "l")] == [[], ["a", "b"]]
