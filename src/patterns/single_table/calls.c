/*
 * calls.c
 *		Single tables: put, get, update and delete single items, with conditions;
 *		functions of the verbs.
 *
 * Everything uses the privileges of the caller, like the equivalent statements.  A
 * condition is a filter of the item when its row is locked, or of {} without an
 * item; an expired item counts as missing.
 */
#include "postgres.h"

#include "kit/shard.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "mql/filter.h"
#include "mql/projection.h"
#include "mql/update.h"
#include "patterns/single_table/single_table.h"

/* Maximal number of attempts if the item is deleted and inserted while it is written */
#define MAX_ATTEMPTS 100

#define GET "SELECT t.{doc} FROM {table} AS t WHERE {key = $key}"
#define LOCK(columns) "SELECT t.{doc}, " columns " FROM {table} AS t WHERE {key = $key} FOR UPDATE"
#define PUT(action)                                                                                \
	"INSERT INTO {table} AS t ({doc}) VALUES ({$1 bson}) ON CONFLICT (pk, sk) DO " action          \
	" RETURNING t.{doc}"

/* The words of return_values, those that fewer calls know last */
typedef enum ReturnValues
{
	RETURN_NONE,
	RETURN_ALL_OLD,
	RETURN_ALL_NEW,
	RETURN_UPDATED_OLD,
	RETURN_UPDATED_NEW
} ReturnValues;

static DpSingleTable *table_argument(FunctionCallInfo fcinfo, int n);
static char *key_argument(FunctionCallInfo fcinfo, int n, const char *name);
static ReturnValues return_argument(FunctionCallInfo fcinfo, int n, ReturnValues last);
static struct varlena *with_entity(DpSingleTable *s, struct varlena *doc, const char *entity);
static bool item_lock(DpSingleTable *s, const char *pk, const char *sk, struct varlena **doc,
					  bool *exists, char **entity);
static void
condition_check(const char *pk, const char *sk, struct varlena *condition, struct varlena *doc);
static char *cut(char *text, int most);
static bool
item_insert(DpSingleTable *s, struct varlena *doc, bool replace, struct varlena **written);
static bool item_update(DpSingleTable *s, const char *pk, const char *sk, struct varlena *doc,
						const char *entity, struct varlena **written);
static bool run_write(DpSingleTable *s, SPIPlanPtr plan, Datum *values, const char *nulls,
					  int expected, struct varlena **written);
static struct varlena *result_document(void);
static struct varlena *take_out(struct varlena *doc, MemoryContext context);
static void attempts_check(DpSingleTable *s, int attempt);

/* The single table that an argument is. */
static DpSingleTable *
table_argument(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	return dp_single_table_of(PG_GETARG_OID(n));
}

/* A key that an argument is. */
static char *
key_argument(FunctionCallInfo fcinfo, int n, const char *name)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", name)));
	return text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/* What a call returns: one of the words up to the last one that it knows. */
static ReturnValues
return_argument(FunctionCallInfo fcinfo, int n, ReturnValues last)
{
	static const char *const words[] = { "none", "all_old", "all_new", "updated_old",
										 "updated_new" };
	StringInfoData known;
	int i;

	initStringInfo(&known);
	for (i = 0; i <= last; i++)
	{
		if (!PG_ARGISNULL(n) && pg_strcasecmp(text_to_cstring(PG_GETARG_TEXT_PP(n)), words[i]) == 0)
			return i;
		appendStringInfo(&known, "%s%s", i == 0 ? "" : i < last ? ", " : " and ", words[i]);
	}
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("return_values must be one of %s", known.data)));
}

/* ---------------------------------------------------------------- calls */

/*
 * single_table_put(rel, entity, doc, condition, return_values) -> the item as it is stored, or
 * the one that there was, or NULL
 */
DP_ROUTED_FUNCTION(dp_single_table_put, DP_ROUTE_WHOLE, 0)
{
	DpSingleTable *s = table_argument(fcinfo, 0);
	struct varlena *condition = PG_ARGISNULL(3) ? NULL : PG_GETARG_VARLENA_PP(3);
	ReturnValues returns = return_argument(fcinfo, 4, RETURN_ALL_NEW);
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *result;
	struct varlena *present = NULL;
	bool exists;
	DpItem item;
	DpItemProblem problem;
	int attempt;

	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the document must not be null")));
	if (!dp_item_compute(s,
						 with_entity(s, PG_GETARG_VARLENA_PP(2),
									 PG_ARGISNULL(1) ? NULL : key_argument(fcinfo, 1, "entity")),
						 NULL, &item, &problem))
		dp_item_refuse(s, &problem);

	SPI_connect();
	for (attempt = 0;; attempt++)
	{
		attempts_check(s, attempt);
		if (condition == NULL && returns != RETURN_ALL_OLD)
		{
			if (item_insert(s, item.doc, true, &result))
				break;
			continue;
		}
		(void) item_lock(s, item.pk, item.sk, &present, &exists, NULL);
		if (condition != NULL)
			condition_check(item.pk, item.sk, condition, present);
		if (exists ? item_update(s, item.pk, item.sk, item.doc, item.entity, &result)
				   : item_insert(s, item.doc, false, &result))
			break;
	}
	result = take_out(returns == RETURN_NONE      ? NULL
					  : returns == RETURN_ALL_OLD ? present
												  : result,
					  caller);
	SPI_finish();
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(result);
}

/*
 * single_table_update(rel, pk, sk, changes, condition, upsert, array_filters, return_values) ->
 * the item as it is now or was before, or the part of it that the update names, or NULL
 */
DP_ROUTED_FUNCTION(dp_single_table_update, DP_ROUTE_WHOLE, 0)
{
	DpSingleTable *s = table_argument(fcinfo, 0);
	char *pk = key_argument(fcinfo, 1, "pk");
	char *sk = key_argument(fcinfo, 2, "sk");
	struct varlena *condition = PG_ARGISNULL(4) ? NULL : PG_GETARG_VARLENA_PP(4);
	bool upsert = !PG_ARGISNULL(5) && PG_GETARG_BOOL(5);
	ReturnValues returns = return_argument(fcinfo, 7, RETURN_UPDATED_NEW);
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *result = NULL;
	struct varlena *before = NULL;
	DpUpdate *update;
	DpValue changes;
	DpValue filters;
	int attempt;

	if (PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the update must not be null")));
	changes = dp_value_of_document(PG_GETARG_VARLENA_PP(3));
	if (!PG_ARGISNULL(6))
		filters = dp_value_of_varlena(PG_GETARG_VARLENA_PP(6));
	update = dp_update_compile(&changes, NULL, PG_ARGISNULL(6) ? NULL : &filters, false);
	if (returns >= RETURN_UPDATED_OLD && dp_update_replaces(update))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("return_values updated_old and updated_new require update operators")));

	SPI_connect();
	for (attempt = 0;; attempt++)
	{
		struct varlena *present;
		struct varlena *empty = NULL;
		struct varlena *doc;
		bool exists;
		char *entity = NULL;

		attempts_check(s, attempt);
		(void) item_lock(s, pk, sk, &present, &exists, &entity);
		before = present;
		if (condition != NULL)
			condition_check(pk, sk, condition, present);
		if (present == NULL)
		{
			DpBuilder b;

			if (!upsert)
				break;
			dp_builder_init(&b, 0);
			dp_builder_begin_document(&b);
			dp_builder_append_string(&b, "PK", 2, pk, strlen(pk));
			dp_builder_append_string(&b, "SK", 2, sk, strlen(sk));
			dp_builder_end(&b);
			present = empty = dp_builder_finish_bson(&b);
		}
		doc = dp_update_apply(update, present, false);
		if (doc == NULL && present != empty)
		{
			result = present; /* nothing changes: the row stays as it is */
			break;
		}
		if (doc == NULL)
			doc = present;
		if (exists ? item_update(s, pk, sk, doc, entity, &result)
				   : item_insert(s, doc, false, &result))
			break;
	}
	if (returns == RETURN_NONE)
		result = NULL;
	else if (returns == RETURN_ALL_OLD || returns == RETURN_UPDATED_OLD)
		result = before;
	if (returns >= RETURN_UPDATED_OLD && result != NULL)
		result = dp_update_part(update, result);
	result = take_out(result, caller);
	SPI_finish();
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(result);
}

/*
 * single_table_delete(rel, pk, sk, condition, return_values) -> the item that there was, or NULL
 */
DP_ROUTED_FUNCTION(dp_single_table_delete, DP_ROUTE_WHOLE, 0)
{
	DpSingleTable *s = table_argument(fcinfo, 0);
	char *pk = key_argument(fcinfo, 1, "pk");
	char *sk = key_argument(fcinfo, 2, "sk");
	struct varlena *condition = PG_ARGISNULL(3) ? NULL : PG_GETARG_VARLENA_PP(3);
	ReturnValues returns = return_argument(fcinfo, 4, RETURN_ALL_OLD);
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *present;
	bool exists;

	SPI_connect();
	(void) item_lock(s, pk, sk, &present, &exists, NULL);
	if (condition != NULL)
		condition_check(pk, sk, condition, present);
	present = take_out(returns == RETURN_NONE ? NULL : present, caller);
	if (exists)
	{
		SPIPlanPtr plan = dp_statement(s->decl, "DELETE FROM {table} AS t WHERE {key = $key}");
		Datum values[2] = { CStringGetTextDatum(pk), CStringGetTextDatum(sk) };

		(void) dp_run(s->decl, plan, values, NULL, DP_RUN_LOCK, 0, SPI_OK_DELETE);
	}
	SPI_finish();
	if (present == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(present);
}

/*
 * single_table_get(rel, pk, sk, fields) -> the item, or NULL
 */
DP_ROUTED_FUNCTION(dp_single_table_get, DP_ROUTE_WHOLE, 0)
{
	DpSingleTable *s = table_argument(fcinfo, 0);
	Datum values[3];
	MemoryContext caller = CurrentMemoryContext;
	SPIPlanPtr plan;
	struct varlena *result = NULL;

	values[0] = CStringGetTextDatum(key_argument(fcinfo, 1, "pk"));
	values[1] = CStringGetTextDatum(key_argument(fcinfo, 2, "sk"));
	values[2] = TimestampTzGetDatum(GetCurrentTimestamp());
	SPI_connect();
	plan =
		dp_statement(s->decl, s->ttl == NULL ? GET
											 : GET " AND (t.expires_at IS NULL OR t.expires_at"
												   " OPERATOR(pg_catalog.>) {$key+1 timestamptz})");
	if (dp_run(s->decl, plan, values, NULL, DP_RUN_SNAPSHOT, 1, SPI_OK_SELECT) > 0)
		result = take_out(result_document(), caller);
	SPI_finish();
	if (result == NULL)
		PG_RETURN_NULL();
	if (!PG_ARGISNULL(3))
	{
		DpValue spec = dp_value_of_document(PG_GETARG_VARLENA_PP(3));
		DpValue doc = dp_value_of_document(result);
		struct varlena *projected =
			dp_projection_apply(dp_projection_compile(&spec, 0), &doc, NULL);

		if (projected != NULL)
			result = projected;
	}
	PG_RETURN_POINTER(result);
}

/*
 * single_table_key(rel, entity, doc) -> the keys that the templates make of it
 */
DP_FUNCTION(dp_single_table_key);
Datum
dp_single_table_key(PG_FUNCTION_ARGS)
{
	DpSingleTable *s = table_argument(fcinfo, 0);
	DpItem item;
	DpItemProblem problem;
	DpBuilder b;

	if (!dp_item_compute(s,
						 with_entity(s, PG_GETARG_VARLENA_PP(2), key_argument(fcinfo, 1, "entity")),
						 NULL, &item, &problem))
		dp_item_refuse(s, &problem);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_string(&b, "PK", 2, item.pk, strlen(item.pk));
	dp_builder_append_string(&b, "SK", 2, item.sk, strlen(item.sk));
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * _single_table_image(rel, entity, doc) -> the columns of an item's row, or {error: ..} for an
 * invalid item
 */
DP_FUNCTION(dp_single_table_image);
Datum
dp_single_table_image(PG_FUNCTION_ARGS)
{
	DpSingleTable *s = table_argument(fcinfo, 0);
	DpItem item;
	DpItemProblem problem;
	DpBuilder b;
	DpValue doc;
	int i;

	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the document must not be null")));
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (!dp_item_compute(s, PG_GETARG_VARLENA_PP(2),
						 PG_ARGISNULL(1) ? NULL : key_argument(fcinfo, 1, "entity"), &item,
						 &problem))
		dp_builder_append_string(&b, "error", 5, problem.message, strlen(problem.message));
	else
	{
		dp_builder_append_string(&b, "pk", 2, item.pk, strlen(item.pk));
		dp_builder_append_string(&b, "sk", 2, item.sk, strlen(item.sk));
		if (item.entity != NULL)
			dp_builder_append_string(&b, "entity", 6, item.entity, strlen(item.entity));
		for (i = 0; i < s->nindexes; i++)
		{
			if (item.gsi_pk[i] == NULL)
				continue;
			dp_builder_append_string(&b, psprintf("gsi%d_pk", i + 1), 7, item.gsi_pk[i],
									 strlen(item.gsi_pk[i]));
			dp_builder_append_string(&b, psprintf("gsi%d_sk", i + 1), 7, item.gsi_sk[i],
									 strlen(item.gsi_sk[i]));
		}
		if (item.expires)
			dp_builder_append_datum(&b, "expires_at", 10, TimestampTzGetDatum(item.expires_at),
									false, TIMESTAMPTZOID);
		doc = dp_value_of_document(item.doc);
		dp_builder_append_value(&b, "doc", 3, &doc);
	}
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * _single_table_template(text): an error for a template that is none
 */
DP_FUNCTION(dp_single_table_template);
Datum
dp_single_table_template(PG_FUNCTION_ARGS)
{
	(void) dp_template_parse(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}

/* ---------------------------------------------------------------- items */

/* A document that says which entity it is of. */
static struct varlena *
with_entity(DpSingleTable *s, struct varlena *doc, const char *entity)
{
	DpBuilder b;
	DpValue value;
	DpPath *path;

	if (entity == NULL)
		return doc;
	if (dp_single_table_entity(s, entity, strlen(entity)) == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("the single table \"%s\" has no entity \"%s\"",
							   dp_relation_name(s->decl->target), entity),
						errhint("Declare it with single_table_entity().")));
	path = dp_path_of_name("entity", 6);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_string(&b, "e", 1, entity, strlen(entity));
	dp_builder_end(&b);
	value = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	(void) dp_document_find(value.data, value.len, "e", 1, &value);
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value);
}

/*
 * Locks an item's row. Sets *exists; *doc to the document, NULL if it has expired; and *entity,
 * unless NULL, to its column. Returns whether there is an item that has not expired.
 */
static bool
item_lock(DpSingleTable *s, const char *pk, const char *sk, struct varlena **doc, bool *exists,
		  char **entity)
{
	SPIPlanPtr plan =
		dp_statement(s->decl, s->ttl != NULL ? LOCK("t.entity, t.expires_at") : LOCK("t.entity"));
	DpKey key = { 2, { CStringGetTextDatum(pk), CStringGetTextDatum(sk) } };
	bool isnull;

	*doc = NULL;
	while (!(*exists = dp_run(s->decl, plan, key.values, NULL, DP_RUN_LOCK, 1, SPI_OK_SELECT) > 0))
	{
		if (!dp_row_again(s->decl, &key, DP_RUN_LOCK))
			return false;
	}
	if (entity != NULL)
	{
		Datum value = dp_result(0, 2, &isnull);

		*entity = isnull ? NULL : TextDatumGetCString(value);
	}
	if (s->ttl != NULL)
	{
		Datum expires = dp_result(0, 3, &isnull);

		if (!isnull && DatumGetTimestampTz(expires) <= GetCurrentTimestamp())
			return false;
	}
	*doc = result_document();
	return *doc != NULL;
}

/* Raises CHECK_VIOLATION unless the condition is met by the item, or by {} if there is none. */
static void
condition_check(const char *pk, const char *sk, struct varlena *condition, struct varlena *doc)
{
	static const uint8 nothing[] = { 5, 0, 0, 0, 0 };
	DpValue spec = dp_value_of_document(condition);
	DpValue value = { nothing, 5, DP_TYPE_DOCUMENT };
	StringInfoData text;

	if (doc != NULL)
		value = dp_value_of_document(doc);
	if (dp_filter_match(dp_filter_compile(&spec, DP_FILTER_DOCUMENT, NULL), &value))
		return;
	initStringInfo(&text);
	dp_value_to_text(&text, &spec, DP_TEXT_RELAXED, -1);
	ereport(ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("the condition on the item (%s, %s) is not met", cut(pstrdup(pk), 100),
					cut(pstrdup(sk), 100)),
			 doc != NULL ? errdetail("It does not match %s.", cut(text.data, 100))
						 : errdetail("There is no item, and a missing item does not match %s.",
									 cut(text.data, 100))));
}

/* A text of at most so many bytes, the end of a longer one left out. */
static char *
cut(char *text, int most)
{
	int len = strlen(text);

	if (len > most)
		strcpy(text + pg_mbcliplen(text, len, most - 3), "...");
	return text;
}

/* Inserts an item, or replaces the one that is there.  False: there is one. */
static bool
item_insert(DpSingleTable *s, struct varlena *doc, bool replace, struct varlena **written)
{
	SPIPlanPtr plan =
		dp_statement(s->decl,
					 replace ? PUT("UPDATE SET {doc} = EXCLUDED.{doc}, entity = EXCLUDED.entity")
							 : PUT("NOTHING"));
	Datum value = PointerGetDatum(doc);

	return run_write(s, plan, &value, NULL, SPI_OK_INSERT_RETURNING, written);
}

/* Writes another document and its entity into an item's row. Returns false if it was deleted. */
static bool
item_update(DpSingleTable *s, const char *pk, const char *sk, struct varlena *doc,
			const char *entity, struct varlena **written)
{
	SPIPlanPtr plan =
		dp_statement(s->decl,
					 "UPDATE {table} AS t SET {doc} = {$key+1 bson}, entity = {$key+2 text}"
					 " WHERE {key = $key} RETURNING t.{doc}");
	Datum values[4] = { CStringGetTextDatum(pk), CStringGetTextDatum(sk), PointerGetDatum(doc),
						entity != NULL ? CStringGetTextDatum(entity) : (Datum) 0 };

	return run_write(s, plan, values, entity != NULL ? "    " : "   n", SPI_OK_UPDATE_RETURNING,
					 written);
}

/*
 * Runs a statement that writes a row, and returns the written document: NULL if a user's trigger
 * set it to null. Returns false if no row was written.
 */
static bool
run_write(DpSingleTable *s, SPIPlanPtr plan, Datum *values, const char *nulls, int expected,
		  struct varlena **written)
{
	if (dp_run(s->decl, plan, values, nulls, DP_RUN_LOCK, 0, expected) == 0)
		return false;
	*written = result_document();
	return true;
}

/* The document that a statement has returned first, or NULL. */
static struct varlena *
result_document(void)
{
	bool isnull;
	Datum value = dp_result(0, 1, &isnull);

	return isnull ? NULL : (struct varlena *) DatumGetPointer(value);
}

/* A copy in the caller's context; of NULL, NULL. */
static struct varlena *
take_out(struct varlena *doc, MemoryContext context)
{
	struct varlena *copy;

	if (doc == NULL)
		return NULL;
	copy = MemoryContextAlloc(context, VARSIZE_ANY(doc));
	memcpy(copy, doc, VARSIZE_ANY(doc));
	return copy;
}

/* Other transactions insert and delete the item repeatedly, or a trigger suppresses the write. */
static void
attempts_check(DpSingleTable *s, int attempt)
{
	CHECK_FOR_INTERRUPTS();
	if (attempt >= MAX_ATTEMPTS)
		ereport(
			ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not write an item of \"%s\"", dp_relation_name(s->decl->target)),
			 errdetail(
				 "Other transactions insert and delete it repeatedly, or a BEFORE trigger returns null.")));
}
