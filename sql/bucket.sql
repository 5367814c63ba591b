-- Buckets: the type, spans of time, aggregates and what reads a bucket. The functions are in src/types/bucket/.

-- The type -----------------------------------------------------------------------------------------------------------------

CREATE TYPE bucket;

CREATE FUNCTION docpatterns.bucket_in(cstring) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bucket_in(cstring) IS 'the bucket that an Extended JSON document as bucket_out writes it spells; 22P02 for other text';
CREATE FUNCTION docpatterns.bucket_out(bucket) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_bucket_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION docpatterns.bucket_out(bucket) IS 'the bucket as an Extended JSON document: its times and, for each column, type and values; the same whatever the settings of the session are; reads all of it; XX001 for corrupt bytes';
CREATE FUNCTION docpatterns.bucket_recv(internal) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION docpatterns.bucket_recv(internal) IS 'the bucket of the bytes that bucket_send wrote, checked down to the last value; 22P03 for anything else';
CREATE FUNCTION bucket_send(bucket) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bucket_send(bucket) IS 'the bytes of the bucket as docs/formats.md describes them';

CREATE TYPE bucket (
  INPUT = docpatterns.bucket_in, OUTPUT = docpatterns.bucket_out, RECEIVE = docpatterns.bucket_recv, SEND = bucket_send,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4,
  -- packed already; uncompressed, its header is read without the rest
  STORAGE = external
);
COMMENT ON TYPE bucket IS 'many measurements of one group, packed by column, with count, first and last time and each column''s minimum, maximum and sum in front';

-- Equality, which DISTINCT, GROUP BY, IN and the replication of tables without a key ask for
CREATE FUNCTION docpatterns.bucket_eq(bucket, bucket) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bucket_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_eq(bucket, bucket) IS 'whether two buckets have the same bytes, as those have that were packed from the same rows by the same version';
CREATE FUNCTION docpatterns.bucket_ne(bucket, bucket) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bucket_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_ne(bucket, bucket) IS 'whether two buckets have different bytes';
CREATE FUNCTION docpatterns.bucket_hash(bucket) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bucket_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_hash(bucket) IS 'hash of the bytes of a bucket';
CREATE FUNCTION docpatterns.bucket_hash_extended(bucket, bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_bucket_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
COMMENT ON FUNCTION docpatterns.bucket_hash_extended(bucket, bigint) IS 'hash of 64 bits of the bytes of a bucket, with a seed';

CREATE OPERATOR = (
  LEFTARG = bucket, RIGHTARG = bucket, FUNCTION = docpatterns.bucket_eq, COMMUTATOR = =, NEGATOR = <>,
  RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
COMMENT ON OPERATOR = (bucket, bucket) IS 'the same bytes';
CREATE OPERATOR <> (
  LEFTARG = bucket, RIGHTARG = bucket, FUNCTION = docpatterns.bucket_ne, COMMUTATOR = <>, NEGATOR = =,
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
COMMENT ON FUNCTION bucket_fault(bytea) IS 'what is wrong with the bytes of a bucket (as bucket_send gives them), or NULL: reads every value and compares the header with them; raises nothing for bad bytes';

-- Spans of time ------------------------------------------------------------------------------------------------------------

CREATE FUNCTION bucket_start(width interval, ts timestamptz, origin timestamptz DEFAULT NULL, time_zone text DEFAULT 'UTC') RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_start' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, timestamptz, timestamptz, text) IS 'the beginning of the span of that width that the time lies in, counted from the origin (Monday 2000-01-03 00:00, for months 2000-01-01) by the clock of the time zone; months and years by the calendar, days of 23 or 25 hours where the clock changes; NULL for NULL, an infinite time stays; 22023 for a width that is not positive or mixes months with days, and for an unknown zone';
CREATE FUNCTION bucket_start(width interval, ts timestamp, origin timestamp DEFAULT NULL) RETURNS timestamp
  AS 'MODULE_PATHNAME', 'dp_bucket_start_timestamp' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, timestamp, timestamp) IS 'the beginning of the span of that width that the time lies in, for times that know no zone, where every day has 24 hours; NULLs and errors as with zones';
CREATE FUNCTION bucket_start(width interval, ts date, origin date DEFAULT NULL) RETURNS date
  AS 'MODULE_PATHNAME', 'dp_bucket_start_date' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bucket_start(interval, date, date) IS 'the beginning of the span of that width that the day lies in, as a date; NULLs and errors as for times, and 22023 unless the width is whole days or months';

CREATE FUNCTION bucket_starts(width interval, since timestamptz, until timestamptz, origin timestamptz DEFAULT NULL, time_zone text DEFAULT 'UTC') RETURNS SETOF timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_starts' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 1000;
COMMENT ON FUNCTION bucket_starts(interval, timestamptz, timestamptz, timestamptz, text) IS 'the beginnings of all spans from the one that since lies in, before until, as bucket_start() gives them; join what was measured to it and gaps show; 54000 for more than a million';

-- Aggregates ----------------------------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns.bucket_agg_step(internal, timestamptz, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_step(internal, timestamptz, bson) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_page_agg_step(internal, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_page_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_page_agg_step(internal, bson) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_page_agg_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_merge_step(internal, bucket) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_merge_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_serialize(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_deserialize(bytea, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bucket_agg_final(internal) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE bucket_agg(ts timestamptz, doc bson) (
  SFUNC = docpatterns.bucket_agg_step, STYPE = internal, SSPACE = 8192, FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, SERIALFUNC = docpatterns.bucket_agg_serialize, DESERIALFUNC = docpatterns.bucket_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_agg(timestamptz, bson) IS 'a bucket of measurements that are documents, in the order of their times; each field becomes a column; NULL if there are none; 22004 for a measurement without time, 22008 for an infinite one, 54000 beyond a million';
CREATE AGGREGATE bucket_agg(ts timestamptz, VARIADIC "values" "any") (
  SFUNC = docpatterns.bucket_agg_step, STYPE = internal, SSPACE = 8192, FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, SERIALFUNC = docpatterns.bucket_agg_serialize, DESERIALFUNC = docpatterns.bucket_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_agg(timestamptz, VARIADIC "any") IS 'a bucket of measurements with these values, whose types it keeps; the fields are called value, or value1, value2 and so on; a single row gives the names of its columns; NULL if there are none; errors as for documents, and 2202E for VARIADIC arrays of different lengths';
CREATE AGGREGATE bucket_page_agg(doc bson) (
  SFUNC = docpatterns.bucket_page_agg_step, STYPE = internal, SSPACE = 8192, FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, SERIALFUNC = docpatterns.bucket_agg_serialize, DESERIALFUNC = docpatterns.bucket_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_page_agg(bson) IS 'a bucket without times of documents, in the order in which they come (give it with ORDER BY); NULL if there are none; 54000 beyond a million';
CREATE AGGREGATE bucket_page_agg(VARIADIC "values" "any") (
  SFUNC = docpatterns.bucket_page_agg_step, STYPE = internal, SSPACE = 8192, FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, SERIALFUNC = docpatterns.bucket_agg_serialize, DESERIALFUNC = docpatterns.bucket_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_page_agg(VARIADIC "any") IS 'a bucket without times of rows with these values, in the order in which they come; NULL if there are none; 54000 beyond a million';
CREATE AGGREGATE bucket_merge(b bucket) (
  SFUNC = docpatterns.bucket_merge_step, STYPE = internal, SSPACE = 4096, FINALFUNC = docpatterns.bucket_agg_final,
  COMBINEFUNC = docpatterns.bucket_agg_combine, SERIALFUNC = docpatterns.bucket_agg_serialize, DESERIALFUNC = docpatterns.bucket_agg_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bucket_merge(bucket) IS 'one bucket with the measurements of all, in the order of their times; columns are matched by name, or by position; NULL if there are none; 42804 where columns have different types, or buckets with and without times or names meet';

CREATE FUNCTION docpatterns.bucket_locf_step(anyelement, anyelement) RETURNS anyelement
  AS 'MODULE_PATHNAME', 'dp_bucket_locf_step' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE AGGREGATE bucket_locf(value anyelement) (
  SFUNC = docpatterns.bucket_locf_step, STYPE = anyelement
);
COMMENT ON AGGREGATE bucket_locf(anyelement) IS 'for windows: the last value so far that is not NULL (last observation carried forward), bucket_locf(v) OVER (ORDER BY ts)';
CREATE FUNCTION bucket_interpolate(ts timestamptz, value float8) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bucket_interpolate' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION bucket_interpolate(timestamptz, float8) IS 'a window function, bucket_interpolate(ts, v) OVER (ORDER BY ts): the value, and where it is NULL what lies on the straight line between those before and after; NULL where one of these is missing';

-- What one bucket says ------------------------------------------------------------------------------------------------------

CREATE FUNCTION bucket_count(b bucket) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bucket_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_count(bucket) IS 'how many measurements; from the header';
CREATE FUNCTION bucket_count(b bucket, field text) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bucket_count_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_count(bucket, text) IS 'how many measurements have a value in the field that is not null (field NULL: the only one); from the header; 42703 if there is no such column';
CREATE FUNCTION bucket_first(b bucket) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_first_time' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_first(bucket) IS 'the time of the first measurement; NULL in a bucket without times; from the header';
CREATE FUNCTION bucket_last(b bucket) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_last_time' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_last(bucket) IS 'the time of the last measurement; NULL in a bucket without times; from the header';
CREATE FUNCTION bucket_span(b bucket) RETURNS interval
  AS 'MODULE_PATHNAME', 'dp_bucket_span' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bucket_span(bucket) IS 'from the first time to the last; NULL in a bucket without times; from the header';
CREATE FUNCTION bucket_first(b bucket, field text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_first' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bucket_first(bucket, text) IS 'the first value of the field that is not null (field NULL: the only one); NULL if there is none; 42703 if there is no such column; reads the field';
CREATE FUNCTION bucket_last(b bucket, field text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_last' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bucket_last(bucket, text) IS 'the last value of the field that is not null (field NULL: the only one); NULL if there is none; 42703 if there is no such column; reads the field';
CREATE FUNCTION bucket_sum(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_sum_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_sum(bucket, text) IS 'the sum of the field''s numbers (default: of the only field), as sum() over bson_value gives it; NULL if there are none; from the header where that has it; 42703 if there is no such column, 22023 if no field is named and there are several';
CREATE FUNCTION bucket_avg(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_avg_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_avg(bucket, text) IS 'the average of the field''s numbers, a double, or a decimal128 if there is one among them; NULL if there are none; cost and errors as bucket_sum()';
CREATE FUNCTION bucket_min(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_min_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_min(bucket, text) IS 'the least value of the field, null not being one; NULL if there is none; cost and errors as bucket_sum()';
CREATE FUNCTION bucket_max(b bucket, field text DEFAULT NULL) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_max_field' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bucket_max(bucket, text) IS 'the greatest value of the field, null not being one; NULL if there is none; cost and errors as bucket_sum()';
CREATE FUNCTION bucket_stddev(b bucket, field text DEFAULT NULL, population boolean DEFAULT false) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bucket_stddev' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_stddev(bucket, text, boolean) IS 'the standard deviation of the field''s numbers as a double, of a sample, or of a whole population; NULL if there are fewer than two numbers (one); reads the field; errors as bucket_sum()';
CREATE FUNCTION bucket_slice(b bucket, since timestamptz, until timestamptz) RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_slice_times' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_slice(bucket, timestamptz, timestamptz) IS 'the measurements from since on and before until, as a bucket; a bound that is NULL does not bound; NULL if there are none; 22023 for a bucket without times';

-- Measurements as rows ------------------------------------------------------------------------------------------------------

CREATE FUNCTION bucket_unpack(b bucket, OUT ts timestamptz, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_unpack' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 100 COST 100;
COMMENT ON FUNCTION bucket_unpack(bucket) IS 'the measurements in the order of their times, each as a document of its fields; ts is NULL in a bucket without times';
CREATE FUNCTION bucket_unpack(b bucket, base anyelement) RETURNS SETOF anyelement
  AS 'MODULE_PATHNAME', 'dp_bucket_unpack_rows' LANGUAGE C STABLE PARALLEL SAFE ROWS 100 COST 100;
COMMENT ON FUNCTION bucket_unpack(bucket, anyelement) IS 'the measurements as rows of the type of base (NULL::readings): columns take the field of their name, or, of a bucket without names, the next one; the first column of a type of times without a field takes the times; 42804 if base is no row, and the errors of casts';
CREATE FUNCTION bucket_to_recordset(b bucket) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_to_recordset' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 100 COST 100;
COMMENT ON FUNCTION bucket_to_recordset(bucket) IS 'the measurements as rows with the columns that the query lists, as bucket_unpack gives them, with its errors: FROM bucket_to_recordset(b) AS r (ts timestamptz, temperature float8)';
CREATE FUNCTION bucket_series(b bucket, width interval, field text DEFAULT NULL, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
  fill text DEFAULT 'null', take text DEFAULT 'avg', origin timestamptz DEFAULT NULL, time_zone text DEFAULT 'UTC',
  OUT start timestamptz, OUT value bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_series' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 100 COST 100;
COMMENT ON FUNCTION bucket_series(bucket, interval, text, timestamptz, timestamptz, text, text, timestamptz, text) IS 'a row for each span (see bucket_start()) from the one of since (default: the first time) on, before until (default: after the last time): the field''s avg, sum, min, max, first, last or count in it; a span without values is NULL, or filled with the previous one (fill previous) or what lies on the line between its neighbours (linear); 22023 for other words, 42703 if there is no such column, 54000 for more than a million spans';
