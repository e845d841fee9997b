-- Encrypted secrets. Written and erased in the append that changes the aggregate which they belong to; events hold references only.
CREATE TABLE vault (
    reference   uuid        PRIMARY KEY,
    owner       text        COLLATE "C" NOT NULL,
    key_id      text        NOT NULL,
    fingerprint text        NOT NULL,
    nonce       bytea       NOT NULL,
    ciphertext  bytea       NOT NULL,
    sealed_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX vault_key_id ON vault (key_id);
CREATE INDEX vault_jobs ON vault (owner) WHERE owner >= 'job:' AND owner < 'job;';   -- erased by the age of the job

-- The master key that the vault is encrypted with: its fingerprint, never the key. While the key is replaced there are two:
-- `fingerprint` is that of the new one, `previous` that of the old one until no secret is left under it, `begun_at` the start.
CREATE TABLE master_keys (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    fingerprint text    NOT NULL,
    previous    text,
    begun_at    timestamptz
);
