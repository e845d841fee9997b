-- Signed checkpoints of the log: docs/explanation/the-log.md. Nobody changes one. Two may be of one size: one that hands over to a
-- new key has nothing new of the log.
CREATE TABLE checkpoints (
    number    bigint      PRIMARY KEY,
    commits   bigint      NOT NULL,
    position  bigint      NOT NULL,
    sealed_at timestamptz NOT NULL,
    note      text        NOT NULL
);
CREATE INDEX checkpoints_position ON checkpoints (position, number);

-- Tiles of the tree over commits, up to 256 hashes each. The last one of a level grows.
CREATE TABLE log_tiles (
    level  smallint NOT NULL,
    number bigint   NOT NULL,
    hashes bytea    NOT NULL,
    PRIMARY KEY (level, number)
);
ALTER TABLE log_tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;   -- hashes cannot be compressed

-- The map of streams, as of the last checkpoint. Parts of it with many streams have a node, which is named by the first hexadecimal
-- digits of their keys and has 16 children: a byte that is 0, 1 or 2 for no, one and more streams, and the hash.
CREATE TABLE stream_heads (
    key     bytea  PRIMARY KEY CHECK (octet_length(key) = 32),
    version bigint NOT NULL,
    hash    bytea  NOT NULL
) WITH (fillfactor = 80);
CREATE TABLE stream_map_nodes (
    prefix   text  COLLATE "C" PRIMARY KEY,
    children bytea NOT NULL
) WITH (fillfactor = 80);

-- Keys that checkpoints are signed with; the last one is in use. The private key is in the vault.
CREATE TABLE checkpoint_keys (
    number     int         PRIMARY KEY,
    public_key text        NOT NULL,
    reference  uuid        NOT NULL,
    made_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Where a checkpoint is kept outside of the database. `evidence` is what came back, such as the token of a time stamp.
CREATE TABLE checkpoint_anchors (
    checkpoint  bigint      NOT NULL REFERENCES checkpoints,
    kind        text        NOT NULL,
    place       text        NOT NULL,
    evidence    bytea,
    anchored_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (checkpoint, kind, place)
);

CREATE TRIGGER checkpoints_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
CREATE TRIGGER checkpoint_anchors_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON checkpoint_anchors
    FOR EACH STATEMENT EXECUTE FUNCTION log_is_append_only();
