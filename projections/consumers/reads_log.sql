-- Since when a member reads the log because the broker gives nothing; null while it reads what it is set up to read.
ALTER TABLE consumer_members ADD COLUMN reads_log_since timestamptz;
