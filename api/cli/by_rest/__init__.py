"""Commands that call the REST API of another machine or of this one. See ADR 0076."""
