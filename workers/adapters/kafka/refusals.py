"""The meaning of Kafka's errors: try again, an operator is needed, or the record will never be accepted."""

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
    """Raised when Kafka will not accept a record, however often it is sent."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of Kafka to those of the product."""
    try:
        yield
    except _OF_THE_RECORD as fault:
        raise RecordRefused(f"Kafka does not accept the record: {_text(fault)}") from fault
    except _OF_THE_SET_UP as fault:
        raise OperatorNeeded(f"Kafka refuses: {_text(fault)}; check the settings MEDIALEDGER_KAFKA_… and the broker") from fault
    except KafkaError as fault:
        raise Unavailable(f"Kafka does not answer: {type(fault).__name__}") from fault


def _text(fault: KafkaError) -> str:
    return f"{type(fault).__name__}: {fault}"[:300]
