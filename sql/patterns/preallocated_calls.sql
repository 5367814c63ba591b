-- The functions of the preallocated pattern that users call.

CREATE FUNCTION preallocated_claim(rel regclass, key anycompatible, slots text[], holder "any",
  hold_for interval DEFAULT NULL, name text DEFAULT NULL) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_claim' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_claim(regclass, anycompatible, text[], "any", interval, text) IS
  'Takes slots for a holder, all of them (true) or none (false: one is taken). hold_for limits the '
  'claim, unless it is confirmed. Needs SELECT and UPDATE. Locks these slots, and the document FOR '
  'KEY SHARE (store document: its row); waits for claims of the same slots. Errors: 22023 a slot '
  'that does not exist, 40001 at REPEATABLE READ when a slot has changed since the snapshot';

CREATE FUNCTION preallocated_confirm(rel regclass, key anycompatible, slots text[], holder "any",
  hold_for interval DEFAULT NULL, name text DEFAULT NULL) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_confirm' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_confirm(regclass, anycompatible, text[], "any", interval, text) IS
  'Removes the expiry of the holder''s claims, or with hold_for sets it from now; all of them '
  '(true) or none (false: the holder no longer has one). Rights, locks and errors as '
  'preallocated_claim';

CREATE FUNCTION preallocated_release(rel regclass, key anycompatible, slots text[], holder "any",
  name text DEFAULT NULL) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_release' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_release(regclass, anycompatible, text[], "any", text) IS
  'Frees slots of the holder, also expired ones that nothing has claimed or removed since; all of '
  'them (true) or none (false). Rights, locks and errors as preallocated_claim';

CREATE FUNCTION preallocated_slots(rel regclass, key anycompatible, name text DEFAULT NULL)
  RETURNS TABLE (slot text, holder bson_value, until timestamptz)
  AS 'MODULE_PATHNAME', 'dp_preallocated_slots' LANGUAGE C VOLATILE ROWS 100;
COMMENT ON FUNCTION preallocated_slots(regclass, anycompatible, text) IS
  'The slots of a document in order, with holder (NULL: free) and expiry (NULL: none). Needs '
  'SELECT; reads one document and its claims. Error: 22023 a clock';

CREATE FUNCTION preallocated_find(rel regclass, key anycompatible, n int, name text DEFAULT NULL)
  RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_preallocated_find' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_find(regclass, anycompatible, int, text) IS
  'The first n free slots of a document side by side in one row, NULL if there are none; takes '
  'nothing. Needs SELECT. Error: 22023 a clock';

CREATE FUNCTION preallocated_find(doc bson, n int, field text DEFAULT NULL,
  fill anycompatible DEFAULT NULL)
  RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_preallocated_find_in' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_find(bson, int, text, anycompatible) IS
  'The same in a document. field is where its slots are (default: the first array of arrays, or '
  'else the first array), fill the value of a free cell. Error: 22023 no array of slots';

CREATE FUNCTION preallocated_extend(rel regclass, key anycompatible, shape bson,
  name text DEFAULT NULL)
  RETURNS int
  AS 'MODULE_PATHNAME', 'dp_preallocated_extend' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_extend(regclass, anycompatible, bson, text) IS
  'Gives a document the slots of a larger shape of the same kind and returns how many are new. '
  'Needs SELECT and UPDATE; locks the document. Errors: 22023 a shape of another kind, 23514 too '
  'many slots';

CREATE FUNCTION preallocated_ranges(doc bson, path text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_preallocated_ranges' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_ranges(bson, text) IS
  'The numbers of an array as ranges; taken cells are in none. NULL if nothing is at the path. '
  'Error: 42804 not an array';

CREATE FUNCTION preallocated_cells(ranges bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_preallocated_cells_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_cells(bson_value) IS
  'The numbers of ranges. Errors: 22023 invalid ranges, 54000 more than a million cells';
