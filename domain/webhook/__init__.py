"""Webhooks: the record with its secrets, its address, the headers that it adds, its signing secret, and its use cases."""
