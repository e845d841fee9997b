-- Secrets, sealed. Written and erased in the append that changes the aggregate which they belong to; events hold references only.
CREATE TABLE vault (
    reference   uuid        PRIMARY KEY,
    owner       text        COLLATE "C" NOT NULL,
    key_id      text        NOT NULL,
    fingerprint text        NOT NULL,
    nonce       bytea       NOT NULL,
    box         bytea       NOT NULL,
    sealed_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX vault_key_id ON vault (key_id);
