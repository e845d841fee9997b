"""The parameters of a job, as a person gives them: in a file, and on the command line."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from api.cli.secret_text import secret_text
from api.wiring.startup import StartError


def parameters(args: Namespace) -> dict[str, Any]:
    """Those of the file, and over them those of the command line."""
    given: Any = {}
    if args.file is not None:
        try:
            given = json.loads(secret_text(args.file))
        except ValueError:
            raise StartError("the parameters are not JSON") from None
        if not isinstance(given, dict):
            raise StartError("the parameters are not a JSON object")
    return {**given, **dict(args.parameters)}
