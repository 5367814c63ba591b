-- Buckets: the type, spans of time, aggregates and what reads a bucket. The functions are in
-- src/types/bucket/.

-- The type ----------------------------------------------------------------------------------------

CREATE TYPE bucket;

CREATE FUNCTION docpatterns.bucket_in(cstring) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bucket_in(cstring) IS
  'the bucket that an Extended JSON document as bucket_out writes it spells; 22P02 for other text';
CREATE FUNCTION docpatterns.bucket_out(bucket) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_bucket_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION docpatterns.bucket_out(bucket) IS
  'the bucket as an Extended JSON document: its times and, for each column, type and values; the '
  'same whatever the settings of the session are; reads all of it; XX001 for corrupt bytes';
CREATE FUNCTION docpatterns.bucket_recv(internal) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION docpatterns.bucket_recv(internal) IS
  'the bucket of the bytes that bucket_send wrote, checked down to the last value; 22P03 for '
  'anything else';
CREATE FUNCTION bucket_send(bucket) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bucket_send(bucket) IS 'The stored bytes of a bucket, its binary form';

CREATE TYPE bucket (
  INPUT = docpatterns.bucket_in, OUTPUT = docpatterns.bucket_out, RECEIVE = docpatterns.bucket_recv,
  SEND = bucket_send,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4,
  -- already packed; uncompressed, its header can be read alone
  STORAGE = external
);
COMMENT ON TYPE bucket IS
  'many measurements of one group, packed by column, with count, first and last time and each '
  'column''s minimum, maximum and sum in front';

-- Equality, for DISTINCT, GROUP BY, IN and replication of tables without a key
CREATE FUNCTION docpatterns.bucket_eq(bucket, bucket) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bucket_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_eq(bucket, bucket) IS
  'whether two buckets have the same bytes, as those have that were packed from the same rows by '
  'the same version';
CREATE FUNCTION docpatterns.bucket_ne(bucket, bucket) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bucket_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_ne(bucket, bucket) IS
  'whether two buckets have different bytes';
CREATE FUNCTION docpatterns.bucket_hash(bucket) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bucket_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_hash(bucket) IS 'hash of the bytes of a bucket';
CREATE FUNCTION docpatterns.bucket_hash_extended(bucket, bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_bucket_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_hash_extended(bucket, bigint) IS
  'hash of 64 bits of the bytes of a bucket, with a seed';

CREATE OPERATOR = (
  LEFTARG = bucket, RIGHTARG = bucket, FUNCTION = docpatterns.bucket_eq, COMMUTATOR = =,
  NEGATOR = <>,
  RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
COMMENT ON OPERATOR = (bucket, bucket) IS 'the same bytes';
CREATE OPERATOR <> (
  LEFTARG = bucket, RIGHTARG = bucket, FUNCTION = docpatterns.bucket_ne, COMMUTATOR = <>,
  NEGATOR = =,
  RESTRICT = neqsel, JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (bucket, bucket) IS 'different bytes';

CREATE OPERATOR CLASS bucket_hash_ops DEFAULT FOR TYPE bucket USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 docpatterns.bucket_hash(bucket),
  FUNCTION 2 docpatterns.bucket_hash_extended(bucket, bigint);
COMMENT ON OPERATOR CLASS bucket_hash_ops USING hash IS 'buckets by their bytes';
COMMENT ON OPERATOR FAMILY bucket_hash_ops USING hash IS 'buckets by their bytes';

CREATE FUNCTION bucket_fault(b bytea) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bucket_fault_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bucket_fault(bytea) IS
  'What is wrong with the bytes of a bucket (as its binary form gives them), or NULL. Reads every '
  'value and compares the header; raises nothing for bad bytes';

-- Spans of time -----------------------------------------------------------------------------------

CREATE FUNCTION bucket_start(width interval, ts timestamptz, origin timestamptz DEFAULT NULL,
  time_zone text DEFAULT 'UTC') RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_start' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, timestamptz, timestamptz, text) IS
  'The beginning of the span that contains the time; NULL for NULL, an infinite time itself. '
  'Errors: 22023 a width that is not positive or mixes months with days or hours, an infinite '
  'origin, an unknown zone, 22008 before 4714 BC';
CREATE FUNCTION bucket_start(width interval, ts timestamp, origin timestamp DEFAULT NULL)
  RETURNS timestamp
  AS 'MODULE_PATHNAME', 'dp_bucket_start_timestamp' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, timestamp, timestamp) IS
  'The same without time zones, where every day has 24 hours';
CREATE FUNCTION bucket_start(width interval, ts date, origin date DEFAULT NULL) RETURNS date
  AS 'MODULE_PATHNAME', 'dp_bucket_start_date' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, date, date) IS
  'The same for a day. Error: 22023 also a width that is not whole days or months';

CREATE FUNCTION bucket_starts(width interval, since timestamptz, until timestamptz,
  origin timestamptz DEFAULT NULL, time_zone text DEFAULT 'UTC') RETURNS SETOF timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_starts' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 1000;
COMMENT ON FUNCTION bucket_starts(interval, timestamptz, timestamptz, timestamptz, text) IS
  'The beginnings of all spans from that of since, before until. Errors as bucket_start(), and '
  '54000 more than a million';

-- Aggregates --------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns.bucket_agg_step(internal, timestamptz, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_step(bytea, timestamptz, bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_page_agg_step(internal, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_page_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_page_agg_step(bytea, bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_page_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_merge_step(bytea, bucket) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_merge_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_combine(bytea, bytea) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_final(bytea) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_final(internal) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE bucket_agg(ts timestamptz, doc bson) (
  SFUNC = docpatterns.bucket_agg_step, STYPE = bytea, SSPACE = 8192,
  FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_agg(timestamptz, bson) IS
  'A bucket of documents in time order; each field becomes a column; NULL without rows. Errors: '
  '22004 a NULL time, 22008 an infinite time, 54000 more than a million rows';
CREATE AGGREGATE bucket_agg(ts timestamptz, VARIADIC "values" "any") (
  SFUNC = docpatterns.bucket_agg_step, STYPE = internal, SSPACE = 8192,
  FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, SERIALFUNC = docpatterns.state_serialize,
  DESERIALFUNC = docpatterns.state_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_agg(timestamptz, VARIADIC "any") IS
  'A bucket of rows with these values, whose types it keeps; NULL without rows. Errors as for '
  'documents, and 2202E VARIADIC arrays of different lengths';
CREATE AGGREGATE bucket_page_agg(doc bson) (
  SFUNC = docpatterns.bucket_page_agg_step, STYPE = bytea, SSPACE = 8192,
  FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_page_agg(bson) IS
  'The same without times, in the order of the aggregate''s ORDER BY. Error: 54000 more than a '
  'million rows';
CREATE AGGREGATE bucket_page_agg(VARIADIC "values" "any") (
  SFUNC = docpatterns.bucket_page_agg_step, STYPE = internal, SSPACE = 8192,
  FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, SERIALFUNC = docpatterns.state_serialize,
  DESERIALFUNC = docpatterns.state_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_page_agg(VARIADIC "any") IS
  'The same without times, in the order of the aggregate''s ORDER BY. Error: 54000 more than a '
  'million rows';
CREATE AGGREGATE bucket_merge(b bucket) (
  SFUNC = docpatterns.bucket_merge_step, STYPE = bytea, SSPACE = 4096,
  FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_merge(bucket) IS
  'One bucket of all rows, in time order; columns are matched by name, or by position; NULL '
  'without rows. Error: 42804 columns of different types, buckets with and without times or names';

CREATE FUNCTION docpatterns.bucket_locf_step(anyelement, anyelement) RETURNS anyelement
  AS 'MODULE_PATHNAME', 'dp_bucket_locf_step' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE AGGREGATE bucket_locf(value anyelement) (
  SFUNC = docpatterns.bucket_locf_step, STYPE = anyelement
);
COMMENT ON AGGREGATE bucket_locf(anyelement) IS
  'Over a window: the last value so far that is not NULL (last observation carried forward)';
CREATE FUNCTION bucket_interpolate(ts timestamptz, value float8) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bucket_interpolate' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION bucket_interpolate(timestamptz, float8) IS
  'Over a window: the value, or, where it is NULL, the value on the line between its neighbours; '
  'NULL if one of these is missing';

-- Reading one bucket ------------------------------------------------------------------------------

CREATE FUNCTION bucket_count(b bucket) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bucket_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_count(bucket) IS 'The number of measurements, from the header';
CREATE FUNCTION bucket_count(b bucket, field text) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bucket_count_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_count(bucket, text) IS
  'The number of values of the field that are not null, from the header';
CREATE FUNCTION bucket_first(b bucket) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_first_time' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_first(bucket) IS 'The first time, from the header; NULL without times';
CREATE FUNCTION bucket_last(b bucket) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_last_time' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_last(bucket) IS 'The last time, from the header; NULL without times';
CREATE FUNCTION bucket_span(b bucket) RETURNS interval
  AS 'MODULE_PATHNAME', 'dp_bucket_span' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_span(bucket) IS
  'From the first time to the last, from the header; NULL without times';
CREATE FUNCTION bucket_first(b bucket, field text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_first' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bucket_first(bucket, text) IS 'The first value of the field that is not null';
CREATE FUNCTION bucket_last(b bucket, field text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_last' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bucket_last(bucket, text) IS 'The last value of the field that is not null';
CREATE FUNCTION bucket_sum(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_sum_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_sum(bucket, text) IS
  'The sum of the field''s numbers (of booleans the number that are true); NULL without any. From '
  'the header, unless the numbers are of several types or the sum exceeds int64';
CREATE FUNCTION bucket_avg(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_avg_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_avg(bucket, text) IS
  'The average of the field''s numbers, a double, or a decimal128 if one of them is; NULL without '
  'any. Reads as bucket_sum()';
CREATE FUNCTION bucket_min(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_min_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_min(bucket, text) IS
  'The least value of the field that is not null. From the header for numbers, booleans and times '
  'of one type';
CREATE FUNCTION bucket_max(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_max_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_max(bucket, text) IS
  'The greatest value of the field that is not null. Reads as bucket_min()';
CREATE FUNCTION bucket_stddev(b bucket, field text DEFAULT NULL, population boolean DEFAULT false)
  RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_stddev' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_stddev(bucket, text, boolean) IS
  'The standard deviation of the field''s numbers as a double, of a sample or a whole population; '
  'NULL for fewer than two numbers (one). Reads the field';
CREATE FUNCTION bucket_slice(b bucket, since timestamptz, until timestamptz) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_slice_times' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_slice(bucket, timestamptz, timestamptz) IS
  'The measurements from since on and before until, as a bucket; a NULL bound does not limit; NULL '
  'without any. Error: 22023 a bucket without times';

-- Measurements as rows ----------------------------------------------------------------------------

CREATE FUNCTION bucket_unpack(b bucket, OUT ts timestamptz, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_unpack' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 100
    COST 100;
COMMENT ON FUNCTION bucket_unpack(bucket) IS
  'The measurements as documents, in order; ts is NULL without times';
CREATE FUNCTION bucket_unpack(b bucket, base anyelement) RETURNS SETOF anyelement
  AS 'MODULE_PATHNAME', 'dp_bucket_unpack_rows' LANGUAGE C STABLE PARALLEL SAFE ROWS 100 COST 100;
COMMENT ON FUNCTION bucket_unpack(bucket, anyelement) IS
  'The measurements as rows of the type of base (NULL::readings). Errors: 42804 base is not a row, '
  'and those of casts';
CREATE FUNCTION bucket_to_recordset(b bucket) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_to_recordset' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 100
    COST 100;
COMMENT ON FUNCTION bucket_to_recordset(bucket) IS
  'The measurements as rows of the columns that the query lists, as bucket_unpack';
CREATE FUNCTION bucket_series(b bucket, width interval, field text DEFAULT NULL,
  since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
  fill text DEFAULT 'null', take text DEFAULT 'avg', origin timestamptz DEFAULT NULL,
  time_zone text DEFAULT 'UTC',
  OUT start timestamptz, OUT value bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_series' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 100 COST 100;
COMMENT ON FUNCTION bucket_series(bucket, interval, text, timestamptz, timestamptz, text, text,
  timestamptz, text) IS
  'A row for each span from that of since (default: the first time), before until (default: after '
  'the last time): the field''s avg, sum, min, max, first, last or count. A span without values is '
  'NULL, or filled with the previous value (fill previous) or on the line between neighbours '
  '(linear). Errors: 22023 other words, 42703 no such column, 54000 more than a million spans';
