-- Buckets: the type, spans of time, aggregates and what reads a bucket. The functions are in src/bucket/.

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
