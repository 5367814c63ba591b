/*
 * collection_change.c
 *		What the calls that change collections (sql/collection_change.sql) learn of an update: its
 *		form, which documents it leaves unchanged, and the document before it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "mql/collection_calls.h"

/* The documents that the update with a ticket has seen */
typedef struct Unchanged
{
	int64 ticket;
	int64 count;             /* left unchanged */
	bool keeps;              /* the last document, before the update */
	struct varlena *doc;     /* that; or NULL */
	struct Unchanged *outer; /* of the statement around this one */
} Unchanged;

static Unchanged *unchanged = NULL; /* in TopTransactionContext */
static bool unchanged_registered = false;
static int64 last_ticket = 0;

extern Datum dp_jsonb_to_bson(PG_FUNCTION_ARGS);

static void forget_unchanged(void *arg);

struct varlena *
dp_call_value(Datum argument, Oid type)
{
	struct varlena *given;
	DpValue value;

	if (type == JSONBOID && JB_ROOT_IS_OBJECT(DatumGetJsonbP(argument)))
	{
		argument = DirectFunctionCall1(dp_jsonb_to_bson, argument);
		type = dp_types()->bson;
	}
	else if (type == JSONBOID || type == JSONOID)
	{
		argument =
			CStringGetTextDatum(OidOutputFunctionCall(type == JSONBOID ? F_JSONB_OUT : F_JSON_OUT,
													  argument));
		type = TEXTOID;
	}
	if (type != TEXTOID && type != dp_types()->bson && type != dp_types()->bson_value)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("an argument cannot be of type %s", format_type_be(type)),
						errhint("Use bson, bson_value, jsonb, or text in Extended JSON.")));
	given = PG_DETOAST_DATUM_PACKED(argument);
	if (type == dp_types()->bson_value)
		return given;
	if (type == TEXTOID)
		return dp_text_to_value(VARDATA_ANY(given), VARSIZE_ANY_EXHDR(given), NULL);
	value = dp_value_of_document(given);
	return dp_value_to_varlena(&value);
}

/*
 * _collection_value(value anycompatible, replaces boolean) -> bson_value: an argument of the types
 * bson and bson_value, or text that spells one.  Raises INVALID_PARAMETER_VALUE for one that
 * replaces and has operators.
 */
DP_FUNCTION(dp_collection_value);
Datum
dp_collection_value(PG_FUNCTION_ARGS)
{
	struct varlena *update =
		dp_call_value(PG_GETARG_DATUM(0), get_fn_expr_argtype(fcinfo->flinfo, 0));
	DpValue value = dp_value_of_varlena(update);
	DpIter iter;
	DpElement first;

	if (PG_GETARG_BOOL(1))
	{
		bool replaces = value.type == DP_TYPE_DOCUMENT;

		if (replaces)
		{
			dp_iter_init_value(&iter, &value);
			replaces = !dp_iter_next(&iter, &first) || first.name[0] != '$';
		}
		if (!replaces)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("a replacement must be a document without update operators")));
	}
	PG_RETURN_POINTER(update);
}

/*
 * _collection_ticket(keeps boolean) -> bigint: begins to count documents that an update leaves
 * unchanged, and to keep the last document that it has seen.
 */
DP_FUNCTION(dp_collection_ticket);
Datum
dp_collection_ticket(PG_FUNCTION_ARGS)
{
	Unchanged *u;

	if (!unchanged_registered)
	{
		MemoryContextCallback *callback =
			MemoryContextAlloc(TopTransactionContext, sizeof(MemoryContextCallback));

		callback->func = forget_unchanged;
		callback->arg = NULL;
		MemoryContextRegisterResetCallback(TopTransactionContext, callback);
		unchanged_registered = true;
	}
	u = MemoryContextAlloc(TopTransactionContext, sizeof(Unchanged));
	u->ticket = ++last_ticket;
	u->count = 0;
	u->keeps = PG_GETARG_BOOL(0);
	u->doc = NULL;
	u->outer = unchanged;
	unchanged = u;
	PG_RETURN_INT64(u->ticket);
}

/* The transaction is over, and with it the counts. */
static void
forget_unchanged(void *arg)
{
	unchanged = NULL;
	unchanged_registered = false;
}

/*
 * _collection_unchanged(ticket bigint) -> (unchanged bigint, doc bson): how many documents the
 * update with the ticket has left unchanged, and the last one before it.  Its count ends, and so do
 * those of inner statements that have failed.
 */
DP_FUNCTION(dp_collection_unchanged);
Datum
dp_collection_unchanged(PG_FUNCTION_ARGS)
{
	int64 ticket = PG_GETARG_INT64(0);
	TupleDesc desc;
	Datum values[2] = { 0 };
	bool nulls[2] = { false, true };
	HeapTuple result;
	struct varlena *doc = NULL;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	while (unchanged != NULL && unchanged->ticket >= ticket)
	{
		Unchanged *u = unchanged;

		if (u->ticket == ticket)
		{
			values[0] = Int64GetDatum(u->count);
			doc = u->doc;
		}
		else if (u->doc != NULL)
			pfree(u->doc);
		unchanged = u->outer;
		pfree(u);
	}
	nulls[1] = doc == NULL;
	values[1] = PointerGetDatum(doc);
	result = heap_form_tuple(BlessTupleDesc(desc), values, nulls);
	if (doc != NULL)
		pfree(doc);
	PG_RETURN_DATUM(HeapTupleGetDatum(result));
}

/*
 * _collection_changes(doc bson, updated bson, ticket bigint) -> boolean:
 * whether an update has changed the document; counts those that it has not.  If another
 * transaction has changed the document, the last call is about what the update sees.
 */
DP_FUNCTION(dp_collection_changes);
Datum
dp_collection_changes(PG_FUNCTION_ARGS)
{
	int64 ticket = PG_GETARG_INT64(2);
	bool changes = !datumIsEqual(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), false, -1);

	for (Unchanged *u = unchanged; u != NULL; u = u->outer)
		if (u->ticket == ticket)
		{
			u->count += !changes;
			if (u->keeps)
			{
				MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

				if (u->doc != NULL)
					pfree(u->doc);
				u->doc = PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0));
				MemoryContextSwitchTo(old);
			}
			break;
		}
	PG_RETURN_BOOL(changes);
}
