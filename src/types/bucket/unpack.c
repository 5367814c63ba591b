/*
 * unpack.c
 *		The measurements of a bucket as rows: bucket_unpack() and bucket_to_recordset().
 *
 * All functions return one row per call, so that a LIMIT in the select list stops them; the first
 * call decodes the needed columns.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "types/bucket/document.h"
#include "types/bucket/fields.h"

/* Where bucket_unpack(b) stands */
typedef struct UnpackDocuments
{
	int count;
	int64 *times; /* NULL: none */
	DpBucketRows rows;
} UnpackDocuments;

/* Where the typed form stands */
typedef struct UnpackRows
{
	int count;
	TupleDesc desc;
	Datum **values; /* for each column of the result; NULL: always NULL */
	bool **nulls;
	Datum *row;
	bool *row_nulls;
	Oid domain; /* of the result, to be checked; or InvalidOid */
} UnpackRows;

static UnpackRows *rows_start(FunctionCallInfo fcinfo, TupleDesc desc);
static void
column_datums(DpBucketReader *r, int column, Oid typid, int32 typmod, Datum *values, bool *nulls);
static Datum rows_next(FunctionCallInfo fcinfo);
static Datum time_datum(int64 t, Oid type);
static bool is_time_type(Oid type);

/*
 * bucket_unpack(bucket) -> setof (ts timestamptz, doc bson): the measurements
 * in the order of their times.
 */
DP_FUNCTION(dp_bucket_unpack);
Datum
dp_bucket_unpack(PG_FUNCTION_ARGS)
{
	FuncCallContext *set;
	UnpackDocuments *unpack;
	int i;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;
		DpBucketReader *r;
		DpBucketFields fields;

		set = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL, &set->tuple_desc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		set->tuple_desc = BlessTupleDesc(set->tuple_desc);

		unpack = palloc0(sizeof(UnpackDocuments));
		r = palloc(sizeof(DpBucketReader));
		dp_bucket_reader_init(r, set->multi_call_memory_ctx);
		dp_bucket_open(r, PointerGetDatum(PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0))));
		unpack->count = r->count;
		if (!(r->flags & DP_BUCKET_TIMELESS))
		{
			unpack->times = palloc_extended(r->count * sizeof(int64), MCXT_ALLOC_HUGE);
			dp_bucket_times(r, unpack->times);
		}
		dp_bucket_fields(r, NULL, 0, &fields);
		dp_bucket_rows_init(&unpack->rows, &fields);
		set->user_fctx = unpack;
		MemoryContextSwitchTo(old);
	}

	set = SRF_PERCALL_SETUP();
	unpack = set->user_fctx;
	i = (int) set->call_cntr;
	if (i < unpack->count)
	{
		Datum values[2];
		bool nulls[2] = { false, false };
		DpBuilder b;

		nulls[0] = unpack->times == NULL;
		values[0] = nulls[0] ? (Datum) 0 : TimestampTzGetDatum(unpack->times[i]);
		dp_builder_init(&b, 0);
		dp_builder_begin_document(&b);
		dp_bucket_rows_append(&unpack->rows, i, &b);
		dp_builder_end(&b);
		values[1] = PointerGetDatum(dp_builder_finish_bson(&b));
		SRF_RETURN_NEXT(set, HeapTupleGetDatum(heap_form_tuple(set->tuple_desc, values, nulls)));
	}
	SRF_RETURN_DONE(set);
}

/*
 * bucket_unpack(bucket, base anyelement) -> setof anyelement: rows of the type
 * of base.
 */
DP_FUNCTION(dp_bucket_unpack_rows);
Datum
dp_bucket_unpack_rows(PG_FUNCTION_ARGS)
{
	if (SRF_IS_FIRSTCALL())
	{
		FuncCallContext *set = SRF_FIRSTCALL_INIT();
		MemoryContext old;
		Oid typid = get_fn_expr_argtype(fcinfo->flinfo, 1);
		Oid base = OidIsValid(typid) ? getBaseType(typid) : InvalidOid;
		int32 typmod = -1;
		UnpackRows *rows;

		if (PG_ARGISNULL(0))
			SRF_RETURN_DONE(set);
		if (base == RECORDOID && !PG_ARGISNULL(1))
		{
			HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(1);

			base = HeapTupleHeaderGetTypeId(header);
			typmod = HeapTupleHeaderGetTypMod(header);
		}
		if (!OidIsValid(base) || !type_is_rowtype(base) || (base == RECORDOID && typmod < 0))
			ereport(
				ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the second argument must be of a row type"),
				 errhint(
					 "Use NULL::name_of_table, or bucket_to_recordset() and a list of columns.")));
		old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		rows = rows_start(fcinfo, lookup_rowtype_tupdesc_copy(base, typmod));
		rows->domain = get_typtype(typid) == TYPTYPE_DOMAIN ? typid : InvalidOid;
		set->user_fctx = rows;
		MemoryContextSwitchTo(old);
	}
	return rows_next(fcinfo);
}

/*
 * bucket_to_recordset(bucket) -> setof record, whose columns the query names.
 */
DP_FUNCTION(dp_bucket_to_recordset);
Datum
dp_bucket_to_recordset(PG_FUNCTION_ARGS)
{
	if (SRF_IS_FIRSTCALL())
	{
		FuncCallContext *set = SRF_FIRSTCALL_INIT();
		MemoryContext old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		TupleDesc desc;

		if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
			ereport(
				ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg(
					 "function returning record called in context that cannot accept type record"),
				 errhint(
					 "Name the columns: FROM bucket_to_recordset(b) AS r (ts timestamptz, value float8).")));
		set->user_fctx = rows_start(fcinfo, BlessTupleDesc(CreateTupleDescCopy(desc)));
		MemoryContextSwitchTo(old);
	}
	return rows_next(fcinfo);
}

/*
 * Decodes what the columns of the result need.  A column takes the field of its name.  The first
 * column of a time type without a field of its name takes the times; in a bucket whose columns have
 * no names, the others take these in order.  Of a bucket of documents, the first bson column
 * without a field of its name takes the documents.
 */
static UnpackRows *
rows_start(FunctionCallInfo fcinfo, TupleDesc desc)
{
	UnpackRows *rows = palloc0(sizeof(UnpackRows));
	DpBucketReader r;
	DpBucketFields fields;
	bool by_position;
	bool time_taken;
	bool documents_taken = false;
	int position = 0;

	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open(&r, PG_GETARG_DATUM(0));
	dp_bucket_fields(&r, NULL, 0, &fields);
	by_position = !(r.flags & DP_BUCKET_NAMED) && !fields.split;
	time_taken = (r.flags & DP_BUCKET_TIMELESS) != 0;

	rows->count = r.count;
	rows->desc = desc;
	rows->values = palloc0(Max(desc->natts, 1) * sizeof(Datum *));
	rows->nulls = palloc0(Max(desc->natts, 1) * sizeof(bool *));
	rows->row = palloc(Max(desc->natts, 1) * sizeof(Datum));
	rows->row_nulls = palloc(Max(desc->natts, 1) * sizeof(bool));

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const DpBucketField *field = NULL;
		int column;

		if (att->attisdropped)
			continue;
		if (!by_position)
			field = dp_bucket_fields_find(&fields, NameStr(att->attname),
										  strlen(NameStr(att->attname)));
		if (field == NULL && !time_taken && is_time_type(getBaseType(att->atttypid)))
		{
			int64 *times = palloc_extended(r.count * sizeof(int64), MCXT_ALLOC_HUGE);

			time_taken = true;
			rows->values[i] = palloc_extended(r.count * sizeof(Datum), MCXT_ALLOC_HUGE);
			rows->nulls[i] = palloc0(r.count * sizeof(bool));
			dp_bucket_times(&r, times);
			for (int k = 0; k < r.count; k++)
				rows->values[i][k] = time_datum(times[k], getBaseType(att->atttypid));
			continue;
		}
		if (field != NULL)
			column = field->column;
		else if (by_position && position < r.ncolumns)
			column = position++;
		else if (fields.split && !documents_taken && getBaseType(att->atttypid) == dp_types()->bson)
		{
			documents_taken = true;
			column = 0;
		}
		else
			continue;
		rows->values[i] = palloc_extended(r.count * sizeof(Datum), MCXT_ALLOC_HUGE);
		rows->nulls[i] = palloc(r.count * sizeof(bool));
		column_datums(&r, column, att->atttypid, att->atttypmod, rows->values[i], rows->nulls[i]);
	}
	return rows;
}

/*
 * The values of a column as the SQL type.  Numbers, times and the like become
 * other types by their casts, as when they are inserted into a table.
 */
static void
column_datums(DpBucketReader *r, int column, Oid typid, int32 typmod, Datum *values, bool *nulls)
{
	DpPackedKind kind = dp_bucket_column(r, column)->kind;
	Oid own = dp_bucket_kind_type(kind);
	CaseTestExpr *input;
	Node *cast;
	ExprState *state;
	ExprContext *context;

	if ((typid == own && typmod < 0) || kind == DP_PACKED_OTHER || kind == DP_PACKED_VALUE ||
		kind == DP_PACKED_NOTHING || kind == DP_PACKED_SPLIT_DOCUMENT)
	{
		dp_bucket_datums(r, column, typid, typmod, values, nulls);
		return;
	}

	input = makeNode(CaseTestExpr);
	input->typeId = own;
	input->typeMod = -1;
	input->collation = get_typcollation(own);
	cast = coerce_to_target_type(NULL, (Node *) input, own, typid, typmod, COERCION_ASSIGNMENT,
								 COERCE_IMPLICIT_CAST, -1);
	if (cast == NULL)
		ereport(ERROR, (errcode(ERRCODE_CANNOT_COERCE),
						errmsg("cannot convert a field of type %s to a column of type %s",
							   format_type_be(own), format_type_be(typid))));
	state = ExecInitExpr(expression_planner((Expr *) cast), NULL);
	context = CreateStandaloneExprContext();
	dp_bucket_datums(r, column, own, -1, values, nulls);
	for (int i = 0; i < r->count; i++)
	{
		context->caseValue_datum = values[i];
		context->caseValue_isNull = nulls[i];
		values[i] = ExecEvalExpr(state, context, &nulls[i]);
	}
	FreeExprContext(context, true);
}

/* The next row. */
static Datum
rows_next(FunctionCallInfo fcinfo)
{
	FuncCallContext *set = SRF_PERCALL_SETUP();
	UnpackRows *rows = set->user_fctx;
	int i = (int) set->call_cntr;
	Datum result;

	if (rows == NULL || i >= rows->count)
		SRF_RETURN_DONE(set);
	for (int k = 0; k < rows->desc->natts; k++)
	{
		rows->row_nulls[k] = rows->values[k] == NULL || rows->nulls[k][i];
		rows->row[k] = rows->row_nulls[k] ? (Datum) 0 : rows->values[k][i];
	}
	result = HeapTupleGetDatum(heap_form_tuple(rows->desc, rows->row, rows->row_nulls));
	if (OidIsValid(rows->domain))
		domain_check(result, false, rows->domain, NULL, NULL);
	SRF_RETURN_NEXT(set, result);
}

static bool
is_time_type(Oid type)
{
	return type == TIMESTAMPTZOID || type == TIMESTAMPOID || type == DATEOID;
}

/* A time of a bucket as a datum of one of these types, by the clock of UTC. */
static Datum
time_datum(int64 t, Oid type)
{
	if (type == DATEOID)
		return DateADTGetDatum((DateADT) (t / USECS_PER_DAY - (t % USECS_PER_DAY < 0 ? 1 : 0)));
	return TimestampTzGetDatum(t);
}
