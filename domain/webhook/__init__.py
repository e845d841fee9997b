"""Webhooks: the record with its secrets, its address, its custom headers, its signing secret, and its use cases."""
