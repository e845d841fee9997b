"""Writes the OpenAPI document of this source tree to standard output, from which the types of the console are generated."""

from __future__ import annotations

import json
import sys

from api.http.openapi import describe
from api.kernel.description import API
from api.wiring.services import ROUTES

json.dump(describe(ROUTES, title="medialedger", version="0", about=API), sys.stdout)
