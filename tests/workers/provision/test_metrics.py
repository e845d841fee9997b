"""The metrics of provisioning."""

from __future__ import annotations

from datetime import timedelta

from prometheus_client import CollectorRegistry

from api.wiring.core import Core
from domain.provision.values import ProvisionState
from projections.provision.queries import ProvisionQueries
from tests.projections.job.jobs_made import present
from tests.support.clock import HandClock
from tests.workers.provision.memory_provisioner import MemoryProvisioner
from tests.workers.provision.provisioned import Provisioning, reconciling
from workers.kernel.metrics import WorkerMetrics


async def test_ends_are_counted_by_state_and_their_seconds_by_deployment(inner: Core) -> None:
    registry, provisioner, provisioning = CollectorRegistry(), MemoryProvisioner(), Provisioning(inner)

    def ends(state: ProvisionState) -> float | None:
        return registry.get_sample_value("medialedger_provision_ends_total", {"state": state.name})

    provisioner.broken.add("encoder-1")
    event = await provisioning.event(await provisioning.profile("origin-1", "encoder-1"))
    async with reconciling(inner, provisioner, metrics=WorkerMetrics(registry)):
        assert ends(ProvisionState.PROVISIONED_PARTIAL) == ends(ProvisionState.TERMINATED) == 0
        await provisioning.provision(event)
        await provisioning.until(event, ProvisionState.PROVISIONED_PARTIAL)
        await provisioning.terminate(event)
        await provisioning.until(event, ProvisionState.TERMINATED)
    assert (ends(ProvisionState.PROVISIONED_PARTIAL), ends(ProvisionState.TERMINATED)) == (1, 1)
    assert registry.get_sample_value("medialedger_provision_seconds_count", {"deployment": "template"}) == 2


async def test_what_waits_is_counted_by_key(inner: Core, clock: HandClock) -> None:
    clock.now = present() - timedelta(hours=2)
    provisioning, queries = Provisioning(inner), ProvisionQueries(inner.database)
    assert await queries.waiting() == (0, 0.0)
    shared = await provisioning.profile("origin-1", key="k", shared=True)
    for event in [await provisioning.event(shared) for _ in range(2)]:
        await provisioning.provision(event)
    clock.now = present()
    await provisioning.provision(await provisioning.event(await provisioning.profile("origin-1")))
    keys, oldest = await queries.waiting()
    assert keys == 2
    assert 7000 < oldest < 9000
