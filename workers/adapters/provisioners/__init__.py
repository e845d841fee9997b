"""Provisioners of infrastructure: docs/reference/api/provisioning.md."""
