-- What client names look like: lower case, with 0 as o, and 1 and i as l. A new name claims it in the append, so that no two clients
-- can be taken for one. Clients of earlier builds claim theirs here, also deleted ones, whose names stay in the log. Of several that
-- look alike the first one holds the claim; the others keep their names all the same.
DO $$
DECLARE
    clients regclass;
BEGIN
    FOR clients IN
        SELECT c.oid FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname ~ '^client_view(_v?[0-9]+)?$'
        ORDER BY c.relname
    LOOP
        EXECUTE format($claim$
            INSERT INTO unique_claims (scope, value, owner)
            SELECT 'client.name', translate(lower(name COLLATE "C"), '01i', 'oll'), 'client:' || name FROM %s
            ORDER BY registered_at, name
            ON CONFLICT DO NOTHING
        $claim$, clients);
    END LOOP;
END $$;
