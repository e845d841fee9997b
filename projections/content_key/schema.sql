-- Uses of content keys, counted beside the log: a key that is used all the time would else have an event every few seconds. `count` is of
-- all time, without what events have that no recorder counted. The columns from `first_at` on are of the uses that no event tells yet;
-- without any they are null and empty.
CREATE TABLE content_key_usage (
    key            uuid        PRIMARY KEY,
    count          bigint      NOT NULL,
    due_at         timestamptz NOT NULL DEFAULT '-infinity',   -- not before it the next event is written
    first_at       timestamptz,
    last_at        timestamptz,
    systems        text[]      NOT NULL,
    speke_versions text[]      NOT NULL,
    client         text        NOT NULL,
    correlation_id text        NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX content_key_usage_due ON content_key_usage (due_at) WHERE first_at IS NOT NULL;

-- The last batch of each process that counts, so that a batch whose acknowledgement was lost is not added twice.
CREATE TABLE content_key_recorders (
    recorder   uuid        PRIMARY KEY,
    batch      bigint      NOT NULL,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
