/*
 * calls.c
 *		The functions of the outlier pattern that users call.
 *
 * They need the same privileges as the work in plain SQL: rows of the table are
 * read and locked as the current user.  Only extras, on which users have no
 * privileges, are read and written as the owner, for rows that the user may see.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/limits.h"
#include "bson/reader.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/side/moves.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "mql/collection_split.h"
#include "patterns/outlier/outlier.h"

static DpOutlier *outlier_argument(FunctionCallInfo fcinfo, int rel, int name, LOCKMODE lock);
static struct varlena *value_argument(FunctionCallInfo fcinfo, int argno);
static void values_argument(FunctionCallInfo fcinfo, int first, DpValueList *values);
static int64 push_values(FunctionCallInfo fcinfo, DpOutlier *o, int key_argno);
static struct varlena *read_row(DpOutlier *o, const DpKey *key);
static bool write_as_user(DpOutlier *o, const DpKey *key, struct varlena *doc, bool in_order);
static void require_update(DpOutlier *o);

static bool method_is_split(DpDecl *decl, struct varlena *stored);
static struct varlena *
method_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest);
static struct varlena *method_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
								   struct varlena *new_whole);
static bool method_repair_row(DpDecl *decl, const DpKey *key);
static List *method_split(DpDecl *decl);
static char *split_search(const DpSplitField *field, const char *values);

static const DpOption options[] = {
	{ "field", DP_OPTION_PATH, DP_REQUIRED | DP_KEPT, DP_INTO(DpOutlier, field) },
	{ "link_id", DP_OPTION_TEXT, DP_REQUIRED, DP_INTO(DpOutlier, link_id) },
	{ "threshold", DP_OPTION_INT, DP_REQUIRED | DP_ALTERABLE, DP_INT_FROM(1),
	  DP_INTO(DpOutlier, threshold) },
	{ "flag", DP_OPTION_PATH, DP_REQUIRED | DP_KEPT | DP_GUARDED | DP_DERIVED,
	  DP_INTO(DpOutlier, flag) },
	{ "count_field", DP_OPTION_PATH, DP_KEPT | DP_GUARDED | DP_DERIVED, DP_INTO(DpOutlier, count) },
	{ "chunk", DP_OPTION_INT, DP_REQUIRED | DP_ALTERABLE, DP_BETWEEN(1, DP_OUTLIER_MAX_CHUNK),
	  DP_INTO(DpOutlier, chunk) },
	{ "keep", DP_OPTION_INT, DP_ALTERABLE, DP_INT_FROM(0),
	  DP_INTO(DpOutlier, keep) }, /* default: the whole threshold */
	{ "stay", DP_OPTION_WORD, DP_REQUIRED, DP_WORDS("first", "last"),
	  DP_INTO(DpOutlier, stay_last) },
	{ "is_set", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE, DP_INTO(DpOutlier, is_set) },
	{ "mode", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("immediate", "deferred"),
	  DP_INTO(DpOutlier, deferred) },
	{ "on_field", DP_OPTION_PATH, DP_TEXT_INTO(DpOutlier, link) },
	{ "index_elements", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE, DP_INTO(DpOutlier, indexed) },
	{ NULL }
};

DP_DEFINE_PATTERN(outlier) = { .name = "outlier",
							   .views = "whole",
							   .options = options,
							   .is_split = method_is_split,
							   .whole = method_whole,
							   .keep = method_keep,
							   .split = method_split,
							   .side = &dp_outlier_side,
							   .repair_row = method_repair_row };

/*
 * outlier_push(rel, key, VARIADIC values) -> number of values added
 */
DP_ROUTED_FUNCTION(dp_outlier_push, DP_ROUTE_KEY, 1)
{
	PG_RETURN_INT64(push_values(fcinfo, outlier_argument(fcinfo, 0, -1, RowExclusiveLock), 1));
}

/*
 * outlier_push_into(rel, name, key, VARIADIC values): the same for tables with several outlier
 * patterns
 */
DP_ROUTED_FUNCTION(dp_outlier_push_into, DP_ROUTE_KEY, 2)
{
	PG_RETURN_INT64(push_values(fcinfo, outlier_argument(fcinfo, 0, 1, RowExclusiveLock), 2));
}

/*
 * outlier_pull(rel, key, value, name) -> number of elements removed
 */
DP_ROUTED_FUNCTION(dp_outlier_pull, DP_ROUTE_KEY, 1)
{
	DpOutlier *o = outlier_argument(fcinfo, 0, 3, RowExclusiveLock);
	DpValue value = dp_value_of_varlena(value_argument(fcinfo, 2));
	DpKey key;
	struct varlena *doc;
	DpValue array;
	DpValueList kept = { 0 };
	int64 removed = 0;
	int n = 0;
	int i;

	dp_key_of_argument(o->decl, fcinfo, 1, &key);
	require_update(o);
	SPI_connect();
	doc = dp_outlier_lock(o, &key, false, NULL);
	if (doc == NULL)
		dp_row_missing(o->decl, &key);

	if (dp_outlier_array(o, doc, &array))
	{
		dp_values_add_array(&kept, &array);
		for (i = 0; i < kept.n; i++)
		{
			if (!dp_outlier_matches(o, &kept.v[i], &value))
				kept.v[n++] = kept.v[i];
		}
		removed = kept.n - n;
		kept.n = n;
	}
	if (dp_outlier_flagged(o, doc) && dp_outlier_exists(o, &key))
	{
		/* the store first: the document is refilled from it */
		int64 from_store = dp_outlier_remove(o, &key, &value, 1);

		if (removed > 0)
		{
			struct varlena *shorter = dp_outlier_arrange(o, doc, &kept, true, -1);

			write_as_user(o, &key, shorter, true);
		}
		if (removed + from_store > 0)
			dp_outlier_correct(o, &key, false);
		removed += from_store;
	}
	else if (removed > 0 &&
			 !write_as_user(o, &key,
							dp_outlier_arrange(o, doc, &kept, dp_outlier_flagged(o, doc), kept.n),
							false))
		removed = 0;
	SPI_finish();
	PG_RETURN_INT64(removed);
}

/*
 * outlier_contains(rel, key, value, name) -> bool
 */
DP_ROUTED_FUNCTION(dp_outlier_contains, DP_ROUTE_KEY, 1)
{
	DpOutlier *o = outlier_argument(fcinfo, 0, 3, NoLock);
	DpValue value = dp_value_of_varlena(value_argument(fcinfo, 2));
	DpKey key;
	struct varlena *doc;
	DpValue array;
	DpIter iter;
	DpValue element;
	bool found = false;

	dp_key_of_argument(o->decl, fcinfo, 1, &key);
	SPI_connect();
	doc = read_row(o, &key);
	if (doc == NULL)
		dp_row_missing(o->decl, &key);
	if (dp_outlier_array(o, doc, &array))
	{
		dp_iter_init_value(&iter, &array);
		while (!found && dp_iter_next_value(&iter, &element))
			found = dp_outlier_matches(o, &element, &value);
	}
	if (!found && dp_outlier_flagged(o, doc))
		found = dp_outlier_holds(o, &key, &value, false);
	SPI_finish();
	PG_RETURN_BOOL(found);
}

/*
 * outlier_count(rel, key, name) -> bigint: number of elements of the whole array
 */
DP_ROUTED_FUNCTION(dp_outlier_count, DP_ROUTE_KEY, 1)
{
	DpOutlier *o = outlier_argument(fcinfo, 0, 2, NoLock);
	DpKey key;
	struct varlena *doc;
	DpValue array;
	int64 count = 0;

	dp_key_of_argument(o->decl, fcinfo, 1, &key);
	SPI_connect();
	doc = read_row(o, &key);
	if (doc == NULL)
		dp_row_missing(o->decl, &key);
	if (dp_outlier_array(o, doc, &array))
		count = dp_document_count(array.data, array.len);
	if (dp_outlier_flagged(o, doc))
		count += dp_outlier_stored(o, &key, false);
	SPI_finish();
	PG_RETURN_INT64(count);
}

/*
 * outlier_page(rel, key, skip, take, name) -> (position, value)
 */
DP_ROUTED_FUNCTION(dp_outlier_page_sql, DP_ROUTE_KEY, 1)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpOutlier *o = outlier_argument(fcinfo, 0, 4, NoLock);
	int64 skip = PG_GETARG_INT64(2);
	int64 take = PG_GETARG_INT64(3);
	DpKey key;
	struct varlena *doc;
	DpValue array;
	DpValueList kept = { 0 };
	DpValueList page = { 0 };
	bool has_extras;
	int64 position;
	int i;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("skip and take must not be null")));
	if (skip < 0 || take < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("skip and take must not be negative")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_key_of_argument(o->decl, fcinfo, 1, &key);
	SPI_connect();
	doc = read_row(o, &key);
	if (doc == NULL)
		dp_row_missing(o->decl, &key);
	if (dp_outlier_array(o, doc, &array))
		dp_values_add_array(&kept, &array);
	has_extras = dp_outlier_flagged(o, doc);

	position = skip;
	if (has_extras && o->stay_last)
	{
		int64 stored = dp_outlier_stored(o, &key, false);

		if (skip < stored)
			dp_outlier_page(o, &key, skip, take, &page, false);
		skip = Max(0, skip - stored);
	}
	for (i = (int) Min(skip, kept.n); i < kept.n && page.n < take; i++)
		dp_values_add(&page, &kept.v[i]);
	if (has_extras && !o->stay_last && page.n < take)
		dp_outlier_page(o, &key, Max(0, skip - kept.n), take - page.n, &page, false);

	for (i = 0; i < page.n; i++)
	{
		Datum values[2];
		bool nulls[2] = { false, false };

		values[0] = Int64GetDatum(position + i);
		values[1] = PointerGetDatum(dp_value_to_varlena(&page.v[i]));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * outlier_find(rel, value, name) -> stored documents whose whole array contains the value
 */
DP_ROUTED_FUNCTION(dp_outlier_find, DP_ROUTE_ROWS, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpOutlier *o = outlier_argument(fcinfo, 0, 2, NoLock);
	DpDecl *decl = o->decl;
	struct varlena *wanted = value_argument(fcinfo, 1);
	DpValue value = dp_value_of_varlena(wanted);
	SPIPlanPtr plan;
	Datum args[2];
	Datum hash;
	List *keys;
	ListCell *lc;
	uint64 rows;
	uint64 i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	SPI_connect();

	/* in documents */
	plan = dp_statement(
		decl,
		o->indexed
			? "SELECT {doc} FROM {table}"
			  " WHERE docpatterns.bson_array_holds({path field}, {$1 bson_value})"
			  " AND docpatterns.bson_element_hashes({path field}) OPERATOR(pg_catalog.@>) {$2 int8[]}"
			: "SELECT {doc} FROM {table}"
			  " WHERE docpatterns.bson_array_holds({path field}, {$1 bson_value})");
	hash = Int64GetDatum((int64) dp_value_hash(&value, 0));
	args[0] = PointerGetDatum(wanted);
	args[1] =
		PointerGetDatum(construct_array(&hash, 1, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	rows = dp_run(decl, plan, args, NULL, DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
	for (i = 0; i < rows; i++)
	{
		bool isnull;
		Datum doc = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &doc, &isnull);
	}

	/* in extras: rows are read as the user, who may not see all */
	keys = dp_outlier_holders(o, &value);
	/* documents that also contain it themselves were returned above */
	plan = dp_statement(decl, "SELECT {doc} FROM {table} WHERE {key = $key}"
							  " AND docpatterns.bson_array_holds({path field}, {$key+1 bson_value})"
							  " IS NOT TRUE");
	foreach(lc, keys)
	{
		DpKey *key = lfirst(lc);
		Datum values[INDEX_MAX_KEYS + 1];

		CHECK_FOR_INTERRUPTS();
		memcpy(values, key->values, sizeof(Datum) * decl->nkeys);
		values[decl->nkeys] = PointerGetDatum(wanted);
		rows = dp_run(decl, plan, values, NULL, DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
		for (i = 0; i < rows; i++)
		{
			bool isnull;
			Datum doc = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &doc, &isnull);
		}
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * _outlier_rows(rel, name, values bson_value) -> key columns of the documents that the user sees
 * and whose extras contain one of the values, elements of an array
 */
DP_ROUTED_FUNCTION(dp_outlier_rows, DP_ROUTE_ROWS, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpOutlier *o = outlier_argument(fcinfo, 0, 1, NoLock);
	DpDecl *decl = o->decl;
	DpValue wanted = dp_value_of_varlena(PG_GETARG_VARLENA_PP(2));
	DpIter iter;
	DpValue value;
	bool nulls[INDEX_MAX_KEYS] = { false };

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (rsinfo->setDesc->natts != decl->nkeys)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("the primary key of table \"%s\" has %d columns",
							   dp_relation_name(decl->target), decl->nkeys)));
	for (int i = 0; i < decl->nkeys; i++)
		if (TupleDescAttr(rsinfo->setDesc, i)->atttypid != decl->keys[i].type)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of the primary key of table \"%s\" has another type",
							decl->keys[i].name, dp_relation_name(decl->target))));
	SPI_connect();
	dp_iter_init_value(&iter, &wanted);
	while (dp_iter_next_value(&iter, &value))
	{
		List *keys = dp_outlier_holders(o, &value);
		ListCell *lc;

		foreach(lc, keys)
		{
			DpKey *key = lfirst(lc);
			struct varlena *doc;

			CHECK_FOR_INTERRUPTS();
			if (dp_row_read(decl, key, "", DP_RUN_SNAPSHOT, &doc))
				tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, key->values, nulls);
		}
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * outlier_spill(rel, name) -> number of documents that were split
 */
DP_ROUTED_FUNCTION(dp_outlier_spill, DP_ROUTE_SUM, 0)
{
	DpOutlier *o = outlier_argument(fcinfo, 0, 1, RowExclusiveLock);
	int64 moved;
	DpActor self;

	dp_require_owner(o->decl->target);
	dp_owner_begin(o->decl->owner, &self);
	SPI_connect();
	moved = dp_outlier_correct_flagged(o, true);
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(moved);
}

/*
 * _outlier_rejoin(rel, name, key): moves all elements back into the row. Returns the size of the
 * document; writes only if it is allowed.
 */
DP_ROUTED_FUNCTION(dp_outlier_rejoin, DP_ROUTE_KEY, 2)
{
	DpOutlier *o = outlier_argument(fcinfo, 0, 1, RowExclusiveLock);
	DpKey key;
	struct varlena *doc;
	struct varlena *whole;
	int64 size = 0;

	dp_require_owner(o->decl->target);
	dp_key_of_argument(o->decl, fcinfo, 2, &key);
	SPI_connect();
	doc = dp_outlier_lock(o, &key, true, NULL);
	if (doc != NULL)
	{
		whole = dp_outlier_whole(o, doc, &key, true);
		size = DP_DOC_SIZE(whole);
		if (size <= dp_max_document_size)
		{
			dp_outlier_write(o, &key, doc, whole);
			dp_outlier_drop(o, &key);
		}
	}
	SPI_finish();
	PG_RETURN_INT64(size);
}

/*
 * _outlier_split(rel, name, key): splits a document whose split was deferred. Returns whether it
 * was written.
 */
DP_FUNCTION(dp_outlier_split);
Datum
dp_outlier_split(PG_FUNCTION_ARGS)
{
	DpOutlier *o = outlier_argument(fcinfo, 0, 1, RowExclusiveLock);
	DpKey key;
	bool written;

	dp_require_owner(o->decl->target);
	dp_key_of_argument(o->decl, fcinfo, 2, &key);
	SPI_connect();
	written = dp_outlier_correct(o, &key, true);
	SPI_finish();
	PG_RETURN_BOOL(written);
}

/*
 * _outlier_rechunk(rel, name, key): stores the extras in chunks of the declared size, without
 * duplicates if they are a set. Returns whether anything was corrected.
 */
DP_ROUTED_FUNCTION(dp_outlier_rechunk, DP_ROUTE_KEY, 2)
{
	DpOutlier *o = outlier_argument(fcinfo, 0, 1, RowExclusiveLock);
	DpKey key;
	DpValueList all = { 0 };
	bool is_null;
	bool changed = true;

	dp_require_owner(o->decl->target);
	dp_key_of_argument(o->decl, fcinfo, 2, &key);
	SPI_connect();
	dp_outlier_move_finish(o, &key);
	if (dp_outlier_lock(o, &key, true, &is_null) != NULL && !is_null)
	{
		int duplicates = 0;

		dp_outlier_page(o, &key, 0, PG_INT64_MAX, &all, true);
		if (o->is_set)
			duplicates = dp_values_distinct(&all);
		changed = !dp_outlier_in_order(o, &key) || duplicates > 0;
		if (changed)
		{
			dp_outlier_drop(o, &key);
			dp_outlier_append(o, &key, all.v, all.n);
		}
		changed = dp_outlier_correct(o, &key, false) || changed;
	}
	else
		dp_outlier_drop(o, &key);
	SPI_finish();
	PG_RETURN_BOOL(changed);
}

/*
 * bson_element_hashes(array bson_value) -> bigint[]: the distinct hashes of the elements, for a
 * GIN index; NULL without an array
 */
DP_FUNCTION(dp_bson_element_hashes);
Datum
dp_bson_element_hashes(PG_FUNCTION_ARGS)
{
	DpValue array = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));
	DpIter iter;
	DpValue element;
	Datum *hashes;
	int n = 0;

	if (array.type != DP_TYPE_ARRAY)
		PG_RETURN_NULL();
	hashes = palloc(sizeof(Datum) * Max(1, dp_document_count(array.data, array.len)));
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &element))
		hashes[n++] = Int64GetDatum((int64) dp_value_hash(&element, 0));
	PG_RETURN_POINTER(construct_array(hashes, n, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * bson_array_holds(array bson_value, value bson_value) -> bool
 */
DP_FUNCTION(dp_bson_array_holds);
Datum
dp_bson_array_holds(PG_FUNCTION_ARGS)
{
	DpValue array = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));
	DpValue value = dp_value_of_varlena(PG_GETARG_VARLENA_PP(1));

	PG_RETURN_BOOL(array.type == DP_TYPE_ARRAY && dp_array_holds(&array, &value));
}

/*
 * Returns the declaration that rel and name mean; name is -1 without such an argument. The lock
 * keeps the declaration until the transaction ends; a writer needs the lock of any writer to the
 * table.
 */
static DpOutlier *
outlier_argument(FunctionCallInfo fcinfo, int rel, int name, LOCKMODE lock)
{
	if (PG_ARGISNULL(rel))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	if (lock != NoLock)
		LockRelationOid(PG_GETARG_OID(rel), lock);
	return dp_outlier(dp_decl_find(PG_GETARG_OID(rel), "outlier",
								   name < 0 || PG_ARGISNULL(name)
									   ? NULL
									   : text_to_cstring(PG_GETARG_TEXT_PP(name))));
}

/* Returns an argument of type "any" as a bson_value; SQL's NULL is BSON's null. */
static struct varlena *
value_argument(FunctionCallInfo fcinfo, int argno)
{
	DpValue null = { (const uint8 *) "", 0, DP_TYPE_NULL };

	if (PG_ARGISNULL(argno))
		return dp_value_to_varlena(&null);
	return dp_datum_to_value(PG_GETARG_DATUM(argno), get_fn_expr_argtype(fcinfo->flinfo, argno));
}

/* Returns the arguments from first on, or the elements of a VARIADIC array. */
static void
values_argument(FunctionCallInfo fcinfo, int first, DpValueList *values)
{
	int i;

	if (get_fn_expr_variadic(fcinfo->flinfo))
	{
		DpValue array;

		if (PG_ARGISNULL(first))
			return;
		array = dp_value_of_varlena(value_argument(fcinfo, first));
		dp_values_add_array(values, &array);
		return;
	}
	for (i = first; i < PG_NARGS(); i++)
	{
		DpValue value = dp_value_of_varlena(value_argument(fcinfo, i));

		dp_values_add(values, &value);
	}
}

/*
 * Appends values to the logical array of a row. If the newest elements are in the store, the
 * document is written only if it has a count.
 */
static int64
push_values(FunctionCallInfo fcinfo, DpOutlier *o, int key_argno)
{
	DpKey key;
	DpValueList values = { 0 };
	struct varlena *doc;
	int64 added;

	dp_key_of_argument(o->decl, fcinfo, key_argno, &key);
	values_argument(fcinfo, key_argno + 1, &values);

	require_update(o);
	SPI_connect();
	doc = dp_outlier_lock(o, &key, false, NULL);
	if (doc == NULL)
		dp_row_missing(o->decl, &key);

	if (!o->stay_last && dp_outlier_flagged(o, doc) && !dp_moves_pending(o->decl, &key) &&
		dp_outlier_exists(o, &key))
	{
		if (o->is_set)
		{
			DpValueList fresh = { 0 };
			DpValue array;
			DpValue bare;
			int i;

			dp_values_distinct(&values);
			if (!dp_outlier_array(o, doc, &array))
			{
				array.type = DP_TYPE_ARRAY;
				array.data = dp_empty_document;
				array.len = sizeof(dp_empty_document);
			}
			for (i = 0; i < values.n; i++)
			{
				DpIter iter;
				bool known = false;

				dp_iter_init_value(&iter, &array);
				while (!known && dp_iter_next_value(&iter, &bare))
					known = dp_outlier_matches(o, &bare, &values.v[i]);
				if (!known && !dp_outlier_holds(o, &key, &values.v[i], true))
					dp_values_add(&fresh, &values.v[i]);
			}
			values = fresh;
		}
		added = values.n;
		dp_outlier_append(o, &key, values.v, values.n);
		if (o->count != NULL && added > 0)
		{
			DpValue count;
			int64 total;

			if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->count, &count) &&
				(count.type == DP_TYPE_INT32 || count.type == DP_TYPE_INT64))
				total = added + (count.type == DP_TYPE_INT32 ? dp_get_int32(count.data)
															 : dp_get_int64(count.data));
			else
			{
				DpValue array;

				total = dp_outlier_stored(o, &key, true);
				if (dp_outlier_array(o, doc, &array))
					total += dp_document_count(array.data, array.len);
			}
			write_as_user(o, &key, dp_outlier_mark(o, doc, true, total), true);
		}
	}
	else
	{
		DpValue array;

		/* triggers do the rest, as for any write */
		added = values.n;
		if (o->is_set)
		{
			DpValueList all = { 0 };
			DpKey stored;
			bool has_extras;
			int before;
			int i;

			dp_moves_stored(o->decl, &key, &stored);
			has_extras = dp_outlier_flagged(o, doc) && dp_outlier_exists(o, &stored);
			if (dp_outlier_array(o, doc, &array))
				dp_values_add_array(&all, &array);
			dp_values_distinct(&all);
			before = all.n;
			for (i = 0; i < values.n; i++)
			{
				if (!has_extras || !dp_outlier_holds(o, &stored, &values.v[i], true))
					dp_values_add(&all, &values.v[i]);
			}
			dp_values_distinct(&all);
			added = values.n = all.n - before;
			values.v = all.v + before;
		}
		if (added > 0 && !write_as_user(o, &key,
										dp_document_append(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
														   o->field, values.v, values.n),
										false))
			added = 0;
	}
	SPI_finish();
	return added;
}

/* Returns the document of a row that the user sees, an empty one for a null, else NULL. */
static struct varlena *
read_row(DpOutlier *o, const DpKey *key)
{
	struct varlena *doc;

	if (!dp_row_read(o->decl, key, "", DP_RUN_SNAPSHOT, &doc))
		return NULL;
	return doc != NULL ? doc : dp_document_to_varlena(dp_empty_document, sizeof(dp_empty_document));
}

/*
 * Writes the document of a row with the user's privileges. in_order: triggers of the pattern skip
 * it. Returns false if a trigger suppressed the write.
 */
static bool
write_as_user(DpOutlier *o, const DpKey *key, struct varlena *doc, bool in_order)
{
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan = dp_row_plan_write(o->decl, key, doc, 0, values);

	if (in_order)
	{
		dp_run_writing(o->decl, plan, values, 0, doc);
		return true;
	}
	return dp_run(o->decl, plan, values, NULL, 0, 0, SPI_OK_UPDATE) > 0;
}

/*
 * Raises INSUFFICIENT_PRIVILEGE unless the user may update the document: locking the row only
 * requires UPDATE on any column.
 */
static void
require_update(DpOutlier *o)
{
	Oid table = o->decl->target;

	if (pg_class_aclcheck(table, GetUserId(), ACL_UPDATE) != ACLCHECK_OK &&
		pg_attribute_aclcheck(table, get_attnum(table, o->decl->doc_column), GetUserId(),
							  ACL_UPDATE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(table));
}

/* Returns whether the document has extras. */
static bool
method_is_split(DpDecl *decl, struct varlena *stored)
{
	return dp_outlier_flagged(dp_outlier(decl), stored);
}

/* Returns the document with its whole array. */
static struct varlena *
method_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest)
{
	DpKey at;

	dp_moves_stored(decl, key, &at);
	return dp_outlier_whole(dp_outlier(decl), stored, &at, latest);
}

/*
 * Returns what to store of a whole document with an unchanged array: the new document with the
 * stored part of the array, or NULL if the array must be arranged.
 */
static struct varlena *
method_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
			struct varlena *new_whole)
{
	DpOutlier *o = dp_outlier(decl);
	DpValue was;
	DpValue is;
	DpValue kept;
	struct varlena *doc = new_whole;

	if (!dp_outlier_flagged(o, stored) || !dp_outlier_array(o, old_whole, &was) ||
		!dp_outlier_array(o, new_whole, &is) || !dp_value_identical(&was, &is))
		return NULL;
	if (dp_outlier_array(o, stored, &kept))
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field, &kept);
	else
		doc = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field);
	return doc != NULL ? dp_outlier_mark(o, doc, true, -1) : NULL;
}

/* Corrects a row. Returns whether it was written. */
static bool
method_repair_row(DpDecl *decl, const DpKey *key)
{
	return dp_outlier_correct(dp_outlier(decl), key, false);
}

/*
 * Tells collection calls that $push writes to the end of the array, wherever that is stored, and
 * which index finds elements of chunks.
 */
static List *
method_split(DpDecl *decl)
{
	DpSplitField *field = dp_split_field(dp_outlier(decl)->field, "$push");

	/* a shard finds no keys of others */
	if (!dp_is_distributed(decl->target))
		field->search = split_search;
	field->arg = decl;
	return list_make1(field);
}

static char *
split_search(const DpSplitField *field, const char *values)
{
	DpDecl *decl = field->arg;
	StringInfoData sql;
	StringInfoData columns;
	StringInfoData match;

	initStringInfo(&sql);
	initStringInfo(&columns);
	initStringInfo(&match);
	for (int i = 0; i < decl->nkeys; i++)
	{
		const char *name = quote_identifier(decl->keys[i].name);

		appendStringInfo(&columns, "%s%s %s", i > 0 ? ", " : "", name,
						 format_type_be_qualified(decl->keys[i].type));
		appendStringInfo(&match, "%st.%s ", i > 0 ? " AND " : "", name);
		dp_sql_operator(&match, decl->keys[i].eqop);
		if (decl->nkeys == 1)
			/* an array built once, which an index can search for */
			appendStringInfo(&sql, "%s ANY (ARRAY(SELECT h.%s FROM ", match.data, name);
		appendStringInfo(&match, " h.%s", name);
	}
	if (decl->nkeys > 1)
		appendStringInfoString(&sql, "EXISTS (SELECT FROM ");
	appendStringInfo(&sql, "docpatterns._outlier_rows('%u'::pg_catalog.regclass, %s, %s) AS h (%s)",
					 decl->target, quote_literal_cstr(decl->name), values, columns.data);
	if (decl->nkeys > 1)
		appendStringInfo(&sql, " WHERE %s)", match.data);
	else
		appendStringInfoString(&sql, "))");
	return sql.data;
}
