"""The file `service.json` of a template that is an external service: its address and keys, which only the operator sets."""

from __future__ import annotations

import json
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import Field, StrictStr

from domain.kernel.errors import Malformed
from domain.kernel.json_document import Section, checked
from domain.kernel.token_patterns import MASK, without_tokens
from workers.adapters.provisioners.workdir import TEMPLATE

NAME: Final = "service.json"
_SHORTEST: Final = 4


def name_of_key(infrastructure_key: str) -> str:
    """Return the name of an infrastructure key in paths."""
    return sha256(infrastructure_key.encode()).hexdigest()[:32]


class ServiceUnusable(Exception):
    """Raised when the file is not installed or not valid. The message is one sentence without secrets."""


class Service(Section):
    """The content of the file. `key` is sent to the service. The service signs its callbacks with `callbackSecret`."""

    name: str = ""
    url: StrictStr
    key: StrictStr = Field("", repr=False)
    callback_url: StrictStr = ""
    callback_secret: StrictStr = Field("", repr=False)

    def masked(self, text: str) -> str:
        for secret in (self.key, self.callback_secret):
            if len(secret) >= _SHORTEST:
                text = text.replace(secret, MASK)
        return without_tokens(text)

    @property
    def signing_key(self) -> bytes:
        """The key of the signatures; empty if there is none."""
        try:
            return b64decode(self.callback_secret.removeprefix("whsec_"), validate=True)
        except ValueError:
            return b""


class ServiceFiles:
    """The files of services in `templates`, the operator's folder. Notes below `root` record the keys for which a service was given
    an order: if the file of the service is removed, it can no longer be proved that nothing exists there."""

    def __init__(self, templates: Path, *, root: Path) -> None:
        self._templates = templates
        self._root = root

    def is_service(self, template: str) -> bool:
        return TEMPLATE.fullmatch(template) is not None and (self._templates / template / NAME).is_file()

    def service(self, template: str) -> Service:
        """Read the file of a service. Raises `ServiceUnusable`."""
        if not self.is_service(template):
            raise ServiceUnusable(f"the service {template!r} is not installed")
        try:
            service = checked(Service, (self._templates / template / NAME).read_text(), field=NAME)
        except (Malformed, UnicodeDecodeError) as wrong:
            why = str(wrong) if isinstance(wrong, Malformed) else "it is not text"
            raise ServiceUnusable(f"the file of the service {template!r} is not valid: {why}") from None
        return service.model_copy(update={"name": template})

    def signing_key(self, template: str) -> bytes:
        """Return the key of the signatures; empty if the service does not sign."""
        try:
            return self.service(template).signing_key
        except (ServiceUnusable, OSError):
            return b""

    def was_asked(self, key: str) -> bool:
        return self._note(key).exists()

    def note(self, key: str) -> None:
        if not self.was_asked(key):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._note(key).write_text(json.dumps({"infrastructureKey": key}))

    def forget(self, key: str) -> None:
        self._note(key).unlink(missing_ok=True)

    def _note(self, key: str) -> Path:
        return self._root / f"{name_of_key(key)}.service"
