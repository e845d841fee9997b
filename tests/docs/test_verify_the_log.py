"""The program in docs/how-to/verify-the-log.md, which needs nothing from this product, reaches the product's own verdict."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

from api.wiring.core import Core
from projections.audit.verify import verify
from tests.support.feeding import as_superuser, event, room
from tests.support.waiting import ROOT

_PAGE = ROOT / "docs" / "how-to" / "verify-the-log.md"


def _run(url: str, program: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-I", str(program), url], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


async def test_the_independent_verifier_agrees_with_the_products(inner: Core, database_url: str, tmp_path: Path) -> None:
    match = re.search(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    assert match is not None
    program = tmp_path / "verify.py"
    program.write_text(match[1])
    await asyncio.gather(*(event(inner, number, title=f"Grüße {number}") for number in range(1, 12)))  # several events to a commit
    await room(inner, 1, "Hall")
    sizes = await inner.database.rows("SELECT last_position - first_position + 1 FROM commits")
    assert max(sizes) > (2,), "a tree with more than one level"
    assert verify(database_url).valid
    code, output = _run(database_url, program)
    assert (code, output[:5]) == (0, "whole"), output
    as_superuser(database_url, "UPDATE events SET state = state || ' '::bytea WHERE position = 7")
    assert not verify(database_url).valid
    code, output = _run(database_url, program)
    assert code == 1
    assert "does not fit" in output
