"""The destination of a command: a given address, a context, or the product of this home. See ADR 0076."""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from api.cli import shell
from api.cli.remote.http_api import HttpApi
from api.cli.remote.rest_api import RestApi
from api.cli.shell import CONTEXT, KEY, URL, environment, home, variable
from api.kernel.shell_access import database_hash, running_product
from api.wiring.startup import StartError

_LONGEST_KEY = 4096


def remote_api(
    *, url: str | None = None, context: str | None = None, local: bool = False, key_file: str | None = None
) -> HttpApi | None:
    """Return the API that a command goes to; None for this home. The first of these decides: `url`, `context` or `local`,
    MEDIALEDGER_URL, MEDIALEDGER_CONTEXT, the default context."""
    key = key_of(key_file)
    if url is not None:
        return HttpApi(url, key)
    if context is not None:
        return _of_context(context, key)
    if local:
        return None
    if (address := variable(URL)) is not None:
        return HttpApi(address, key)
    if (name := variable(CONTEXT)) is not None:
        return _of_context(name, key)
    used = read_contexts(contexts_file(environment())).used
    return None if used is None else _of_context(used, key)


def running_api() -> HttpApi | None:
    """Return the product that runs on this home, called by the user of the shell; None if none runs."""
    product = running_product(home())
    if product is None or ((url := variable("MEDIALEDGER_DATABASE_URL")) is not None and product.database != database_hash(url)):
        return None
    return HttpApi(product.url, product.key(shell.user_of_shell()), label=f"the product of {home()}", local=True)


def local_api(*, make: bool = False) -> RestApi:
    """Return the product that runs on this home, else the API in this process, on the database. With `make`, a missing or empty
    database is created."""
    if (running := running_api()) is not None:
        return running
    from api.cli.remote.in_process_api import InProcessApi

    return InProcessApi(make=make)


def _of_context(name: str, key: str | None) -> HttpApi:
    context = read_contexts(contexts_file(environment())).get(name)
    return HttpApi(context.url, key or context.key, label=f"{name} ({context.url})")


def key_of(file: str | None) -> str | None:
    """Return the API key in this file, or in the environment. It is no argument, because other users can read arguments."""
    if file is None:
        return variable(KEY)
    try:
        text = sys.stdin.readline(_LONGEST_KEY) if file == "-" else Path(file).read_text()[:_LONGEST_KEY]
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"the key cannot be read from {file}: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    return text.strip() or None


_OPEN: Final = 0o077


@dataclass(frozen=True, slots=True)
class Context:
    """An installation. `key` is its API key; None if it needs none."""

    url: str
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts. `used` is the name of the default, which commands go to unless an option or a variable names another."""

    all: Mapping[str, Context]
    used: str | None = None

    def get(self, name: str) -> Context:
        if name not in self.all:
            raise StartError(f"the context {name} does not exist; the contexts are: {', '.join(self.all) or 'none yet'}")
        return self.all[name]

    def with_context(self, name: str, context: Context) -> Contexts:
        """Return the contexts with this one added or replaced. The first context becomes the default."""
        return Contexts({**self.all, name: context}, self.used if self.all else name)

    def with_default(self, name: str | None) -> Contexts:
        if name is not None:
            self.get(name)
        return replace(self, used=name)

    def without(self, name: str) -> Contexts:
        self.get(name)
        return Contexts(
            {other: context for other, context in self.all.items() if other != name}, None if self.used == name else self.used
        )


def contexts_file(environment: Mapping[str, str]) -> Path:
    config_home = environment.get("XDG_CONFIG_HOME", "")
    base = Path(config_home) if config_home.startswith("/") else Path(environment.get("HOME") or "~").expanduser() / ".config"
    return base / "medialedger" / "contexts.json"


def read_contexts(path: Path) -> Contexts:
    """Read the contexts; a missing file means that there are none."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read()
    except FileNotFoundError:
        return Contexts({})
    except OSError as error:
        raise StartError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if mode & _OPEN:
        raise StartError(f"{path} contains API keys and is open to other users (mode {mode:04o}): chmod 600 {path}")
    try:
        return _parse(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StartError(f"{path} is damaged; delete it, and `medialedger context add` creates a new one") from None


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file atomically, with mode 0600."""
    document = {"used": contexts.used, "contexts": {name: asdict(context) for name, context in contexts.all.items()}}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=".contexts", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(json.dumps(document, indent=2) + "\n")
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise StartError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None


def _parse(document: Any) -> Contexts:
    contexts = {str(name): Context(str(values["url"]), values.get("key")) for name, values in document["contexts"].items()}
    used = document.get("used")
    return Contexts(contexts, used if used in contexts else None)
