"""Events go on and off the air while a broker is frozen again and again. Nothing of that waits for the broker.

Writes are counted at the publishing points, as in `on_air`, whose figures these are. An Event that waited for the broker would be
late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from faults import on_air
from faults.on_air_faults import FROZEN, Faults
from faults.on_air_verdict import Limits
from faults.stage import Servers

NAME: Final = "on-air-frozen-kafka"
MEANING: Final = f"Events that go on the air while Kafka is frozen for {FROZEN:.0f} s at a time"
LIMITS: Final = Limits(start=FROZEN / 2)
FULL: Final = on_air.Effort(6, (10, 40), Faults(broker_freezes=6))
QUICK: Final = on_air.Effort(3, (6, 15), Faults(broker_freezes=2))
table = on_air.table


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> Sequence[on_air.Result]:
    effort = QUICK if quick else FULL
    result = await on_air.play_scenario(
        folder / NAME, NAME, kafka=True, servers=Servers.ALONE, seed=seed, effort=effort, limits=LIMITS
    )
    tell(on_air.describe(result))
    return [result]
