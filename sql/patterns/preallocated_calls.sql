-- The functions of the preallocated pattern that users call.

CREATE FUNCTION preallocated_claim(rel regclass, key "any", slots text[], holder "any", hold_for interval DEFAULT NULL, name text DEFAULT NULL) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_claim' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_claim(regclass, "any", text[], "any", interval, text) IS
  'takes slots of a document for a holder, all of them (true) or none (false: somebody has one of them). hold_for: for that time, unless it is confirmed; NULL: for good. A hold that is over is free. Needs SELECT and UPDATE on the table. '
  'Locks these slots and holds the document FOR KEY SHARE (store => document: locks it); waits for who is claiming the same slots. '
  'Errors P0002 when there is no such document, 22023 for a slot that it does not have, 40001 in a transaction of one snapshot when a slot has changed hands since, 42809 for a key of another type';

CREATE FUNCTION preallocated_confirm(rel regclass, key "any", slots text[], holder "any", hold_for interval DEFAULT NULL, name text DEFAULT NULL) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_confirm' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_confirm(regclass, "any", text[], "any", interval, text) IS
  'makes slots that the holder has his for good, or with hold_for for that time from now on; all of them (true) or none (false: he does not have one of them, or no longer). Rights, locks and errors as preallocated_claim';

CREATE FUNCTION preallocated_release(rel regclass, key "any", slots text[], holder "any", name text DEFAULT NULL) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_release' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_release(regclass, "any", text[], "any", text) IS
  'frees slots that the holder has, or had until his time was over if nobody else has taken them; all of them (true) or none (false: he does not have one of them). Rights, locks and errors as preallocated_claim';

CREATE FUNCTION preallocated_slots(rel regclass, key "any", name text DEFAULT NULL) RETURNS TABLE (slot text, holder bson_value, until timestamptz)
  AS 'MODULE_PATHNAME', 'dp_preallocated_slots' LANGUAGE C VOLATILE ROWS 100;
COMMENT ON FUNCTION preallocated_slots(regclass, "any", text) IS
  'the slots of a document in order, who holds them (NULL: free) and until when (NULL: for good); needs SELECT on the table; errors P0002 when there is no such document, 22023 for a clock, 42809 for a key of another type';

CREATE FUNCTION preallocated_find(rel regclass, key "any", n int, name text DEFAULT NULL) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_preallocated_find' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_find(regclass, "any", int, text) IS
  'the first n free slots of a document that are side by side in one row, NULL if there are none; takes nothing. Needs SELECT on the table; errors P0002 when there is no such document, 22023 for a clock';

CREATE FUNCTION preallocated_find(doc bson, n int, field text DEFAULT NULL, fill "any" DEFAULT NULL) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_preallocated_find_in' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_find(bson, int, text, "any") IS
  'the same in a document (of the view <table>_whole). field: where its slots are (default: the first array of arrays, or else the first array); fill: what a free cell holds (default: 0; in a plain array any number is a free day). '
  'Error 22023 when there is no array of slots';

CREATE FUNCTION preallocated_extend(rel regclass, key "any", shape bson, name text DEFAULT NULL) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_preallocated_extend' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION preallocated_extend(regclass, "any", bson, text) IS
  'gives a document the slots of a larger shape of the same kind; those that it has stay as they are. Returns how many are new. Needs SELECT and UPDATE on the table, locks the document; errors P0002 when there is no such document, 22023 for a shape of another kind, 23514 when there would be too many';

CREATE FUNCTION preallocated_ranges(doc bson, path text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_preallocated_ranges' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_ranges(bson, text) IS
  'the numbers of an array as ranges: [1,2,3,7] becomes [[1,3],[7,7]]; what is no whole number (a taken cell) is in none. NULL if nothing is at the path; error 42804 for what is no array';

CREATE FUNCTION preallocated_cells(ranges bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_preallocated_cells_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_cells(bson_value) IS
  'the numbers of ranges: [[1,3],[7,7]] becomes [1,2,3,7]; errors 22023 for what is no range, 54000 above a million cells';
