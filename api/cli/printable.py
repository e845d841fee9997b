"""Texts of others on a terminal: what would steer it (escape sequences, line breaks, marks of direction) is spelled out."""

from __future__ import annotations


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
