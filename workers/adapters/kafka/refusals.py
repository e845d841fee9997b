"""What the errors of Kafka mean: try again, an operator is needed, or this record will never be taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka import errors
from kafka.errors import KafkaError

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import OperatorNeeded

_OF_THE_RECORD: Final = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError, errors.InvalidRecordError)
_OF_THE_SET_UP: Final = (
    errors.AuthorizationError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.KafkaConfigurationError,
    errors.InvalidConfigurationError,
    errors.InvalidReplicationFactorError,
    errors.InvalidPartitionsError,
    errors.InvalidTopicError,
    errors.PolicyViolationError,
    errors.SecurityDisabledError,
    errors.UnsupportedVersionError,
    errors.UnrecognizedBrokerVersion,
)


class RecordRefused(ValueError):
    """A record that Kafka will not take, however often it is sent."""


@contextmanager
def translated() -> Iterator[None]:
    """Errors of Kafka as those of the product."""
    try:
        yield
    except _OF_THE_RECORD as fault:
        raise RecordRefused(f"Kafka does not take the record: {_said(fault)}") from fault
    except _OF_THE_SET_UP as fault:
        raise OperatorNeeded(f"Kafka refuses: {_said(fault)}; check the settings MEDIALEDGER_KAFKA_… and the broker") from fault
    except KafkaError as fault:
        raise Unavailable(f"Kafka does not answer: {type(fault).__name__}") from fault


def _said(fault: KafkaError) -> str:
    return f"{type(fault).__name__}: {fault}"[:300]
