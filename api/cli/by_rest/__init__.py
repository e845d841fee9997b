"""Commands that call the REST API, of another machine or of this one. ADR 0076."""
