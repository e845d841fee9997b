"""The settings of Kafka for its clients. `settings` are those of the product; their module imports this one."""

from __future__ import annotations

from typing import Any, Final

from workers.adapters.kafka.connection import KafkaConnection

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def connection(settings: Any) -> KafkaConnection | None:
    """Return the connection; None if there is no broker."""
    if settings.kafka_bootstrap_servers is None:
        return None
    return KafkaConnection(
        settings.kafka_bootstrap_servers,
        security_protocol=settings.kafka_security_protocol,
        sasl_mechanism=settings.kafka_sasl_mechanism,
        username=settings.kafka_username,
        password=settings.kafka_password.get_secret_value() if settings.kafka_password is not None else None,
        ca_file=settings.kafka_ca_file,
        certificate_file=settings.kafka_certificate_file,
        key_file=settings.kafka_key_file,
        replication_factor=settings.kafka_replication_factor,
        min_in_sync_replicas=settings.kafka_min_in_sync_replicas,
    )
