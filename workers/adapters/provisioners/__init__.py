"""Those who provide infrastructure: docs/reference/api/provisioning.md."""
