/*
 * calls.c
 *		The functions of the approximation pattern that users call.
 *
 * Most calls of approximation_add() write nothing and cost a lookup of the
 * declaration, a check of privileges and a draw, and if the step depends on the
 * value one search of the primary key.  Writes use the privileges of the caller.
 */
#include "postgres.h"

#include <math.h>

#include "kit/shard.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/fetch.h"
#include "bson/text.h"
#include "kit/rows/by_statement.h"
#include "kit/rows/table.h"
#include "kit/rows/write.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/approximation/approximation.h"
#include "patterns/approximation/shards.h"

/* Privileges of the user on the table */
typedef enum Rights
{
	RIGHTS_WHOLE,     /* SELECT and UPDATE on all columns: no check for each row */
	RIGHTS_RESTRICTED /* statements of the user check them */
} Rights;

static DpApproximation *approximation_argument(FunctionCallInfo fcinfo, int name);
static void amount_argument(FunctionCallInfo fcinfo, int argno, DpAmount *amount);
static Rights user_rights(DpApproximation *a);
static bool write_latest(DpApproximation *a, const DpKey *key, const DpValue *amount);
static bool
write_statement(DpApproximation *a, const DpKey *key, const DpValue *amount, bool as_owner);
static double present_value(DpApproximation *a, const DpKey *key, Rights rights);
static bool read_fast(DpApproximation *a, const DpKey *key, double *value);
static struct varlena *read_row(DpApproximation *a, const DpKey *key);

/*
 * approximation_add(rel, key, amount, name) -> whether anything was written
 */
DP_ROUTED_FUNCTION(dp_approximation_add, DP_ROUTE_KEY, 1)
{
	DpApproximation *a = approximation_argument(fcinfo, 3);
	Rights rights = user_rights(a);
	DpAmount amount;
	DpAmount added;
	DpKey key;
	double value = 0;
	bool has_key = false;

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the key must not be null")));
	amount_argument(fcinfo, 2, &amount);
	PreventCommandIfReadOnly("approximation_add()");
	if (a->form == DP_APPROXIMATION_SHARDS)
	{
		if (!isfinite(dp_amount_double(&amount.value)))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the amount must be a finite number")));
		dp_key_of_argument(a->decl, fcinfo, 1, &key);
		dp_approximation_shards_add(a, &key, &amount.value, rights == RIGHTS_RESTRICTED);
		PG_RETURN_BOOL(true);
	}

	if (dp_approximation_needs_value(a))
	{
		dp_key_of_argument(a->decl, fcinfo, 1, &key);
		has_key = true;
		value = present_value(a, &key, rights);
	}
	if (likely(!dp_approximation_draw(a, &amount.value, value, &added)))
		PG_RETURN_BOOL(false);
	if (!has_key)
		dp_key_of_argument(a->decl, fcinfo, 1, &key);
	if (!dp_approximation_write(a, &key, &added.value, false))
		dp_row_missing(a->decl, &key);
	PG_RETURN_BOOL(true);
}

/*
 * approximation_read(rel, key, name) -> (estimate, low, high), all numeric
 */
DP_ROUTED_FUNCTION(dp_approximation_read, DP_ROUTE_KEY, 1)
{
	DpApproximation *a = approximation_argument(fcinfo, 2);
	MemoryContext caller = CurrentMemoryContext;
	TupleDesc desc;
	DpKey key;
	struct varlena *doc;
	DpAmount total;
	DpValue field;
	double estimate;
	double low;
	double high;
	Datum values[3];
	bool nulls[3] = { false, false, false };

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the result is not a row");
	dp_key_of_argument(a->decl, fcinfo, 1, &key);
	SPI_connect();
	doc = read_row(a, &key);
	dp_amount_set_int(&total, 0, false);
	if (doc != NULL && dp_approximation_field(a, doc, &field))
		dp_amount_set(&total, &field);
	SPI_finish();
	MemoryContextSwitchTo(caller);
	if (a->form == DP_APPROXIMATION_SHARDS && OidIsValid(a->side))
		dp_shards_sum(dp_approximation_shards_table(a), key.values, GetActiveSnapshot(), &total);

	estimate = dp_amount_double(&total.value);
	dp_approximation_bounds(a, estimate, &low, &high);
	values[0] = NumericGetDatum(dp_amount_numeric(&total.value));
	values[1] =
		low == estimate ? values[0] : DirectFunctionCall1(float8_numeric, Float8GetDatum(low));
	values[2] =
		high == estimate ? values[0] : DirectFunctionCall1(float8_numeric, Float8GetDatum(high));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * _approximation_plus(doc, field, amount) -> the document with the amount added to the field,
 * which is created if absent
 */
DP_FUNCTION(dp_approximation_plus);
Datum
dp_approximation_plus(PG_FUNCTION_ARGS)
{
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	text *field = PG_GETARG_TEXT_PP(1);
	DpPath *path = dp_path_parse(VARDATA_ANY(field), VARSIZE_ANY_EXHDR(field));
	DpValue amount = dp_value_of_varlena(PG_GETARG_VARLENA_PP(2));

	if (!dp_type_is_number(amount.type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the amount is of type %s, not a number", dp_type_name(amount.type))));
	PG_RETURN_POINTER(dp_approximation_plus_document(doc, path, &amount));
}

struct varlena *
dp_approximation_plus_document(struct varlena *doc, const DpPath *path, const DpValue *amount)
{
	DpValue old;
	DpAmount sum;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &old) || old.type == DP_TYPE_NULL)
		return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, amount);
	if (!dp_type_is_number(old.type))
	{
		StringInfoData text;

		initStringInfo(&text);
		dp_path_to_text(&text, path);
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("cannot add to field \"%s\": it is of type %s", text.data,
							   dp_type_name(old.type))));
	}
	dp_amount_set(&sum, &old);
	dp_amount_add(&sum, amount);
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &sum.value);
}

/*
 * Writes by a statement of the user. At REPEATABLE READ and above that would fail after a
 * concurrent write, and a retry would draw again, so failed events would be counted too rarely.
 * Additions commute, so the latest version is written then.
 */
bool
dp_approximation_write(DpApproximation *a, const DpKey *key, const DpValue *amount, bool as_owner)
{
	if (IsolationUsesXactSnapshot() && (as_owner || user_rights(a) == RIGHTS_WHOLE))
		return write_latest(a, key, amount);
	return write_statement(a, key, amount, as_owner);
}

/* Writes to the latest version of the row. */
static bool
write_latest(DpApproximation *a, const DpKey *key, const DpValue *amount)
{
	DpDecl *decl = a->decl;
	DpWriter *w = dp_writer_open(decl->target, decl->doc_column, DP_WRITE_LATEST, decl->name);
	bool written = false;

	if (a->lookup == NULL)
		a->lookup = dp_lookup_primary(decl->target, decl->context);
	while (!written && dp_writer_find(w, a->lookup, key->values))
	{
		struct varlena *doc;

		CHECK_FOR_INTERRUPTS();
		if (dp_writer_lock_found(w, LockTupleNoKeyExclusive, LockWaitBlock) == DP_LOCK_DELETED)
			continue;
		doc = dp_writer_document(w);
		if (doc == NULL)
		{
			DpBuilder b;

			dp_builder_init(&b, 0);
			dp_builder_begin_document(&b);
			dp_builder_end(&b);
			doc = dp_builder_finish_bson(&b);
		}
		written = dp_writer_update(w, dp_approximation_plus_document(doc, a->field, amount)) !=
				  DP_WRITE_CHANGED;
	}
	dp_writer_close(w);
	return written;
}

/* Writes by a statement. */
static bool
write_statement(DpApproximation *a, const DpKey *key, const DpValue *amount, bool as_owner)
{
	DpDecl *decl = a->decl;
	SPIPlanPtr plan;
	Datum values[INDEX_MAX_KEYS + 1];
	uint64 rows;

	SPI_connect();
	plan = dp_statement(decl, "UPDATE {table} SET {doc} = docpatterns._approximation_plus("
							  "coalesce({doc}, '{}'::{own}bson), {text field}::pg_catalog.text,"
							  " {$key+1 bson_value}) WHERE {key = $key}");
	memcpy(values, key->values, sizeof(Datum) * decl->nkeys);
	values[decl->nkeys] = PointerGetDatum(dp_value_to_varlena(amount));
	rows = dp_run_marked(decl, plan, values, NULL, as_owner ? DP_RUN_AS_OWNER : 0, SPI_OK_UPDATE,
						 decl->target, decl->name, DP_MARK_INTERNAL);
	SPI_finish();
	return rows > 0;
}

/* Returns the declaration. The lock keeps it until the transaction ends. */
static DpApproximation *
approximation_argument(FunctionCallInfo fcinfo, int name)
{
	Oid relid;
	char *declared = NULL;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	relid = PG_GETARG_OID(0);
	if (!PG_ARGISNULL(name))
		declared = text_to_cstring(PG_GETARG_TEXT_PP(name));
	LockRelationOid(relid, RowExclusiveLock);
	return dp_approximation(dp_decl_find(relid, "approximation", declared));
}

/* Returns the amount: an SQL number, a bson_value that is a number, or text that reads as one. */
static void
amount_argument(FunctionCallInfo fcinfo, int argno, DpAmount *amount)
{
	Oid type = get_fn_expr_argtype(fcinfo->flinfo, argno);
	DpValue value;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the amount must not be null")));
	switch (type)
	{
		case INT4OID:
			dp_amount_set_int(amount, PG_GETARG_INT32(argno), false);
			return;
		case INT8OID:
			dp_amount_set_int(amount, PG_GETARG_INT64(argno), true);
			return;
		case FLOAT8OID:
			dp_amount_set_double(amount, PG_GETARG_FLOAT8(argno));
			return;
	}
	if (type == TEXTOID)
	{
		text *t = PG_GETARG_TEXT_PP(argno);

		value = dp_value_of_varlena(dp_text_to_value(VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t), NULL));
	}
	else
		value = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(argno), type));
	if (!dp_type_is_number(value.type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the amount is of type %s, not a number", dp_type_name(value.type))));
	dp_amount_set(amount, &value);
}

/*
 * Returns the user's privileges. Raises INSUFFICIENT_PRIVILEGE if the user may not update the
 * document, even if nothing will be written.
 */
static Rights
user_rights(DpApproximation *a)
{
	Oid relid = a->decl->target;
	Oid user = GetUserId();

	if (pg_class_aclmask(relid, user, ACL_SELECT | ACL_UPDATE, ACLMASK_ALL) ==
		(ACL_SELECT | ACL_UPDATE))
		return check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED ? RIGHTS_RESTRICTED
																		: RIGHTS_WHOLE;
	if (pg_class_aclcheck(relid, user, ACL_UPDATE) != ACLCHECK_OK &&
		pg_attribute_aclcheck(relid, get_attnum(relid, a->decl->doc_column), user, ACL_UPDATE) !=
			ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(relid));
	return RIGHTS_RESTRICTED;
}

/*
 * Returns the present value of the field, read without a lock: a draw from an old value is right,
 * only less precise if the value is much too large.
 */
static double
present_value(DpApproximation *a, const DpKey *key, Rights rights)
{
	struct varlena *doc;
	DpValue value;
	double result = 0;

	if (rights == RIGHTS_WHOLE && get_rel_relkind(a->decl->target) == RELKIND_RELATION)
	{
		if (!read_fast(a, key, &result))
			dp_row_missing(a->decl, key);
		return result;
	}
	SPI_connect();
	doc = read_row(a, key);
	if (doc != NULL && dp_approximation_field(a, doc, &value))
		result = dp_amount_double(&value);
	SPI_finish();
	return result;
}

/* Does the same with the primary key's index. Returns false without such a row. */
static bool
read_fast(DpApproximation *a, const DpKey *key, double *value)
{
	DpDecl *decl = a->decl;
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	DpTable t;
	bool found;

	dp_table_open(&t, decl->target, AccessShareLock);
	found = dp_table_find(&t, snapshot, key->values, decl->nkeys);
	*value = 0;
	if (found)
	{
		bool isnull;
		Datum doc = slot_getattr(t.row, decl->doc_attnum, &isnull);
		DpValue field;

		if (!isnull && dp_fetch_path(doc, a->field, true, &field) && dp_type_is_number(field.type))
			*value = dp_amount_double(&field);
	}
	dp_table_close(&t);
	UnregisterSnapshot(snapshot);
	return found;
}

/*
 * Returns the document of a row that the user sees, in SPI's memory; NULL for a null. Raises
 * NO_DATA_FOUND.
 */
static struct varlena *
read_row(DpApproximation *a, const DpKey *key)
{
	struct varlena *doc;

	if (!dp_row_read(a->decl, key, "", DP_RUN_SNAPSHOT, &doc))
		dp_row_missing(a->decl, key);
	return doc;
}
