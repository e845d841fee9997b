"""Random secrets with which webhooks are signed."""

from __future__ import annotations

import os

from domain.webhook import secret as signing


def new_signing_secret() -> str:
    """Return a secret from the operating system's random generator, in the form of the Standard Webhooks specification."""
    return signing.encode_secret(os.urandom(signing.BYTES))
