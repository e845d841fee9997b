"""Checks of settings that depend on each other, and the names of their variables."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

PREFIX: Final = "MEDIALEDGER_"
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
CLIENT_VARIABLES: Final = frozenset({"MEDIALEDGER_URL", "MEDIALEDGER_API_KEY", "MEDIALEDGER_CONTEXT"})
"""The variables that say where commands go. They are not settings."""


class SettingsError(Exception):
    """Raised for an invalid setting, with one line that names the variable and its valid values."""


def variable_name(field: str) -> str:
    return PREFIX + field.upper()


def cookie_problem(*, host: str, public_url: str | None) -> str:
    """Return why the cookie of a console login may be sent without `Secure`; empty if it is not, or if only this machine is
    served."""
    if (public_url or "").startswith("https://") or (public_url is None and host in LOOPBACK):
        return ""
    return (
        "the console may be reached without TLS, and its cookie is sent without Secure: put a proxy with TLS in front, and set "
        "MEDIALEDGER_PUBLIC_URL to its https:// address"
    )


def first_error(refusal: ValidationError, arguments: Collection[str]) -> SettingsError:
    """Return the error of the first invalid setting, under the name by which it was given."""
    first = refusal.errors(include_url=False, include_input=False)[0]
    field = str(first["loc"][0])
    name = f"--{field.replace('_', '-')}" if field in arguments else variable_name(field)
    return SettingsError(f"{name} must be {first['ctx']['error']}")


def check_bucket(settings: Any) -> None:
    if (settings.s3_access_key is None) != (settings.s3_secret_key is None):
        missing = "s3_access_key" if settings.s3_access_key is None else "s3_secret_key"
        present = "s3_secret_key" if settings.s3_access_key is None else "s3_access_key"
        raise SettingsError(f"{variable_name(missing)} must be set together with {variable_name(present)}")


def check_kafka(settings: Any) -> None:
    """Raise `SettingsError` if settings are incomplete: a client that lacks some of them would fail only at its first
    connection."""
    sasl = settings.kafka_security_protocol.startswith("SASL_")
    for field in ("kafka_sasl_mechanism", "kafka_username", "kafka_password"):
        if (getattr(settings, field) is not None) != sasl:
            needed = "be set for" if sasl else "stay empty without"
            raise SettingsError(f"{variable_name(field)} must {needed} {variable_name('kafka_security_protocol')}=SASL_…")
    tls = settings.kafka_security_protocol.endswith("SSL")
    for field in ("kafka_ca_file", "kafka_certificate_file", "kafka_key_file"):
        path: Path | None = getattr(settings, field)
        if path is not None and not tls:
            raise SettingsError(
                f"{variable_name(field)} must stay empty without {variable_name('kafka_security_protocol')}=SSL or SASL_SSL"
            )
        if path is not None and not _is_file(path):
            raise SettingsError(f"{variable_name(field)} must be a file; there is none at {path}")


def _is_file(path: Path) -> bool:
    """Return True for a readable file path; False if it cannot be examined."""
    try:
        return path.is_file()
    except OSError:
        return False
