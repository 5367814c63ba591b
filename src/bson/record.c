/*
 * record.c
 *		Documents as rows: bson_populate_record() and similar functions.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "bson/cast.h"
#include "bson/reader.h"
#include "bson/record.h"

/* State of a set of rows that is made from an array of documents */
typedef struct RowSet
{
	DpIter iter;
	TupleDesc desc;
	HeapTupleHeader base; /* or NULL */
} RowSet;

static HeapTuple document_to_tuple(const DpValue *document, TupleDesc desc, HeapTupleHeader base);
static void field_context(void *arg);
static TupleDesc argument_row_type(FunctionCallInfo fcinfo, Oid *typid, HeapTupleHeader *base);
static TupleDesc result_row_type(FunctionCallInfo fcinfo);
static FuncCallContext *
start_set(FunctionCallInfo fcinfo, int argno, TupleDesc desc, HeapTupleHeader base);
static Datum next_of_set(FunctionCallInfo fcinfo);

Datum
dp_value_to_row(const DpValue *document, Oid typid, int32 typmod)
{
	TupleDesc desc;
	HeapTuple tuple;

	check_stack_depth();
	if (typid == RECORDOID && typmod < 0)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot cast a BSON document to a row with unknown columns")));
	desc = lookup_rowtype_tupdesc(typid, typmod);
	tuple = document_to_tuple(document, desc, NULL);
	ReleaseTupleDesc(desc);
	return HeapTupleGetDatum(tuple);
}

/*
 * bson_populate_record(base anyelement, doc bson) -> anyelement: the row base
 * with the columns that the document has fields for replaced.
 */
DP_FUNCTION(dp_bson_populate_record);
Datum
dp_bson_populate_record(PG_FUNCTION_ARGS)
{
	HeapTupleHeader base;
	Oid typid;
	TupleDesc desc;
	HeapTuple tuple;
	DpValue document;
	Datum result;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	document = dp_value_of_document(DP_GETARG_VARLENA(1));
	desc = argument_row_type(fcinfo, &typid, &base);
	tuple = document_to_tuple(&document, desc, base);
	ReleaseTupleDesc(desc);
	result = HeapTupleGetDatum(tuple);
	if (get_typtype(typid) == TYPTYPE_DOMAIN)
		domain_check(result, false, typid, NULL, NULL);
	PG_RETURN_DATUM(result);
}

/*
 * bson_to_record(doc bson) -> record, whose columns the query names.
 */
DP_FUNCTION(dp_bson_to_record);
Datum
dp_bson_to_record(PG_FUNCTION_ARGS)
{
	DpValue document = dp_value_of_document(DP_GETARG_VARLENA(0));
	TupleDesc desc = result_row_type(fcinfo);

	PG_RETURN_DATUM(HeapTupleGetDatum(document_to_tuple(&document, desc, NULL)));
}

/*
 * bson_populate_recordset(base anyelement, documents bson_value) -> setof anyelement
 */
DP_FUNCTION(dp_bson_populate_recordset);
Datum
dp_bson_populate_recordset(PG_FUNCTION_ARGS)
{
	if (SRF_IS_FIRSTCALL())
	{
		HeapTupleHeader base = NULL;
		TupleDesc desc = NULL;
		Oid typid;

		if (!PG_ARGISNULL(1))
			desc = argument_row_type(fcinfo, &typid, &base);
		(void) start_set(fcinfo, 1, desc, base);
		if (desc)
			ReleaseTupleDesc(desc);
	}
	return next_of_set(fcinfo);
}

/*
 * bson_to_recordset(documents bson_value) -> setof record
 */
DP_FUNCTION(dp_bson_to_recordset);
Datum
dp_bson_to_recordset(PG_FUNCTION_ARGS)
{
	if (SRF_IS_FIRSTCALL())
		(void) start_set(fcinfo, 0, result_row_type(fcinfo), NULL);
	return next_of_set(fcinfo);
}

/*
 * A tuple whose columns are the document's fields of the same names.  Of
 * fields with the same name the first is taken.  A column without a field is
 * taken from base, or is NULL.  The tuple is palloc'd; it is a datum when desc
 * is blessed or of a named type.
 */
static HeapTuple
document_to_tuple(const DpValue *document, TupleDesc desc, HeapTupleHeader base)
{
	int natts = desc->natts;
	Datum *values = palloc(natts * sizeof(Datum));
	bool *nulls = palloc(natts * sizeof(bool));
	bool *found = palloc0(natts * sizeof(bool));
	DpIter iter;
	DpElement element;
	int next = 0; /* fields mostly come in the order of the columns */
	HeapTuple result;

	if (base)
	{
		HeapTupleData tuple;

		tuple.t_len = HeapTupleHeaderGetDatumLength(base);
		ItemPointerSetInvalid(&tuple.t_self);
		tuple.t_tableOid = InvalidOid;
		tuple.t_data = base;
		heap_deform_tuple(&tuple, desc, values, nulls);
	}
	else
		memset(nulls, true, natts * sizeof(bool));

	dp_iter_init_value(&iter, document);
	while (dp_iter_next(&iter, &element))
	{
		for (int i = 0; i < natts; i++)
		{
			int col = next + i < natts ? next + i : next + i - natts;
			Form_pg_attribute att = TupleDescAttr(desc, col);

			if (att->attisdropped || strcmp(NameStr(att->attname), element.name) != 0)
				continue;
			if (!found[col])
			{
				ErrorContextCallback context;

				context.callback = field_context;
				context.arg = &element;
				context.previous = error_context_stack;
				error_context_stack = &context;
				values[col] =
					dp_value_to_datum(&element.value, att->atttypid, att->atttypmod, &nulls[col]);
				error_context_stack = context.previous;
				found[col] = true;
			}
			next = col + 1;
			break;
		}
	}

	/* a domain may refuse the NULL of a column that has no field */
	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!found[i] && nulls[i] && !att->attisdropped && att->atttypid >= FirstNormalObjectId &&
			get_typtype(att->atttypid) == TYPTYPE_DOMAIN)
			domain_check((Datum) 0, true, att->atttypid, NULL, NULL);
	}

	result = heap_form_tuple(desc, values, nulls);
	pfree(values);
	pfree(nulls);
	pfree(found);
	return result;
}

/*
 * Names the field in which an error happened.
 */
static void
field_context(void *arg)
{
	const DpElement *element = (const DpElement *) arg;

	errcontext("field \"%s\"", element->name);
}

/*
 * The row type of the argument base, the type that it was passed as, and the
 * row itself or NULL, which has no columns if the type is record.  Release the
 * result.
 */
static TupleDesc
argument_row_type(FunctionCallInfo fcinfo, Oid *typid, HeapTupleHeader *base)
{
	int32 typmod = -1;
	Oid rowtype;

	*typid = get_fn_expr_argtype(fcinfo->flinfo, 0);
	if (!OidIsValid(*typid) || !type_is_rowtype(*typid))
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("first argument must be a row"),
						errhint("Write NULL::name_of_table.")));
	*base = PG_ARGISNULL(0) ? NULL : PG_GETARG_HEAPTUPLEHEADER(0);
	rowtype = getBaseTypeAndTypmod(*typid, &typmod);
	if (rowtype == RECORDOID)
	{
		if (*base == NULL)
			ereport(
				ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("could not determine the columns of the row"),
				 errhint(
					 "Write NULL::name_of_table, or use bson_to_record() with a list of columns.")));
		rowtype = HeapTupleHeaderGetTypeId(*base);
		typmod = HeapTupleHeaderGetTypMod(*base);
	}
	return lookup_rowtype_tupdesc(rowtype, typmod);
}

/*
 * The columns that the query gives to a function that returns record.
 */
static TupleDesc
result_row_type(FunctionCallInfo fcinfo)
{
	TupleDesc desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("function returning record called in context that cannot accept type record"),
			 errhint("Call it in the FROM clause with a list of columns: AS (a int, b text).")));
	return BlessTupleDesc(desc);
}

/*
 * Start a set of rows from the array of documents that is the argument.
 */
static FuncCallContext *
start_set(FunctionCallInfo fcinfo, int argno, TupleDesc desc, HeapTupleHeader base)
{
	FuncCallContext *set = SRF_FIRSTCALL_INIT();
	MemoryContext old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
	RowSet *rows = palloc0(sizeof(RowSet));

	if (!PG_ARGISNULL(argno))
	{
		DpValue array = dp_value_of_varlena((struct varlena *) PG_GETARG_BYTEA_P_COPY(argno));

		if (array.type != DP_TYPE_ARRAY)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("argument must be an array of documents"),
					 errdetail("Found a value of BSON type \"%s\".", dp_type_name(array.type))));
		dp_iter_init_value(&rows->iter, &array);
		rows->desc = CreateTupleDescCopy(desc);
		if (base)
			rows->base = memcpy(palloc(HeapTupleHeaderGetDatumLength(base)), base,
								HeapTupleHeaderGetDatumLength(base));
	}
	set->user_fctx = rows;
	MemoryContextSwitchTo(old);
	return set;
}

/*
 * The next row of the set.
 */
static Datum
next_of_set(FunctionCallInfo fcinfo)
{
	FuncCallContext *set = SRF_PERCALL_SETUP();
	RowSet *rows = set->user_fctx;
	DpValue document;

	if (rows->desc == NULL || !dp_iter_next_value(&rows->iter, &document))
		SRF_RETURN_DONE(set);
	if (document.type != DP_TYPE_DOCUMENT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument must be an array of documents"),
				 errdetail("Found an element of BSON type \"%s\".", dp_type_name(document.type))));
	SRF_RETURN_NEXT(set, HeapTupleGetDatum(document_to_tuple(&document, rows->desc, rows->base)));
}
