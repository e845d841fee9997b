"""Fills the gateway definition speke-proxy.yaml.

`python -m deploy.gateway.fill --base-url URL --client NAME --api-key-file FILE [--output FILE]`

The result contains the API key, so a written file has mode 0600.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from domain.client.names import check_spelling
from domain.kernel.errors import Malformed
from workers.adapters.keyfiles import KeyFileError, read_secret_file, write_secret_file

DEFINITION = Path(__file__).with_name("speke-proxy.yaml")
_KEY = re.compile(r"[!-~]+")


class InvalidValue(Exception):
    """Raised when the definition cannot contain a value. The text names the value, and never contains the key."""


def fill_definition(base_url: str, client: str, *, api_key: str) -> str:
    """Return the definition with its placeholders replaced."""
    url = base_url.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment or _needs_escape(url):
        raise InvalidValue("the base URL must be one such as https://keys.example.com")
    try:
        check_spelling(client)
    except Malformed as error:
        raise InvalidValue(f"the client's name must be {error.errors[0].message}") from None
    if not _KEY.fullmatch(api_key) or _needs_escape(api_key):
        raise InvalidValue("the API key must be visible ASCII without quotes, backslashes and braces")
    text = DEFINITION.read_text(encoding="utf-8")
    for name, value in (("base_url", url), ("client_name", client), ("api_key", api_key)):
        text = text.replace(f"{{{name}}}", value)
    return text


def _needs_escape(value: str) -> bool:
    """Return True if the value would end a quoted text of YAML or of the gateway. Braces are parameters of the gateway."""
    return any(character in "\"'\\{}" or not "!" <= character <= "~" for character in value)


def main(argv: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m deploy.gateway.fill", description="Fill the gateway definition of the key provider.")
    parser.add_argument("--base-url", required=True, metavar="URL", help="the URL of the key provider, as the gateway reaches it")
    parser.add_argument("--client", required=True, metavar="NAME", help="the client that requests keys")
    parser.add_argument(
        "--api-key-file", required=True, type=Path, metavar="FILE", help="file with that client's API key; mode 0600"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write it, mode 0600 (default: stdout)")
    args = parser.parse_args(argv)
    try:
        text = fill_definition(args.base_url, args.client, api_key=read_secret_file(args.api_key_file).strip())
        if args.output is not None:
            write_secret_file(args.output, text.removesuffix("\n"))
    except (InvalidValue, KeyFileError) as error:
        print(f"fill: {error}", file=sys.stderr)
        return 1
    if args.output is None:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
