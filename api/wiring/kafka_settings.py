"""The settings of Kafka: what they say together. `settings` are those of the product, which import this module."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.adapters.kafka.connection import KafkaConnection


def connection(settings: Any) -> KafkaConnection | None:
    """None where there is no broker."""
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


def fault(settings: Any, name: Callable[[str], str]) -> str | None:
    """What goes together comes together: a client that misses half of it would fail at its first connection only. `name` gives that
    of a variable."""
    protocol = settings.kafka_security_protocol
    sasl, tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
    for field in ("kafka_sasl_mechanism", "kafka_username", "kafka_password"):
        if (getattr(settings, field) is not None) != sasl:
            needed = "be set for" if sasl else "stay empty without"
            return f"{name(field)} must {needed} {name('kafka_security_protocol')}=SASL_…"
    for field in ("kafka_ca_file", "kafka_certificate_file", "kafka_key_file"):
        path: Path | None = getattr(settings, field)
        if path is not None and not tls:
            return f"{name(field)} must stay empty without {name('kafka_security_protocol')}=SSL or SASL_SSL"
        if path is not None and not path.is_file():
            return f"{name(field)} must be a file; there is none at {path}"
    return None
