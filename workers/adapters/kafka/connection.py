"""The settings for the connection to Kafka and for the topics of the product."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

BOOTSTRAP_MS: Final = 5000


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """The settings. `bootstrap` lists brokers as host:port, separated by commas. The other fields have Kafka's names for its
    security settings. The password is never shown. `replication_factor` and `min_in_sync_replicas` apply to topics that the relay
    creates; None uses the broker's defaults."""

    bootstrap: str
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    replication_factor: int | None = None
    min_in_sync_replicas: int | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for any client of kafka-python."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap.split(","),
            "bootstrap_timeout_ms": BOOTSTRAP_MS,
            "reconnect_backoff_max_ms": 1000,
            "security_protocol": self.security_protocol,
            "ssl_cafile": _text(self.ca_file),
            "ssl_certfile": _text(self.certificate_file),
            "ssl_keyfile": _text(self.key_file),
        }
        if self.sasl_mechanism is not None:
            settings |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return settings


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
