-- Texts of captions that clients have sent, until their jobs have made WebVTT of them. They are as large as a request may be, which is
-- too much for the parameters of a job: those are in the log for ever.
CREATE TABLE caption_texts (
    id       uuid        PRIMARY KEY,
    content  bytea       NOT NULL,
    sent_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX caption_texts_sent_at ON caption_texts (sent_at);
