-- For the list of the deliveries of all webhooks, newest first. Of pending ones the index of a shard has the same order.
CREATE INDEX finished_deliveries_newest ON finished_deliveries (position, webhook, ordering_key);
CREATE INDEX finished_deliveries_newest_failed ON finished_deliveries (position, webhook, ordering_key) WHERE state = 2;

-- The circuit breaker of an endpoint as its sender has it. `circuit_until`: when it lets an attempt through, after which it is half-open
-- until this one has ended; null: it is closed. `circuit_since`: when it was last opened or closed; null: never.
ALTER TABLE delivery_endpoints ADD COLUMN circuit_since timestamptz, ADD COLUMN circuit_until timestamptz;
