-- Where in the log each kind, type, actor, end user and transaction occurs. A follower fills it behind the log, without holes, so appends
-- pay nothing for it; queries read what it lacks from the log.
CREATE TABLE audit_index (
    position       bigint PRIMARY KEY,
    kind           text   COLLATE "C" NOT NULL,
    topic          text   COLLATE "C" NOT NULL,
    actor          text   COLLATE "C",
    end_user       text   COLLATE "C",
    transaction_id text   COLLATE "C"
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_freeze_min_age = 0);
CREATE INDEX audit_index_kind ON audit_index (kind, position);
CREATE INDEX audit_index_topic ON audit_index (topic, position);
CREATE INDEX audit_index_actor ON audit_index (actor, position);
CREATE INDEX audit_index_end_user ON audit_index (end_user, position) WHERE end_user IS NOT NULL;
CREATE INDEX audit_index_transaction ON audit_index (transaction_id, position);
