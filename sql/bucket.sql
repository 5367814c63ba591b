-- Buckets: the type, spans of time, aggregates and what reads a bucket. The functions are in src/bucket/.

-- The type -----------------------------------------------------------------------------------------------------------------

CREATE TYPE bucket;

CREATE FUNCTION bucket_in(cstring) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bucket_in(cstring) IS 'the bucket that an Extended JSON document as bucket_out writes it spells; 22P02 for other text';
CREATE FUNCTION bucket_out(bucket) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_bucket_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_out(bucket) IS 'the bucket as an Extended JSON document: its times and, for each column, type and values; the same whatever the settings of the session are; reads all of it; XX001 for corrupt bytes';
CREATE FUNCTION bucket_recv(internal) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_recv(internal) IS 'the bucket of the bytes that bucket_send wrote, checked down to the last value; 22P03 for anything else';
CREATE FUNCTION bucket_send(bucket) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bucket_send(bucket) IS 'the bytes of the bucket as docs/formats.md describes them';

CREATE TYPE bucket (
  INPUT = bucket_in, OUTPUT = bucket_out, RECEIVE = bucket_recv, SEND = bucket_send,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4,
  -- packed already; uncompressed, its header is read without the rest
  STORAGE = external
);
COMMENT ON TYPE bucket IS 'many measurements of one group, packed by column, with count, first and last time and each column''s minimum, maximum and sum in front';

CREATE FUNCTION bucket_fault(b bytea) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bucket_fault_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bucket_fault(bytea) IS 'what is wrong with the bytes of a bucket (as bucket_send gives them), or NULL: reads every value and compares the header with them; raises nothing for bad bytes';

-- Spans of time ------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bucket_start(width interval, ts timestamptz, origin timestamptz DEFAULT NULL, time_zone text DEFAULT 'UTC') RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_start' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, timestamptz, timestamptz, text) IS 'the beginning of the span of that width that the time lies in, counted from the origin (Monday 2000-01-03 00:00, for months 2000-01-01) by the clock of the time zone; months and years by the calendar, days of 23 or 25 hours where the clock changes; NULL for NULL, an infinite time stays; 22023 for a width that is not positive or mixes months with days, and for an unknown zone';
CREATE FUNCTION bucket_start(width interval, ts timestamp, origin timestamp DEFAULT NULL) RETURNS timestamp
  AS 'MODULE_PATHNAME', 'dp_bucket_start_timestamp' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, timestamp, timestamp) IS 'the same for times that know no zone';
CREATE FUNCTION bucket_start(width interval, ts date, origin date DEFAULT NULL) RETURNS date
  AS 'MODULE_PATHNAME', 'dp_bucket_start_date' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, date, date) IS 'the same for dates; 22023 unless the width is whole days or months';
