-- Accumulators: the totals of groups of documents. The functions are in src/mql/accumulate_calls.c.

CREATE FUNCTION docpatterns.bson_accumulate_step(bytea, bson, bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_step' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns.bson_accumulate_step(bytea, bson, bson, bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_step' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns.bson_accumulate_step(bytea, bson, bson, bson, bson_value)
  RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_step' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns.bson_accumulate_combine(bytea, bytea) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_accumulate_final(bytea) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE bson_accumulate(doc bson, fields bson) (
  SFUNC = docpatterns.bson_accumulate_step, STYPE = bytea, SSPACE = 1024,
  FINALFUNC = docpatterns.bson_accumulate_final,
  COMBINEFUNC = docpatterns.bson_accumulate_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_accumulate(bson, bson) IS
  'The totals of a group in one document, as $group makes it: fields is name -> {accumulator: '
  'expression}, the result name -> value; NULL without rows';

CREATE AGGREGATE bson_accumulate(doc bson, fields bson, order_by bson) (
  SFUNC = docpatterns.bson_accumulate_step, STYPE = bytea, SSPACE = 1024,
  FINALFUNC = docpatterns.bson_accumulate_final,
  COMBINEFUNC = docpatterns.bson_accumulate_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_accumulate(bson, bson, bson) IS
  'The same with the order for $first, $last, $push ...';

CREATE AGGREGATE bson_accumulate(doc bson, fields bson, order_by bson, key bson_value) (
  SFUNC = docpatterns.bson_accumulate_step, STYPE = bytea, SSPACE = 1024,
  FINALFUNC = docpatterns.bson_accumulate_final,
  COMBINEFUNC = docpatterns.bson_accumulate_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_accumulate(bson, bson, bson, bson_value) IS
  'The same with a key that orders equal documents';

CREATE FUNCTION bson_accumulate_set(target bson, fields bson, docs bson[],
  order_by bson DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_set' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bson_accumulate_set(bson, bson, bson[], bson) IS
  'The target document with the totals of the documents as its fields; NULL if target or fields is';

CREATE FUNCTION bson_accumulate_change(target bson, fields bson, added bson[],
  removed bson[] DEFAULT NULL, order_by bson DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_change' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bson_accumulate_change(bson, bson, bson[], bson[], bson) IS
  'The target document, whose fields bson_accumulate_set made, after documents were added and '
  'removed; NULL if its state is not sufficient';
