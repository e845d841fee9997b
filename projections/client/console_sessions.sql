-- Sessions of the console: logins by an API key in a browser. No facts of the domain; a row is deleted when its session ends.
-- The token is never stored, only its SHA-256.
CREATE TABLE console_sessions (
    token_hash bytea       PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    key_id     text        NOT NULL,
    roles      text[]      NOT NULL,
    seen_at    timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL
);
CREATE INDEX console_sessions_key ON console_sessions (key_id, seen_at);
