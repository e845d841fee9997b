-- The search index of jobs: the hashed 3-grams of their texts; NULL for a text with very many. Filled by the consumer `search`.
CREATE TABLE job_search (
    id    bigint    PRIMARY KEY,
    grams integer[]
);
CREATE INDEX job_search_grams ON job_search USING gin (grams);
CREATE INDEX job_search_long ON job_search (id) WHERE grams IS NULL;
