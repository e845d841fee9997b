"""The id of the Kafka cluster. It never changes; a cluster that lost its data gets a new one."""

from __future__ import annotations

import asyncio

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from domain.kernel.errors import Unavailable


async def cluster_id(bootstrap: str) -> str:
    """The id of the cluster. Raises `Unavailable` when no broker answers."""
    try:
        return await asyncio.to_thread(_ask, bootstrap.split(","))
    except KafkaError as fault:
        raise Unavailable(f"Kafka does not answer: {type(fault).__name__}") from fault


def _ask(bootstrap: list[str]) -> str:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=5000)
    try:
        return str(admin.describe_cluster()["cluster_id"])
    finally:
        admin.close()
