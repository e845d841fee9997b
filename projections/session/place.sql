-- Where a session is in what it does, as it wrote last: what of a playlist was on the air, for each encoder. It stays while the session
-- starts again under the same order, and is empty under another one.
ALTER TABLE sessions ADD COLUMN place jsonb;
