"""The meaning of domain events for the webhooks of an Event, for each kind of aggregate that an Event shows."""
