/*
 * change.c
 *		The calls that update, replace and delete documents of collections.
 *
 * One document is found and locked by a first statement, so that the second, which writes it, sees
 * it as it was locked.  If the filter gives the key of a collection, only that document can match,
 * and one statement does both.  A document on another server comes here, is changed, and goes back.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "bson/collation.h"
#include "mql/collection_split.h"
#include "mql/projection.h"
#include "mql/run.h"
#include "mql/update.h"
#include "patterns/collection/calls.h"

#define UPDATE_ATTEMPTS 3
#define DELETE_ATTEMPTS 10

/* A call */
typedef struct Change
{
	DpCall call;
	bool deletes;
	bool multi; /* all documents, and not one */
	bool upsert;
	bool finds;                 /* the result is the document, */
	bool return_new;            /* as it is then, */
	struct varlena *projection; /* as this shows it; or NULL */
	bool locks;                 /* the row is locked while it is located */
	const char *lock;           /* the clause */
	ParamListInfo params;
	int64 tested; /* documents that the last statement compared with their update */
	int64 shown;  /* that matched before it, if they were counted */

	/* results */
	int64 matched;
	int64 modified;
	Datum upserted; /* the _id, if .. */
	bool has_upserted;
	struct varlena *doc;
	Datum insertion;         /* the document of an upsert */
	struct varlena *updated; /* of a remote row, or NULL if it stays */
} Change;

/* The documents that an update sees, which its statement knows by a ticket */
typedef struct Seen
{
	int64 ticket;
	int64 count;
	int64 unchanged;
	MemoryContext context; /* of the last document before the update, and after it if it changes */
	struct varlena *doc;
	struct varlena *updated;
	struct Seen *outer; /* of the statement around this one */
} Seen;

static Seen *seen_last = NULL;
static int64 last_ticket = 0;

static bool flag(FunctionCallInfo fcinfo, int n, const char *name);
static struct varlena *value_argument(FunctionCallInfo fcinfo, int n);
static struct varlena *replacement_argument(FunctionCallInfo fcinfo, int n);
static void change_begin(Change *c, FunctionCallInfo fcinfo);
static Datum change_counts(Change *c, FunctionCallInfo fcinfo);
static Datum change_document(Change *c, FunctionCallInfo fcinfo);
static void change_run(Change *c);
static bool change_single(Change *c);
static bool change_located(Change *c);
static bool change_remote(Change *c);
static void change_split(Change *c);
static void change_rows(Change *c, const char *row);
static int64 count_rows(Change *c);
static void change_insert(Change *c, bool last);
static DpUpdate *compile_update(const Change *c);
static void by_collation(Change *c, void (*function)(void *));
static void make_insertion(void *arg);
static void make_updated(void *arg);
static void project(void *arg);
static bool may_update(Oid relid);
static Seen *seen_by(int64 ticket);

/* ---------------------------------------------------------------- the calls */

/*
 * collection_update(rel regclass, filter bson, update anycompatible, upsert boolean, multi boolean,
 * array_filters bson_value, sort bson, collation bson) -> (matched bigint, modified bigint,
 * upserted bson_value)
 */
DP_FUNCTION(dp_collection_update);
Datum
dp_collection_update(PG_FUNCTION_ARGS)
{
	Change c;

	change_begin(&c, fcinfo);
	c.call.update = value_argument(fcinfo, 2);
	c.upsert = flag(fcinfo, 3, "upsert");
	c.multi = flag(fcinfo, 4, "multi");
	c.call.array_filters = dp_call_document(fcinfo, 5);
	c.call.sort = dp_call_document(fcinfo, 6);
	c.call.collation = dp_call_document(fcinfo, 7);
	return change_counts(&c, fcinfo);
}

/*
 * collection_replace(rel regclass, filter bson, replacement anycompatible, upsert boolean, sort
 * bson, collation bson) -> (matched bigint, modified bigint, upserted bson_value)
 */
DP_FUNCTION(dp_collection_replace);
Datum
dp_collection_replace(PG_FUNCTION_ARGS)
{
	Change c;

	change_begin(&c, fcinfo);
	c.call.update = replacement_argument(fcinfo, 2);
	c.upsert = flag(fcinfo, 3, "upsert");
	c.call.sort = dp_call_document(fcinfo, 4);
	c.call.collation = dp_call_document(fcinfo, 5);
	return change_counts(&c, fcinfo);
}

/* collection_delete(rel regclass, filter bson, multi boolean, collation bson) -> bigint */
DP_FUNCTION(dp_collection_delete);
Datum
dp_collection_delete(PG_FUNCTION_ARGS)
{
	Change c;

	change_begin(&c, fcinfo);
	c.deletes = true;
	c.multi = flag(fcinfo, 2, "multi");
	c.call.collation = dp_call_document(fcinfo, 3);
	change_run(&c);
	PG_RETURN_INT64(c.modified);
}

/*
 * collection_find_one_and_update(rel regclass, filter bson, update anycompatible, projection bson,
 * sort bson, upsert boolean, return_new boolean, array_filters bson_value, collation bson) -> bson
 */
DP_FUNCTION(dp_collection_find_one_and_update);
Datum
dp_collection_find_one_and_update(PG_FUNCTION_ARGS)
{
	Change c;

	change_begin(&c, fcinfo);
	c.call.update = value_argument(fcinfo, 2);
	c.projection = dp_call_document(fcinfo, 3);
	c.call.sort = dp_call_document(fcinfo, 4);
	c.upsert = flag(fcinfo, 5, "upsert");
	c.return_new = flag(fcinfo, 6, "return_new");
	c.call.array_filters = dp_call_document(fcinfo, 7);
	c.call.collation = dp_call_document(fcinfo, 8);
	return change_document(&c, fcinfo);
}

/*
 * collection_find_one_and_replace(rel regclass, filter bson, replacement anycompatible, projection
 * bson, sort bson, upsert boolean, return_new boolean, collation bson) -> bson
 */
DP_FUNCTION(dp_collection_find_one_and_replace);
Datum
dp_collection_find_one_and_replace(PG_FUNCTION_ARGS)
{
	Change c;

	change_begin(&c, fcinfo);
	c.call.update = replacement_argument(fcinfo, 2);
	c.projection = dp_call_document(fcinfo, 3);
	c.call.sort = dp_call_document(fcinfo, 4);
	c.upsert = flag(fcinfo, 5, "upsert");
	c.return_new = flag(fcinfo, 6, "return_new");
	c.call.collation = dp_call_document(fcinfo, 7);
	return change_document(&c, fcinfo);
}

/*
 * collection_find_one_and_delete(rel regclass, filter bson, projection bson, sort bson, collation
 * bson) -> bson
 */
DP_FUNCTION(dp_collection_find_one_and_delete);
Datum
dp_collection_find_one_and_delete(PG_FUNCTION_ARGS)
{
	Change c;

	change_begin(&c, fcinfo);
	c.deletes = true;
	c.projection = dp_call_document(fcinfo, 2);
	c.call.sort = dp_call_document(fcinfo, 3);
	c.call.collation = dp_call_document(fcinfo, 4);
	return change_document(&c, fcinfo);
}

/* ---------------------------------------------------------------- arguments and results */

static bool
flag(FunctionCallInfo fcinfo, int n, const char *name)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s cannot be null", name)));
	return PG_GETARG_BOOL(n);
}

/* An update. */
static struct varlena *
value_argument(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("update cannot be null")));
	return dp_call_value(PG_GETARG_DATUM(n), get_fn_expr_argtype(fcinfo->flinfo, n));
}

/* A whole document. */
static struct varlena *
replacement_argument(FunctionCallInfo fcinfo, int n)
{
	struct varlena *update = value_argument(fcinfo, n);
	DpValue value = dp_value_of_varlena(update);
	bool replaces = value.type == DP_TYPE_DOCUMENT;
	DpIter iter;
	DpElement first;

	if (replaces)
	{
		dp_iter_init_value(&iter, &value);
		replaces = !dp_iter_next(&iter, &first) || first.name[0] != '$';
	}
	if (!replaces)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a replacement must be a document without update operators")));
	return update;
}

static void
change_begin(Change *c, FunctionCallInfo fcinfo)
{
	memset(c, 0, sizeof(Change));
	dp_call_begin(&c->call, fcinfo, 1);
}

static Datum
change_counts(Change *c, FunctionCallInfo fcinfo)
{
	TupleDesc desc;
	Datum values[3];
	bool nulls[3] = { false };

	change_run(c);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(c->matched);
	values[1] = Int64GetDatum(c->modified);
	values[2] = c->upserted;
	nulls[2] = !c->has_upserted;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

static Datum
change_document(Change *c, FunctionCallInfo fcinfo)
{
	c->finds = true;
	c->call.projection = c->projection == NULL ? dp_call_no_fields() : c->projection;
	change_run(c);
	if (c->projection != NULL)
		by_collation(c, project);
	if (c->doc == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(c->doc);
}

/* Runs a function of a call that compares by the call's collation. */
static void
by_collation(Change *c, void (*function)(void *))
{
	DpValue collation;

	if (c->call.collation != NULL)
		collation = dp_value_of_document(c->call.collation);
	dp_collated(c->call.collation == NULL ? NULL : &collation, function, c);
}

/* What the projection shows of the document.  Its errors are raised also if there is none. */
static void
project(void *arg)
{
	Change *c = arg;
	DpValue filter = dp_value_of_document(c->call.filter);
	DpValue projection = dp_value_of_document(c->projection);
	DpProjection *compiled = dp_projection_compile(&projection, 0);
	DpValue doc;
	struct varlena *shown;

	if (c->doc == NULL)
		return;
	doc = dp_value_of_document(c->doc);
	shown =
		dp_projection_apply(compiled, &doc, dp_filter_compile(&filter, DP_FILTER_DOCUMENT, NULL));
	if (shown != NULL)
		c->doc = shown;
}

/* ---------------------------------------------------------------- one call */

/* Fills the results. */
static void
change_run(Change *c)
{
	DpCall *call = &c->call;
	int attempts = c->deletes ? DELETE_ATTEMPTS : UPDATE_ATTEMPTS;
	bool is_single;

	dp_call_prepare(call);
	is_single = call->is_single && !c->multi && call->sql[DP_CALL_CHANGE] == NULL;
	if (c->multi && call->sort != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("sort cannot be combined with multi")));
	if (!c->multi && call->sql[DP_CALL_LOCATE] == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot distinguish the rows of \"%s\"", get_rel_name(call->relid)),
				 errdetail("It does not contain the primary key of one table."),
				 errhint("Updates and deletions of all matching documents work, with multi => "
						 "true.")));
	if (call->collation != NULL && call->sql[DP_CALL_CHANGE] != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("collation is not supported for changes that concern split fields")));
	if (call->collation != NULL && call->is_remote && c->multi && !c->deletes)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("collation and multi cannot be combined for a distributed table")));
	/* errors of the update are raised also if no document matches */
	if (!c->deletes && !is_single)
		(void) compile_update(c);

	/* locking a row before it is deleted requires UPDATE privilege */
	c->locks = (call->is_table || call->is_remote) && (!c->deletes || may_update(call->relid));
	c->lock = c->deletes ? " FOR UPDATE OF t" : " FOR NO KEY UPDATE OF t";
	c->params = dp_call_params(call);
	/*
	 * again if another transaction meanwhile changes a found row of a view, or inserts the document
	 * of an upsert
	 */
	for (int attempt = 1; attempt <= attempts; attempt++)
	{
		bool found = false;

		if (call->sql[DP_CALL_CHANGE] != NULL)
			change_split(c);
		else if (c->multi)
		{
			change_rows(c, NULL);
			/* a trigger suppressed it, or another transaction was first: again with locks */
			if (c->matched == 0 && c->tested > 0)
				found = (c->shown = count_rows(c)) > 0;
		}
		else if (!is_single || !change_single(c))
			found = call->is_remote ? change_remote(c) : change_located(c);
		if (c->matched > 0)
			return;
		if (found)
			continue;
		if (c->upsert)
			change_insert(c, attempt == attempts);
		else if (!c->deletes && is_single)
			(void) compile_update(c);
		if (!c->upsert || c->has_upserted)
			return;
	}
}

/*
 * Changes the row that has the key.  Returns false if the update leaves it unchanged, or another
 * transaction has changed it so that it does not match: then it is not locked.
 */
static bool
change_single(Change *c)
{
	change_rows(c, NULL);
	return c->modified > 0 || c->tested == 0;
}

/* Locates, locks and changes a row.  Returns whether one was there. */
static bool
change_located(Change *c)
{
	const char *const *sql = c->call.sql;
	const char *row = sql[DP_CALL_LOCATED];
	DpFirstRow place;

	c->matched = c->modified = 0;
	c->doc = NULL;
	dp_first_row_init(&place);
	dp_call_write(psprintf("%s%s", sql[DP_CALL_LOCATE], c->locks ? c->lock : ""), c->params,
				  &place.methods);
	if (!place.received)
		return false;
	if (row != NULL)
	{
		dp_call_set(c->params, DP_PARAM_TABLE, place.values[0]);
		dp_call_set(c->params, DP_PARAM_TID, place.values[1]);
	}
	else
	{
		row = TextDatumGetCString(place.values[2]);
		if (OidIsValid(c->call.base) && may_update(c->call.base))
		{
			char *hold = psprintf("SELECT FROM %s WHERE %s%s", sql[DP_CALL_SOURCE], row, c->lock);

			dp_run_writes(dp_run_plan(hold, NULL, 0, NULL, NULL), hold, NULL, None_Receiver);
		}
	}
	change_rows(c, row);
	if (c->locks)
		c->matched = 1;
	return true;
}

/* The same for a row on another server, which can lock it only if it is asked for that row alone.
 */
static bool
change_remote(Change *c)
{
	const char *const *sql = c->call.sql;
	const char *row;
	DpFirstRow place;
	DpFirstRow locked;
	DpFirstRow result;
	DpValue updated;
	StringInfoData update;

	dp_first_row_init(&place);
	dp_call_write(sql[DP_CALL_LOCATE], c->params, &place.methods);
	if (!place.received)
		return false;
	row = TextDatumGetCString(place.values[2]);
	dp_first_row_init(&locked);
	dp_call_write(psprintf("SELECT %s FROM %s WHERE %s AND %s%s", sql[DP_CALL_DOC],
						   sql[DP_CALL_SOURCE], sql[DP_CALL_CONDITIONS], row,
						   c->locks ? c->lock : ""),
				  c->params, &locked.methods);
	if (!locked.received)
		return true;
	c->matched = 1;
	c->doc = PG_DETOAST_DATUM(locked.values[0]);
	if (c->deletes)
	{
		c->modified = dp_call_write(psprintf("DELETE FROM %s WHERE %s", sql[DP_CALL_SOURCE], row),
									c->params, None_Receiver);
		return true;
	}
	by_collation(c, make_updated);
	if (c->updated == NULL)
		return true;
	updated = dp_value_of_document(c->updated);
	dp_call_set(c->params, DP_PARAM_UPDATE, PointerGetDatum(dp_value_to_varlena(&updated)));
	initStringInfo(&update);
	appendStringInfo(&update, "UPDATE %s SET %s = ($11)::", sql[DP_CALL_SOURCE],
					 quote_identifier(sql[DP_CALL_DOC_COLUMN]));
	dp_sql_own_schema(&update);
	appendStringInfo(&update, "bson WHERE %s RETURNING %s", row, sql[DP_CALL_DOC]);
	dp_first_row_init(&result);
	c->modified = dp_call_write(update.data, c->params, &result.methods);
	if (c->return_new && result.received)
		c->doc = PG_DETOAST_DATUM(result.values[0]);
	return true;
}

/* Changes the rows that match, or of them the one that satisfies the condition. */
static void
change_rows(Change *c, const char *row)
{
	const DpCall *call = &c->call;
	const char *column = quote_identifier(call->sql[DP_CALL_DOC_COLUMN]);
	bool returns = c->finds && (c->deletes || c->return_new);
	Seen own = { .ticket = ++last_ticket, .context = CurrentMemoryContext, .outer = seen_last };
	DpFirstRow result;
	StringInfoData sql;

	/* a row that was locked when it matched still matches */
	if (row == NULL)
		row = call->sql[DP_CALL_CONDITIONS];
	else if (!c->locks)
		row = psprintf("%s AND %s", call->sql[DP_CALL_CONDITIONS], row);
	initStringInfo(&sql);
	if (c->deletes)
		appendStringInfo(&sql, "DELETE FROM %s", call->sql[DP_CALL_SOURCE]);
	else if (call->is_remote)
	{
		StringInfoData updated;

		initStringInfo(&updated);
		dp_sql_own_schema(&updated);
		appendStringInfo(&updated, "bson_update_immutable(%s, $11, $1, $12)",
						 call->sql[DP_CALL_DOC]);
		appendStringInfo(&sql, "UPDATE %s SET %s = %s", call->sql[DP_CALL_SOURCE], column,
						 updated.data);
		row = psprintf("%s AND %s::pg_catalog.bytea OPERATOR(pg_catalog.<>) %s::pg_catalog.bytea",
					   row, call->sql[DP_CALL_DOC], updated.data);
	}
	else
	{
		StringInfoData updated;

		initStringInfo(&updated);
		if (call->collation == NULL)
			dp_sql_own_schema(&updated);
		appendStringInfo(&updated,
						 call->collation == NULL ? "bson_update(%s, $11, $1, $12)"
												 : "docpatterns._collated_update(%s, $11, $1, $12, "
												   "false, $8)",
						 call->sql[DP_CALL_DOC]);
		appendStringInfo(
			&sql, "UPDATE %s SET %s = coalesce(docpatterns._collection_updated(%s, $13), %s)",
			call->sql[DP_CALL_SOURCE], column, call->sql[DP_CALL_DOC], updated.data);
		/* the planner puts this last, because of its cost */
		row = psprintf("%s AND docpatterns._collection_changes(%s, %s, $13)", row,
					   call->sql[DP_CALL_DOC], updated.data);
	}
	appendStringInfo(&sql, " WHERE %s", row);
	if (returns)
		appendStringInfo(&sql, " RETURNING t.%s", column);

	/* conditions of a view can be tested after those of the update: what these saw may be hidden */
	if (c->multi && !c->deletes && !call->is_table)
		c->shown = count_rows(c);
	dp_first_row_init(&result);
	dp_call_set(c->params, DP_PARAM_TICKET, Int64GetDatum(own.ticket));
	seen_last = &own;
	PG_TRY();
	{
		DestReceiver *dest = returns ? &result.methods : None_Receiver;

		if (call->is_table || c->multi)
			c->modified = dp_call_write(sql.data, c->params, dest);
		else
			/* the condition is a constant */
			c->modified = dp_run_writes(dp_run_plan(sql.data, c->params, 0, NULL, NULL), sql.data,
										c->params, dest);
	}
	PG_FINALLY();
	{
		seen_last = own.outer;
	}
	PG_END_TRY();
	c->matched = Max(c->modified + (call->is_table || !c->multi ? own.unchanged : 0), c->shown);
	c->doc = NULL;
	if (returns && !result.nulls[0])
		c->doc = (struct varlena *) DatumGetPointer(result.values[0]);
	else if (c->finds && own.doc != NULL)
		c->doc = PG_DETOAST_DATUM(PointerGetDatum(own.doc));
	c->tested = own.count;
}

/* How many rows match.  Those of a table are locked. */
static int64
count_rows(Change *c)
{
	return dp_call_write(psprintf("SELECT FROM %s WHERE %s%s", c->call.sql[DP_CALL_SOURCE],
								  c->call.sql[DP_CALL_CONDITIONS],
								  c->locks && c->call.is_table ? c->lock : ""),
						 c->params, None_Receiver);
}

/* Changes whole documents, of which patterns write the parts. */
static void
change_split(Change *c)
{
	DpFirstRow row;
	Datum *docs;
	bool *nulls; /* nothing is left of a deleted document */
	int n;

	if (!c->multi)
		dp_call_set(c->params, DP_PARAM_TAKE, Int64GetDatum(1));
	dp_call_set(c->params, DP_PARAM_FINDS, BoolGetDatum(c->finds));
	dp_first_row_init(&row);
	dp_call_write(c->call.sql[DP_CALL_CHANGE], c->params, &row.methods);
	c->matched = DatumGetInt64(row.values[0]);
	c->modified = DatumGetInt64(row.values[1]);
	if (row.nulls[2])
		return;
	deconstruct_array(DatumGetArrayTypeP(row.values[2]), dp_types()->bson, -1, false, TYPALIGN_INT,
					  &docs, &nulls, &n);
	c->doc = (struct varlena *) DatumGetPointer(docs[c->return_new && c->modified > 0 ? 1 : 0]);
}

/* Inserts the document of an upsert, unless another transaction has; last: then it is an error. */
static void
change_insert(Change *c, bool last)
{
	const char *const *sql = c->call.sql;
	DpFirstRow row;

	by_collation(c, make_insertion);
	dp_call_set(c->params, DP_PARAM_DOCS,
				PointerGetDatum(construct_array(&c->insertion, 1, dp_types()->bson, -1, false,
												TYPALIGN_INT)));
	if (OidIsValid(c->call.hiding))
		dp_make_way_hook(c->call.hiding, c->params->params[DP_PARAM_DOCS].value);
	dp_first_row_init(&row);
	dp_call_write(psprintf("%s%s RETURNING coalesce(%s, 'null'), t.%s", sql[DP_CALL_INSERTION],
						   c->locks && !last ? " ON CONFLICT DO NOTHING" : "", sql[DP_CALL_ID],
						   quote_identifier(sql[DP_CALL_DOC_COLUMN])),
				  c->params, &row.methods);
	if (!row.received)
		return;
	c->has_upserted = true;
	c->upserted = row.values[0];
	if (c->return_new && !row.nulls[1])
		c->doc = (struct varlena *) DatumGetPointer(row.values[1]);
}

static void
make_insertion(void *arg)
{
	Change *c = arg;

	c->insertion = PointerGetDatum(dp_update_insert(compile_update(c)));
}

static void
make_updated(void *arg)
{
	Change *c = arg;

	c->updated = dp_update_apply(compile_update(c), c->doc, false);
}

/* The update.  Raises INVALID_PARAMETER_VALUE if one document would replace several. */
static DpUpdate *
compile_update(const Change *c)
{
	DpValue filter = dp_value_of_document(c->call.filter);
	DpValue *update = palloc(sizeof(DpValue));
	DpValue *array_filters = NULL;
	DpUpdate *compiled;

	*update = dp_value_of_varlena(c->call.update);
	if (c->call.array_filters != NULL)
	{
		array_filters = palloc(sizeof(DpValue));
		*array_filters = dp_value_of_varlena(c->call.array_filters);
	}
	compiled = dp_update_compile(update, &filter, array_filters, c->multi && c->call.is_remote);
	if (c->multi && dp_update_replaces(compiled))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot replace several documents by a whole document"),
						errhint("With multi, use update operators such as $set, or a pipeline.")));
	return compiled;
}

/* Whether the user may lock rows of the table. */
static bool
may_update(Oid relid)
{
	return pg_class_aclcheck(relid, GetUserId(), ACL_UPDATE) == ACLCHECK_OK ||
		   pg_attribute_aclcheck_all(relid, GetUserId(), ACL_UPDATE, ACLMASK_ANY) == ACLCHECK_OK;
}

/* ---------------------------------------------------------------- what an update sees */

/* The statement with the ticket; NULL if it does not run. */
static Seen *
seen_by(int64 ticket)
{
	Seen *seen = seen_last;

	while (seen != NULL && seen->ticket != ticket)
		seen = seen->outer;
	return seen;
}

/*
 * _collection_changes(doc bson, updated bson, ticket bigint) -> boolean: whether an update has
 * changed the document.  If another transaction has changed the document, the last call is about
 * what the update sees.
 */
DP_FUNCTION(dp_collection_changes);
Datum
dp_collection_changes(PG_FUNCTION_ARGS)
{
	bool changes = !datumIsEqual(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), false, -1);
	Seen *seen = seen_by(PG_GETARG_INT64(2));
	MemoryContext old;

	if (seen == NULL)
		PG_RETURN_BOOL(changes);
	seen->count++;
	seen->unchanged += !changes;
	if (seen->doc != NULL)
		pfree(seen->doc);
	if (seen->updated != NULL)
		pfree(seen->updated);
	old = MemoryContextSwitchTo(seen->context);
	seen->updated = NULL;
	seen->doc = (struct varlena *) DatumGetPointer(datumCopy(PG_GETARG_DATUM(0), false, -1));
	if (changes)
		seen->updated =
			(struct varlena *) DatumGetPointer(datumCopy(PG_GETARG_DATUM(1), false, -1));
	MemoryContextSwitchTo(old);
	PG_RETURN_BOOL(changes);
}

/*
 * _collection_updated(doc bson, ticket bigint) -> bson: what _collection_changes() has seen the
 * document become; NULL if that was about another one
 */
DP_FUNCTION(dp_collection_updated);
Datum
dp_collection_updated(PG_FUNCTION_ARGS)
{
	Seen *seen = seen_by(PG_GETARG_INT64(1));

	if (seen == NULL || seen->updated == NULL ||
		!datumIsEqual(PG_GETARG_DATUM(0), PointerGetDatum(seen->doc), false, -1))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(datumCopy(PointerGetDatum(seen->updated), false, -1));
}
