"""The text of verify.py, the program with which auditors verify exports."""

from __future__ import annotations

from pathlib import Path


def verifier_text() -> str:
    return Path(__file__).with_name("verify_export.py").read_text()
