"""The parameters of a job, from a file and from the command line."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from api.cli.shell import secret_text
from api.wiring.startup import StartError


def parameters(args: Namespace) -> dict[str, Any]:
    """Return the parameters of the file, overridden by those of the command line."""
    values: Any = {}
    if args.file is not None:
        try:
            values = json.loads(secret_text(args.file))
        except ValueError:
            raise StartError("the parameters are not JSON") from None
        if not isinstance(values, dict):
            raise StartError("the parameters are not a JSON object")
    return {**values, **dict(args.parameters)}
