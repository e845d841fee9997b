-- While a master key is replaced the database is sealed with two: `fingerprint` tells the new one, `previous` the old one, until
-- nothing is left under it. `begun_at`: since when.
ALTER TABLE sealed_with ADD COLUMN previous text;
ALTER TABLE sealed_with ADD COLUMN begun_at timestamptz;
