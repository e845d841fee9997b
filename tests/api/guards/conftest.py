from __future__ import annotations

from tests.api.http.conftest import toy as toy
