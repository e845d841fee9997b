"""What the end of a run says of one Event."""

from __future__ import annotations

from domain.provision.desired import Provided, end_for
from domain.provision.row import ProvisionRow
from domain.provision.values import ProvisionState
from tests.domain.provision.provisions_given import ENCODER, ORIGIN, in_state


def test_what_a_provisioner_tells_under_the_name_of_a_credential_is_left_out() -> None:
    info = in_state(ProvisionState.PROVISIONING).root
    told = {
        **ORIGIN,
        "rootPassword": "hunter2",
        "tags": {"zone": "a", "apiKey": "hunter2"},
        "disks": [{"secret": "x"}, {"secret": None}],
    }
    assert info is not None
    end = end_for(ProvisionRow.of(info), Provided(resources=[told, ENCODER, {"name": "another", "type": "origin"}]))
    assert end.resources == ({**ORIGIN, "tags": {"zone": "a"}, "disks": [{}, {"secret": None}]}, ENCODER)
