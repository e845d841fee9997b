"""What runs around the product: a broker for tests and for trying, and a description for container engines."""
