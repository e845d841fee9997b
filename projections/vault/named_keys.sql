-- How secrets name a master key, by its fingerprint. Every process that holds a key writes it down.
CREATE TABLE master_key_ids (
    fingerprint text PRIMARY KEY,
    key_id      text NOT NULL
);

-- While `previous_encrypts`, new secrets are still encrypted with the previous key: not every process has the new one yet.
-- `switched_at` is when that ended.
ALTER TABLE master_keys
    ADD COLUMN previous_encrypts boolean NOT NULL DEFAULT false,
    ADD COLUMN switched_at       timestamptz;

-- A secret under a key that `master_keys` does not name could never be decrypted again. The lock makes the end of a rotation wait for
-- this transaction, and this transaction for the end of a rotation. A database whose keys are not yet known by their ids accepts all.
CREATE FUNCTION refuse_unnamed_master_key() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    named   text[];
    unnamed text;
BEGIN
    PERFORM FROM master_keys FOR SHARE;
    SELECT array_agg(i.key_id) INTO named
    FROM master_keys m CROSS JOIN unnest(ARRAY[m.fingerprint, m.previous]) AS n (fingerprint)
    LEFT JOIN master_key_ids i ON i.fingerprint = n.fingerprint WHERE n.fingerprint IS NOT NULL;
    IF named IS NULL OR array_position(named, NULL) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    SELECT key_id INTO unnamed FROM encrypted WHERE key_id <> ALL (named) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a secret is encrypted under the master key %, which this database does not use', unnamed
            USING ERRCODE = 'check_violation', CONSTRAINT = 'vault_master_key';
    END IF;
    RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION refuse_unnamed_master_key FROM PUBLIC;

CREATE TRIGGER vault_inserted_under_named_key AFTER INSERT ON vault REFERENCING NEW TABLE AS encrypted
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unnamed_master_key();
CREATE TRIGGER vault_updated_under_named_key AFTER UPDATE ON vault REFERENCING NEW TABLE AS encrypted
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unnamed_master_key();
