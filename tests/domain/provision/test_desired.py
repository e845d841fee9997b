"""The desired state of a key, and the end of a run for one Event."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.provision import events
from domain.provision.desired import Provided, desired, end_for
from domain.provision.row import ProvisionRow
from domain.provision.values import ProvisionState
from tests.domain.provision.provisions_given import (
    ENCODER,
    ORIGIN,
    an_info,
    ending,
    failed,
    in_state,
    provisioned,
    requested,
    terminated,
)
from tests.domain.scenario import THEN, Fact, fact


def test_what_a_provisioner_tells_under_the_name_of_a_credential_is_left_out() -> None:
    info = in_state(ProvisionState.PROVISIONING).root
    reported = {
        **ORIGIN,
        "rootPassword": "hunter2",
        "tags": {"zone": "a", "apiKey": "hunter2"},
        "disks": [{"secret": "x"}, {"secret": None}],
    }
    assert info is not None
    end = end_for(ProvisionRow.of(info), Provided(resources=[reported, ENCODER, {"name": "another", "type": "origin"}]))
    assert end.resources == ({**ORIGIN, "tags": {"zone": "a"}, "disks": [{}, {"secret": None}]}, ENCODER)


LATER = THEN + timedelta(seconds=9)
UP_LATER = fact(events.Provisioned, run=1, resources=(ORIGIN,), partial=True, provisioned_at=LATER, reason="")


@pytest.mark.parametrize(
    ("since", "made"),
    [
        ((requested(), ending(2)), False),
        ((requested(), failed(), requested(2), ending(3)), False),
        ((requested(), provisioned(), ending(2)), True),
        ((requested(), UP_LATER, fact(events.Reset, run=2, release=True)), True),
        ((requested(), fact(events.ProvisionFailed, run=1, reason="no", left=True, provisioned_at=LATER), ending(2)), True),
        ((requested(), provisioned(), requested(2, requested_at=LATER), ending(3)), True),
        ((requested(), provisioned(), ending(2), terminated(2), requested(3), ending(4)), False),
    ],
    ids=["cancelled at once", "made nothing before", "made", "reset", "made a part", "asked for again", "another life"],
)
def test_what_a_run_has_told_of_is_somewhere(since: tuple[Fact, ...], made: bool) -> None:
    info = an_info(*since).root
    assert info is not None
    wanted = desired([ProvisionRow.of(info)])
    assert wanted is not None
    assert wanted.made is made
