"""Webhooks: addresses that are called when an Event or a job changes."""
