"""Webhooks: who is told of what happens to Events."""
