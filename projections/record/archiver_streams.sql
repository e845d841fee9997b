-- Numbers of archiver streams. A sequence never gives a number twice, whatever becomes of the record that got it.
CREATE SEQUENCE archiver_stream_numbers;
