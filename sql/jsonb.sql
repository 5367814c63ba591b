-- Casts between bson and jsonb or json. The functions are in src/bson/jsonb.c.

CREATE FUNCTION docpatterns.bson_to_jsonb(bson) RETURNS jsonb
  AS 'MODULE_PATHNAME', 'dp_bson_to_jsonb' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_to_jsonb(bson) IS
  'document as jsonb; types that jsonb lacks become Extended JSON; the last of several fields with '
  'one name stays; error 22P05 for a string with a null character';
CREATE CAST (bson AS jsonb) WITH FUNCTION docpatterns.bson_to_jsonb(bson) AS ASSIGNMENT;

CREATE FUNCTION docpatterns.jsonb_to_bson(jsonb) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_jsonb_to_bson' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.jsonb_to_bson(jsonb) IS
  'jsonb object as a document; Extended JSON inside it becomes the values it stands for; error '
  '22023 if it is no object, 22003 for a number of more than 34 digits';
-- Implicit: functions and operators for documents accept jsonb. (From json it is not: json has no
-- operators of its own, and json = json would become legal.)
CREATE CAST (jsonb AS bson) WITH FUNCTION docpatterns.jsonb_to_bson(jsonb) AS IMPLICIT;

-- PostgreSQL's functions that make JSON use a cast to json if it has a function. json is read as
-- text.
CREATE FUNCTION docpatterns.bson_to_json(bson) RETURNS json
  AS 'MODULE_PATHNAME', 'dp_cast_bson_to_json' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_to_json(bson) IS
  'document as json, in its own order; types that json lacks become Extended JSON';
CREATE CAST (bson AS json) WITH FUNCTION docpatterns.bson_to_json(bson) AS ASSIGNMENT;
CREATE CAST (json AS bson) WITH INOUT AS ASSIGNMENT;
