"""What a webhook is made of besides its fields: where it leads, what it sends along, how it signs. Document 2, "Webhook
objects"."""
