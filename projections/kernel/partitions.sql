-- Partitions of tables that are partitioned by days. The functions run as their owner: the role of the running product may call them,
-- and owns no table. They accept only a table of this schema that is partitioned by a time, and has a default partition; what is made,
-- dropped or deleted follows from the dates.

-- The column that the table is partitioned by. Fails for any other table.
CREATE FUNCTION day_column(day_table text) RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
BEGIN
    SELECT a.attname INTO name
    FROM pg_class c
    JOIN pg_partitioned_table p ON p.partrelid = c.oid AND p.partstrat = 'r' AND p.partnatts = 1 AND p.partdefid <> 0
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0] AND a.atttypid = 'timestamptz'::regtype
    WHERE c.relname = day_table AND c.relnamespace = 'public'::regnamespace;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no table that is partitioned by days' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN name;
END $$;

-- All but the default partition: from the first day, without the last. Their names say it.
CREATE FUNCTION day_partitions(day_table text) RETURNS TABLE (first_day date, end_day date)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_date(left(s.days, 8), 'YYYYMMDD'), to_date(right(s.days, 8), 'YYYYMMDD')
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN substring(c.relname FROM '_(\d{8}_\d{8})$') AS s(days)
    WHERE i.inhparent = (SELECT p.oid FROM pg_class p WHERE p.relname = day_table AND p.relnamespace = 'public'::regnamespace)
        AND s.days IS NOT NULL
    ORDER BY 1
$$;

-- One change of partitions at a time: what is there is read after the lock. From then on nothing is waited for longer than a moment.
CREATE FUNCTION begin_day_change() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(x'6d6c2064617973'::bigint);  -- "ml days"
    PERFORM set_config('lock_timeout', '100ms', true);
END $$;

-- Makes the first partition that is missing from today on, of so many days at most. A day with rows in the default partition keeps it.
-- False: none is missing.
CREATE FUNCTION make_day_partition(day_table text, today date, until date, width integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    key_column text := day_column(day_table);
    taken  date[];
    first  date;
    last   date;
    name   text;
BEGIN
    IF until - today NOT BETWEEN 0 AND 30 OR width NOT BETWEEN 1 AND 366 THEN
        RAISE EXCEPTION 'too many days' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM begin_day_change();
    EXECUTE format('SELECT array_agg(DISTINCT (%1$I AT TIME ZONE ''UTC'')::date) FROM public.%2$I WHERE %1$I >= $1 AND %1$I < $2',
                   key_column, day_table || '_default')
        INTO taken USING today::timestamp AT TIME ZONE 'UTC', (until + width)::timestamp AT TIME ZONE 'UTC';
    SELECT coalesce(taken, '{}') || coalesce(array_agg(d.day::date), '{}') INTO taken
    FROM day_partitions(day_table) p, generate_series(p.first_day, p.end_day - 1, interval '1 day') AS d(day) WHERE p.end_day > today;
    SELECT min(d.day::date) INTO first FROM generate_series(today, until, interval '1 day') AS d(day) WHERE d.day::date <> ALL (taken);
    IF first IS NULL THEN
        RETURN false;
    END IF;
    last := first + 1;
    WHILE last <> ALL (taken) AND last < first + width LOOP
        last := last + 1;
    END LOOP;
    name := format('%s_%s_%s', day_table, to_char(first, 'YYYYMMDD'), to_char(last, 'YYYYMMDD'));
    EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING ALL)', name, day_table);
    EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)', day_table, name,
                   first::timestamp AT TIME ZONE 'UTC', last::timestamp AT TIME ZONE 'UTC');
    RETURN true;
END $$;

-- Drops the first partition of which all rows are before the day, and before today by the clock of the database; its days, or none.
CREATE FUNCTION drop_day_partition(day_table text, before date, OUT first_day date, OUT end_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM day_column(day_table), begin_day_change();
    SELECT p.first_day, p.end_day INTO first_day, end_day FROM day_partitions(day_table) p
    WHERE p.end_day <= least(before, (clock_timestamp() AT TIME ZONE 'UTC')::date) ORDER BY 1 LIMIT 1;
    IF FOUND THEN
        EXECUTE format('DROP TABLE public.%I',
                       format('%s_%s_%s', day_table, to_char(first_day, 'YYYYMMDD'), to_char(end_day, 'YYYYMMDD')));
    END IF;
END $$;

-- Deletes so many rows of the default partition that are older, also than today; how many there were.
CREATE FUNCTION delete_from_default(day_table text, before timestamptz, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    key_column text := day_column(day_table);
    deleted bigint;
BEGIN
    EXECUTE format('DELETE FROM public.%1$I WHERE ctid = ANY(ARRAY(SELECT ctid FROM public.%1$I WHERE %2$I < $1 LIMIT $2 '
                   'FOR UPDATE SKIP LOCKED))', day_table || '_default', key_column)
        USING least(before, date_trunc('day', clock_timestamp(), 'UTC')), most;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END $$;

REVOKE ALL ON FUNCTION day_column, day_partitions, begin_day_change, make_day_partition, drop_day_partition, delete_from_default
    FROM PUBLIC;
