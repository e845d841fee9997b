"""The judge of live publications finds each kind of fault, and none where there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faults.pushes_verdict import AFTER_STOP, SILENT, Found, Kind, Stop, Taken, judged

FINE = Found(
    media=[
        Taken(1.0, "a", 7),
        Taken(1.1, "b", 8),
        Taken(2.0, "a", 9),
        Taken(2.2, "a", 7),
        Taken(5.0, "a", 9),
        Taken(30.0, "a", 11),
    ],
    stops=[Stop("a", 4.0, again=29.0), Stop("b", 2.0)],
    silent=[("a kill", 9.0)],
    states=[("a", "InProgress", "InProgress")],
)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert not judged(FINE).counts
    assert (FINE.sessions, FINE.late) == (4, 1.0)


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (replace(FINE, media=[*FINE.media, Taken(31.0, "a", 9)]), Kind.TOGETHER),
        (replace(FINE, media=[*FINE.media, Taken(2.1 + AFTER_STOP, "b", 8)]), Kind.LATE),
        (replace(FINE, silent=[("a kill", SILENT + 1)]), Kind.SILENT),
        (replace(FINE, states=[("a", "FailedPublication", "InProgress")]), Kind.UNEXPECTED),
        (replace(FINE, children=[12]), Kind.CHILDREN),
        (replace(FINE, secrets={"Kafka": 1}), Kind.SECRETS),
    ],
)
def test_each_kind_is_found(found: Found, kind: Kind) -> None:
    assert judged(found).counts == {kind: 1}
