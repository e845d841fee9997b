-- The consumer of failures begins at the end of the log: what failed before it was there has had its say elsewhere.
INSERT INTO consumer_shards (consumer, shard, position)
SELECT 'failures', 0, coalesce(max(last_position), 0) FROM commits ON CONFLICT DO NOTHING;
