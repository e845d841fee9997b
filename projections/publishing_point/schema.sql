-- What was last heard of each publishing point of a channel on the air. These are samples, not facts: they are overwritten every few
-- seconds, are worth nothing after some more, and need not survive a crash of the server. `address` is a fingerprint of what was asked:
-- after a change of the channel the row says nothing. `mark` is a text that changes while data come, `moved_at` the sample that found
-- it changed. `failing_since` is the first of the samples without a break that found no stream; null while there is one, and while the
-- fault is not the point's.
CREATE UNLOGGED TABLE publishing_point_probes (
    channel_id    uuid        NOT NULL,
    encoder       smallint    NOT NULL,
    point         smallint    NOT NULL,
    address       bigint      NOT NULL,
    strategy      smallint    NOT NULL,
    state         text        NOT NULL,
    receiving     boolean     NOT NULL,
    last_updated  timestamptz,
    mark          text,
    moved_at      timestamptz,
    failing_since timestamptz,
    fault         text,
    sampled_at    timestamptz NOT NULL,
    PRIMARY KEY (channel_id, encoder, point)
) WITH (fillfactor = 50);
