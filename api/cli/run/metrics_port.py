"""The port of `medialedger workers` for Prometheus and probes, if MEDIALEDGER_METRICS_PORT is set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from api.cli.run.sockets import bound_sockets
from api.operations.metrics import Snapshot
from api.wiring.origin import base_url
from api.wiring.settings import Settings
from projections.kernel.background_task import start_task


@asynccontextmanager
async def metrics_port(settings: Settings, read: Callable[[], Awaitable[Snapshot]]) -> AsyncIterator[int | None]:
    """Serve the result of `read` during the block. Yield the port; None if the setting is not set."""
    if settings.metrics_port is None:
        yield None
        return
    from api.cli.run.serving import Server, server_config
    from api.wiring.worker_metrics import build

    with bound_sockets(settings.host, port=settings.metrics_port, setting="MEDIALEDGER_METRICS_PORT") as (sockets,):
        app, connections = build(settings, read)
        server = Server(server_config(app, connections, seconds=1), listening=lambda: None)
        serving = start_task(server.serve(sockets=sockets), what="port for metrics")
        try:
            yield sockets[0].getsockname()[1]
        finally:
            server.drain()
            await serving


def metrics_summary(settings: Settings, port: int | None) -> Sequence[tuple[str, str]]:
    """Return the line about metrics for the person who started the process."""
    return [] if port is None else [("metrics", f"{base_url(settings.host, port=port)}/metrics")]
