"""The id of the Kafka cluster. It never changes; a cluster that lost its data gets a new one."""

from __future__ import annotations

from typing import Final

from kafka import KafkaAdminClient

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import OperatorNeeded
from workers.adapters.kafka.client_thread import ClientThread
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.refusals import translate_errors

_CHECK: Final = (
    "if the brokers run, check MEDIALEDGER_KAFKA_SECURITY_PROTOCOL, MEDIALEDGER_KAFKA_USERNAME, MEDIALEDGER_KAFKA_PASSWORD and the "
    "certificates"
)


async def cluster_id(connection: KafkaConnection) -> str:
    """Return the id of the cluster. Raises `Unavailable` when no broker answers."""
    thread = ClientThread("kafka cluster")
    try:
        with translate_errors():
            return await thread.run(lambda: _ask(connection))
    except Unavailable as fault:
        if connection.security_protocol == "PLAINTEXT" or isinstance(fault, OperatorNeeded):
            raise
        # kafka-python also ends its first contact with a timeout when authentication fails.
        raise Unavailable(f"{fault.what}; {_CHECK}") from fault
    finally:
        thread.end()


def _ask(connection: KafkaConnection) -> str:
    admin = KafkaAdminClient(**connection.arguments, request_timeout_ms=5000)
    try:
        return str(admin.describe_cluster()["cluster_id"])
    finally:
        admin.close()
