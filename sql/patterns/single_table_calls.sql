-- Calls of single tables, with the privileges of the caller; those for single items and queries are
-- in src/patterns/single_table/.

CREATE FUNCTION single_table_key(rel regclass, entity text, doc bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_single_table_key' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION single_table_key(regclass, text, bson) IS
  'The keys that an entity''s templates make of a document, with values escaped. Reads no rows. '
  'Errors: 42704 an unknown entity, 23502 or 23514 missing or invalid fields';

CREATE FUNCTION single_table_put(rel regclass, entity text, doc bson, condition bson DEFAULT NULL,
  return_values text DEFAULT 'all_new') RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_single_table_put' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION single_table_put(regclass, text, bson, bson, text) IS
  'Puts an item, replacing the one with its keys; entity NULL: as the document says. Returns it '
  'as stored; return_values: all_old the replaced item, none NULL. Locks the item. Errors: 42704 '
  'an unknown entity, 23502 or 23514 missing or invalid fields, or the condition is not met, '
  '40001 too many attempts, 42501';

CREATE FUNCTION single_table_get(rel regclass, pk text, sk text, fields bson DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_single_table_get' LANGUAGE C STABLE;
COMMENT ON FUNCTION single_table_get(regclass, text, text, bson) IS
  'The item with these keys, projected by fields; NULL if there is none or it has expired. Needs '
  'SELECT; one look-up, no locks';

CREATE FUNCTION single_table_update(rel regclass, pk text, sk text, changes bson,
  condition bson DEFAULT NULL, upsert boolean DEFAULT false, array_filters bson_value DEFAULT NULL,
  return_values text DEFAULT 'all_new') RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_single_table_update' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION single_table_update(regclass, text, text, bson, bson, boolean, bson_value,
  text) IS
  'Applies an update to an item and returns the result; NULL without an item, unless upsert '
  'creates one. return_values: all_old the item before, updated_old or updated_new only what the '
  'update names, before or after it, none NULL. Locks the item. Errors: 23514 the condition is not '
  'met, 22023 bad return_values, those of bson_update(), 40001';

CREATE FUNCTION single_table_delete(rel regclass, pk text, sk text, condition bson DEFAULT NULL,
  return_values text DEFAULT 'all_old') RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_single_table_delete' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION single_table_delete(regclass, text, text, bson, text) IS
  'Deletes an item and returns it; NULL without one, or with return_values none. Needs SELECT, '
  'UPDATE and DELETE. Locks the item. Error: 23514 the condition is not met';

CREATE FUNCTION single_table_query(
  rel regclass, pk text, sk_begins_with text DEFAULT NULL, sk_between text[] DEFAULT NULL,
  sk_op text DEFAULT NULL, sk text DEFAULT NULL,
  index int DEFAULT NULL, descending boolean DEFAULT false, take int DEFAULT NULL,
    after bson DEFAULT NULL, filter bson DEFAULT NULL, fields bson DEFAULT NULL,
  count_only boolean DEFAULT false) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_single_table_query' LANGUAGE C STABLE COST 100 ROWS 20;
COMMENT ON FUNCTION single_table_query(regclass, text, text, text[], text, text, int, boolean, int,
  bson, bson, bson, boolean) IS
  'Items of a partition of the table or of a secondary index in the order of their sort keys '
  '(bytes). take: at most so many that match filter; after: the last document of the previous '
  'page; fields: a projection; count_only: only {count: n}, how many they are. One index scan, no '
  'locks; needs SELECT. Error: 22023 arguments that do not fit';

CREATE FUNCTION single_table_batch_get(rel regclass, keys bson_value, fields bson DEFAULT NULL)
  RETURNS SETOF bson
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp ROWS 100 AS $$
DECLARE
  o @extschema@.bson := docpatterns._single_table_options(rel);
  k record;
  item @extschema@.bson;
BEGIN
  IF keys IS NULL OR @extschema@.bson_typeof(keys) <> 'array' THEN
    RAISE EXCEPTION 'keys must be an array of documents like {"PK": .., "SK": ..}'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR k IN SELECT @extschema@.bson_typeof(e.value) AS type, e.value
      FROM @extschema@.bson_elements(keys) AS e (value) LOOP
    IF k.type <> 'object' THEN
      RAISE EXCEPTION 'keys must be an array of documents like {"PK": .., "SK": ..}'
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    item := @extschema@.single_table_get(rel,
        docpatterns._single_table_key_of(k.value::@extschema@.bson, 'PK'),
        docpatterns._single_table_key_of(k.value::@extschema@.bson, 'SK'), fields);
    IF item IS NOT NULL THEN
      RETURN NEXT item;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION single_table_batch_get(regclass, bson_value, bson) IS
  'The items with these keys, in their order, without missing ones, in one snapshot. Error: 22023 '
  'invalid keys';

CREATE FUNCTION docpatterns._single_table_key_of(doc bson, field text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v @extschema@.bson_value := doc OPERATOR(@extschema@.->) field;
BEGIN
  IF v IS NULL OR @extschema@.bson_typeof(v) <> 'string' THEN
    RAISE EXCEPTION 'a key has no "%"', field USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN v::text;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_key_of(bson, text) IS
  'a key that a document names; error 22023 if it does not';

CREATE FUNCTION single_table_transact(rel regclass, ops bson_value) RETURNS integer
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN docpatterns._single_table_run(rel, ops, '{put,update,delete,check}', true);
END
$$;
COMMENT ON FUNCTION single_table_transact(regclass, bson_value) IS
  'Runs puts, updates, deletes and checks, all or none, and returns their number. Locks the items '
  'in the order of their keys. Errors: 22023 invalid operations, or two on one item, 23514 a '
  'condition is not met, and those of the single calls';

CREATE FUNCTION single_table_batch_write(rel regclass, ops bson_value) RETURNS integer
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN docpatterns._single_table_run(rel, ops, '{put,delete}', false);
END
$$;
COMMENT ON FUNCTION single_table_batch_write(regclass, bson_value) IS
  'Runs puts and deletes without conditions, all or none, and returns their number. Locks and '
  'errors as single_table_transact';

CREATE FUNCTION docpatterns._single_table_run(rel regclass, ops bson_value, steps text[],
  conditions boolean) RETURNS integer
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson := docpatterns._single_table_options(rel);
  done integer := 0;
  s record;
BEGIN
  IF ops IS NULL OR @extschema@.bson_typeof(ops) <> 'array' THEN
    RAISE EXCEPTION 'ops must be an array of documents like {"put": {..}}'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- all are read first; then locks are taken in the order of keys
  FOR s IN SELECT o.*, count(*) OVER (PARTITION BY o.pk, o.sk) AS n,
    (o.args OPERATOR(@extschema@.->) 'condition'::text)::@extschema@.bson AS condition
           FROM @extschema@.bson_elements(ops) AS e (value),
             docpatterns._single_table_op(rel, e.value, steps, conditions, options) AS o
             ORDER BY n DESC, o.pk COLLATE "C", o.sk COLLATE "C" LOOP
    IF s.n > 1 THEN
      RAISE EXCEPTION 'a transaction cannot have two operations on one item'
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    CASE s.step
      WHEN 'put' THEN
        PERFORM @extschema@.single_table_put(rel, @extschema@.bson_get_text(s.args, 'entity'),
            (s.args OPERATOR(@extschema@.->) 'doc'::text)::@extschema@.bson, s.condition);
      WHEN 'update' THEN
        PERFORM @extschema@.single_table_update(rel, s.pk, s.sk,
            (s.args OPERATOR(@extschema@.->) 'update'::text)::@extschema@.bson, s.condition,
          coalesce(@extschema@.bson_get_text(s.args, 'upsert') = 'true', false),
          s.args OPERATOR(@extschema@.->) 'array_filters'::text);
      WHEN 'delete' THEN
        PERFORM @extschema@.single_table_delete(rel, s.pk, s.sk, s.condition);
      ELSE
        PERFORM @extschema@.single_table_update(rel, s.pk, s.sk, '{"$set": {}}'::@extschema@.bson,
            s.condition);
    END CASE;
    done := done + 1;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_run(regclass, bson_value, text[], boolean) IS
  'runs operations of these kinds on items, with conditions or without';

CREATE FUNCTION docpatterns._single_table_op(rel regclass, op bson_value, steps text[],
  conditions boolean, options bson, OUT step text, OUT args bson, OUT pk text, OUT sk text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v record;
  k @extschema@.bson;
BEGIN
  SELECT b.key, CASE WHEN @extschema@.bson_typeof(b.value) = 'object' THEN
    b.value::@extschema@.bson END AS args, count(*) OVER () AS n INTO v
    FROM @extschema@.bson_each(CASE WHEN @extschema@.bson_typeof(op) = 'object' THEN
      op::@extschema@.bson END) b;
  IF v.n IS DISTINCT FROM 1 OR v.args IS NULL OR v.key <> ALL (steps) THEN
    RAISE EXCEPTION 'an operation must be one of %',
      (SELECT string_agg(format('{"%s": {..}}', w), ', ') FROM unnest(steps) w)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  step := v.key; args := v.args;
  PERFORM docpatterns._single_table_op_fields(step, args, conditions);
  IF step = 'put' THEN
    k := CASE WHEN @extschema@.bson_exists(args, 'entity')
              THEN @extschema@.single_table_key(rel, @extschema@.bson_get_text(args, 'entity'),
                  (args OPERATOR(@extschema@.->) 'doc'::text)::@extschema@.bson)
              ELSE docpatterns._single_table_own_key(rel,
                  (args OPERATOR(@extschema@.->) 'doc'::text)::@extschema@.bson, options) END;
  ELSE
    k := args;
  END IF;
  pk := docpatterns._single_table_key_of(k, 'PK');
  sk := docpatterns._single_table_key_of(k, 'SK');
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_op(regclass, bson_value, text[], boolean, bson) IS
  'an operation on an item: what it does, its arguments and the keys; error 22023 for a bad one';

CREATE FUNCTION docpatterns._single_table_own_key(rel regclass, doc bson, options bson) RETURNS bson
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  image @extschema@.bson := docpatterns._single_table_image(rel, NULL, doc);
BEGIN
  IF @extschema@.bson_exists(image, 'error') THEN
    RAISE EXCEPTION '%', @extschema@.bson_get_text(image, 'error')
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN @extschema@.bson_build('PK'::text, @extschema@.bson_get_text(image, 'pk'), 'SK'::text,
      @extschema@.bson_get_text(image, 'sk'));
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_own_key(regclass, bson, bson) IS
  'keys of a document that says itself what it is; error 23514 if it is no item';

CREATE FUNCTION docpatterns._single_table_op_fields(op text, args bson, conditions boolean)
  RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a record;
  key_fields text[] := ARRAY['PK'::text, 'SK'::text];
  known text[] := CASE op WHEN 'put' THEN '{entity,doc}' WHEN 'update' THEN
    key_fields || '{update,upsert,array_filters}'::text[] ELSE key_fields END
    || CASE WHEN conditions THEN '{condition}'::text[] ELSE '{}' END;
BEGIN
  FOR a IN SELECT e.key, @extschema@.bson_typeof(e.value) AS type
      FROM @extschema@.bson_each(args) e LOOP
    IF a.key <> ALL (known) THEN
      RAISE EXCEPTION 'operation "%" has no "%"', op, a.key
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF a.type <> (CASE WHEN a.key = ANY (key_fields) THEN 'string'
          WHEN a.key IN ('doc', 'update', 'condition') THEN 'object'
          WHEN a.key = 'upsert' THEN 'bool' WHEN a.key = 'array_filters' THEN 'array' ELSE 'string'
          END) THEN
      RAISE EXCEPTION '"%" of operation "%" cannot be a value of type %', a.key, op, a.type
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
  END LOOP;
  IF (op = 'put' AND NOT @extschema@.bson_exists(args, 'doc'))
      OR (op = 'update' AND NOT @extschema@.bson_exists(args, 'update'))
      OR (op = 'check' AND NOT @extschema@.bson_exists(args, 'condition')) THEN
    RAISE EXCEPTION 'operation "%" requires "%"', op, CASE op WHEN 'put' THEN 'doc'
      WHEN 'update' THEN 'update' ELSE 'condition' END USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_op_fields(text, bson, boolean) IS
  'error 22023 for what is wrong with an operation of a transaction';

CREATE FUNCTION single_table_purge(rel regclass, take int DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  done bigint;
BEGIN
  IF take < 0 THEN
    RAISE EXCEPTION 'take must not be negative' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT @extschema@.bson_exists(docpatterns._single_table_options(rel), 'ttl_field') THEN
    RETURN 0;
  END IF;
  -- locked rows are skipped: their writer may extend the expiry
  EXECUTE format('DELETE FROM %1$s AS t WHERE (t.pk, t.sk) IN (SELECT e.pk, e.sk FROM %1$s AS e '
      'WHERE e.expires_at <= $1 ORDER BY e.expires_at LIMIT $2 FOR UPDATE SKIP LOCKED) AND '
      't.expires_at <= $1', rel)
    USING clock_timestamp(), take;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END
$$;
COMMENT ON FUNCTION single_table_purge(regclass, int) IS
  'Deletes expired items, at most take of them, the oldest first, and returns their number; skips '
  'locked ones. Needs DELETE, UPDATE and SELECT. Error: 22023 a negative take';

CREATE FUNCTION docpatterns._single_table_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF @extschema@.bson_exists(docpatterns._single_table_options(rel), 'ttl_field') THEN
    RETURN QUERY SELECT * FROM docpatterns._pattern_expired(rel, 'expires_at', 'expired items');
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_due(regclass, text) IS
  'pattern_due of the single-table pattern';

CREATE FUNCTION docpatterns._single_table_maintain(rel regclass, name text, most int)
  RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.single_table_purge($1, $3)
$$;
COMMENT ON FUNCTION docpatterns._single_table_maintain(regclass, text, int) IS
  'pattern_maintain of the single-table pattern';
