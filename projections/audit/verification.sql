-- How far the log was verified in the background: `tail` follows its end, `scrub` goes through all of it again and again. `position`,
-- `number` and `chain_hash` are of the last commit that was good; the last three columns say what is wrong, until it is good again.
CREATE TABLE log_verification (
    cursor       text        PRIMARY KEY CHECK (cursor IN ('tail', 'scrub')),
    position     bigint      NOT NULL DEFAULT 0,
    number       bigint      NOT NULL DEFAULT 0,
    chain_hash   bytea,
    verified_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    bad_position bigint,
    reason       text
);
