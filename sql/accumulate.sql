-- Accumulators: the totals of groups of documents. The functions are in src/mql/accumulate_calls.c.

CREATE FUNCTION bson_accumulate_value(doc bson, expression bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_accumulate_value(bson, bson_value) IS 'the value of an expression of the aggregation language for the document, NULL if it is missing, for indexes that accumulators search; errors 0A000 for an unknown operator and for what is not immutable ($$NOW, $rand), 22023 and others of class 22 for wrong arguments; takes no locks';

CREATE FUNCTION docpatterns.bson_accumulate_step(internal, bson, bson) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_step' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns.bson_accumulate_step(internal, bson, bson, bson) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_step' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns.bson_accumulate_step(internal, bson, bson, bson, bson_value) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_step' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns.bson_accumulate_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_accumulate_serialize(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_accumulate_deserialize(bytea, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_accumulate_final(internal) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE bson_accumulate(doc bson, fields bson) (
  SFUNC = docpatterns.bson_accumulate_step, STYPE = internal, SSPACE = 1024, FINALFUNC = docpatterns.bson_accumulate_final,
  COMBINEFUNC = docpatterns.bson_accumulate_combine, SERIALFUNC = docpatterns.bson_accumulate_serialize,
  DESERIALFUNC = docpatterns.bson_accumulate_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_accumulate(bson, bson) IS 'a document of totals, as $group makes it: fields is name -> {accumulator: expression}, the result name -> value; $first, $last, $push and so on go by _id; NULL if there are no rows; errors 0A000 for an unknown accumulator or operator, 22023 for wrong arguments';

CREATE AGGREGATE bson_accumulate(doc bson, fields bson, order_by bson) (
  SFUNC = docpatterns.bson_accumulate_step, STYPE = internal, SSPACE = 1024, FINALFUNC = docpatterns.bson_accumulate_final,
  COMBINEFUNC = docpatterns.bson_accumulate_combine, SERIALFUNC = docpatterns.bson_accumulate_serialize,
  DESERIALFUNC = docpatterns.bson_accumulate_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_accumulate(bson, bson, bson) IS 'a document of totals, as without order_by, with the order that $first, $last, $push and so on go by, a sort specification; documents that are equal in it are told apart by the value that is wanted of them; errors 22023 for a specification that is none';

CREATE AGGREGATE bson_accumulate(doc bson, fields bson, order_by bson, key bson_value) (
  SFUNC = docpatterns.bson_accumulate_step, STYPE = internal, SSPACE = 1024, FINALFUNC = docpatterns.bson_accumulate_final,
  COMBINEFUNC = docpatterns.bson_accumulate_combine, SERIALFUNC = docpatterns.bson_accumulate_serialize,
  DESERIALFUNC = docpatterns.bson_accumulate_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_accumulate(bson, bson, bson, bson_value) IS 'a document of totals, as with order_by, with the key of the row, which orders documents that are equal in order_by; errors as without it';

CREATE FUNCTION bson_accumulate_set(target bson, fields bson, docs bson[], order_by bson DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_set' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bson_accumulate_set(bson, bson, bson[], bson) IS 'the target document with the totals of the documents as its fields, and with what bson_accumulate_change needs to know in its field _computed; NULL if target or fields is; errors 0A000 for an unknown accumulator or operator, 22023 for wrong arguments; takes no locks';

CREATE FUNCTION bson_accumulate_change(target bson, fields bson, added bson[], removed bson[] DEFAULT NULL, order_by bson DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_accumulate_change' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bson_accumulate_change(bson, bson, bson[], bson[], bson) IS 'the target document, whose fields bson_accumulate_set made, after documents were added and removed; NULL if it does not tell enough (the greatest value was removed) and has to be set from all documents; errors as bson_accumulate_set, XX001 for a damaged _computed; takes no locks';
