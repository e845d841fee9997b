-- When each API key was last used: not a fact of the domain, kept to the minute, written behind.
CREATE TABLE api_key_usage (
    key_id       text PRIMARY KEY,
    last_used_at timestamptz NOT NULL
);
