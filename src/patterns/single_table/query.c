/*
 * query.c
 *		Single tables: queries of one partition, by the table's key or an index.
 *
 * Every condition on the sort key becomes a range: keys that begin with "ab" are
 * those from "ab" to "ac", exclusively.  A cursor, the keys of the last item of a
 * page, is the bound of the next page; in an index, where sort keys are not unique,
 * together with the item's own keys.
 */
#include "postgres.h"

#include "kit/shard.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "mql/filter.h"
#include "mql/projection.h"
#include "patterns/single_table/single_table.h"

/* Shapes of statements; each has its plan */
#define LOWER 0x01      /* sort keys from ... */
#define LOWER_OPEN 0x02 /* ... beyond it */
#define UPPER 0x04
#define UPPER_OPEN 0x08
#define DESCENDING 0x10
#define AFTER 0x20 /* beyond an item, in an index */
#define FILTER 0x40
#define COUNT 0x80

typedef struct KeyQuery
{
	DpSingleTable *s;
	int index; /* 0: the table's key */
	int shape;
	text *pk;
	text *lower;
	text *upper;
	text *after[3]; /* sort key in the index, pk, sk */
	int64 take;     /* -1: all */
	struct varlena *filter;
} KeyQuery;

static void query_range(KeyQuery *q, FunctionCallInfo fcinfo);
static void query_after(KeyQuery *q, struct varlena *after);
static text *after_field(KeyQuery *q, struct varlena *after, const char *field, bool required);
static void bound_lower(KeyQuery *q, text *bound, bool open);
static void bound_upper(KeyQuery *q, text *bound, bool open);
static text *prefix_end(text *prefix);
static int text_order(text *a, text *b);
static SPIPlanPtr query_plan(KeyQuery *q);
static Datum count_document(int64 n);

/*
 * single_table_query(rel, pk, sk_begins_with, sk_between, sk_op, sk, index,
 *		descending, take, after, filter, fields, count_only) -> documents
 */
DP_ROUTED_FUNCTION(dp_single_table_query, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	KeyQuery q = { 0 };
	DpProjection *projection = NULL;
	DpValue spec;
	Datum values[9];
	char nulls[10] = "nnnnnnnnn";
	MemoryContext row;
	uint64 i;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and pk must not be null")));
	q.s = dp_single_table_of(PG_GETARG_OID(0));
	q.pk = PG_GETARG_TEXT_PP(1);
	if (!PG_ARGISNULL(6))
	{
		q.index = PG_GETARG_INT32(6);
		if (q.index < 1 || q.index > q.s->nindexes)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the single table \"%s\" has no index %d",
								   dp_relation_name(q.s->decl->target), q.index),
							errdetail("It has %d.", q.s->nindexes)));
	}
	if (!PG_ARGISNULL(7) && PG_GETARG_BOOL(7))
		q.shape |= DESCENDING;
	q.take = -1;
	if (!PG_ARGISNULL(8))
	{
		q.take = PG_GETARG_INT32(8);
		if (q.take < 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("take must not be negative")));
	}
	query_range(&q, fcinfo);
	if (!PG_ARGISNULL(9))
		query_after(&q, PG_GETARG_VARLENA_PP(9));
	if (!PG_ARGISNULL(10))
	{
		q.filter = PG_GETARG_VARLENA_PP(10);
		q.shape |= FILTER;
	}
	if (!PG_ARGISNULL(11))
	{
		spec = dp_value_of_document(PG_GETARG_VARLENA_PP(11));
		projection = dp_projection_compile(&spec, 0);
	}
	if (!PG_ARGISNULL(12) && PG_GETARG_BOOL(12))
	{
		if (projection != NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("fields and count_only cannot be combined")));
		q.shape |= COUNT;
	}
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

#define PARAMETER(n, value)                                                                        \
	do                                                                                             \
	{                                                                                              \
		values[n] = (value);                                                                       \
		nulls[n] = ' ';                                                                            \
	} while (0)
	PARAMETER(0, PointerGetDatum(q.pk));
	if (q.shape & LOWER)
		PARAMETER(1, PointerGetDatum(q.lower));
	if (q.shape & UPPER)
		PARAMETER(2, PointerGetDatum(q.upper));
	if (q.take >= 0)
		PARAMETER(3, Int64GetDatum(q.take));
	PARAMETER(4, TimestampTzGetDatum(GetCurrentTimestamp()));
	if (q.shape & AFTER)
	{
		PARAMETER(5, PointerGetDatum(q.after[0]));
		PARAMETER(6, PointerGetDatum(q.after[1]));
		PARAMETER(7, PointerGetDatum(q.after[2]));
	}
	if (q.shape & FILTER)
		PARAMETER(8, PointerGetDatum(q.filter));
#undef PARAMETER

	SPI_connect();
	(void) dp_run(q.s->decl, query_plan(&q), values, nulls, DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
	row = AllocSetContextCreate(CurrentMemoryContext, "docpatterns row", ALLOCSET_DEFAULT_SIZES);
	for (i = 0; i < SPI_processed; i++)
	{
		bool isnull;
		Datum result;

		CHECK_FOR_INTERRUPTS();
		if (q.shape & COUNT)
			result = count_document(DatumGetInt64(dp_result(i, 1, &isnull)));
		else if (projection == NULL)
			result = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
		else
		{
			MemoryContext old = MemoryContextSwitchTo(row);
			struct varlena *doc = (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull));

			if (!isnull)
			{
				DpValue value = dp_value_of_document(doc);
				struct varlena *projected = dp_projection_apply(projection, &value, NULL);

				doc = projected != NULL ? projected : doc;
			}
			result = PointerGetDatum(doc);
			MemoryContextSwitchTo(old);
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &result, &isnull);
		MemoryContextReset(row);
	}
	SPI_finish();
	return (Datum) 0;
}

/* A condition on the sort key, in one of four forms */
static void
query_range(KeyQuery *q, FunctionCallInfo fcinfo)
{
	int forms = !PG_ARGISNULL(2) + !PG_ARGISNULL(3) + !(PG_ARGISNULL(4) && PG_ARGISNULL(5));

	if (forms > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("only one of sk_begins_with, sk_between and sk_op can be specified")));
	if (!PG_ARGISNULL(2))
	{
		text *prefix = PG_GETARG_TEXT_PP(2);
		text *end = prefix_end(prefix);

		bound_lower(q, prefix, false);
		if (end != NULL)
			bound_upper(q, end, true);
	}
	else if (!PG_ARGISNULL(3))
	{
		ArrayType *array = PG_GETARG_ARRAYTYPE_P(3);
		Datum *elements;
		bool *isnull;
		int n;

		deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &isnull, &n);
		if (n != 2 || isnull[0] || isnull[1])
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("sk_between must be an array of two keys")));
		bound_lower(q, DatumGetTextPP(elements[0]), false);
		bound_upper(q, DatumGetTextPP(elements[1]), false);
	}
	else if (!PG_ARGISNULL(5))
	{
		const char *op = PG_ARGISNULL(4) ? "=" : text_to_cstring(PG_GETARG_TEXT_PP(4));
		text *key = PG_GETARG_TEXT_PP(5);
		bool open = strchr(op, '=') == NULL;

		if (strcmp(op, "=") != 0 && strcmp(op, "<") != 0 && strcmp(op, "<=") != 0 &&
			strcmp(op, ">") != 0 && strcmp(op, ">=") != 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("sk_op must be one of =, <, <=, > and >=")));
		if (*op != '<')
			bound_lower(q, key, open);
		if (*op != '>')
			bound_upper(q, key, open);
	}
	else if (!PG_ARGISNULL(4))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("sk_op requires sk")));
}

/* Reads the cursor. */
static void
query_after(KeyQuery *q, struct varlena *after)
{
	text *sk = after_field(q, after, "SK", true);

	if (q->index == 0)
	{
		if (q->shape & DESCENDING)
			bound_upper(q, sk, true);
		else
			bound_lower(q, sk, true);
		return;
	}
	q->after[0] = after_field(q, after, dp_gsi_field(q->index - 1, true), false);
	q->after[1] = after_field(q, after, "PK", true);
	q->after[2] = sk;
	q->shape |= AFTER;
}

/* A key of the cursor; where it may be missing, it is empty then. */
static text *
after_field(KeyQuery *q, struct varlena *after, const char *field, bool required)
{
	DpValue value;

	if (dp_document_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), field, strlen(field), &value) &&
		value.type == DP_TYPE_STRING)
		return cstring_to_text_with_len(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	if (required)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("after has no \"%s\"", field),
				 errhint("Pass the last document of the previous page, with its keys.")));
	return cstring_to_text("");
}

/* The range does not begin before that; the narrower bound holds. */
static void
bound_lower(KeyQuery *q, text *bound, bool open)
{
	int cmp = q->shape & LOWER ? text_order(bound, q->lower) : 1;

	if (cmp < 0 || (cmp == 0 && !open))
		return;
	q->lower = bound;
	q->shape |= LOWER;
	q->shape = open ? q->shape | LOWER_OPEN : q->shape & ~LOWER_OPEN;
}

static void
bound_upper(KeyQuery *q, text *bound, bool open)
{
	int cmp = q->shape & UPPER ? text_order(bound, q->upper) : -1;

	if (cmp > 0 || (cmp == 0 && !open))
		return;
	q->upper = bound;
	q->shape |= UPPER;
	q->shape = open ? q->shape | UPPER_OPEN : q->shape & ~UPPER_OPEN;
}

/*
 * The least string of bytes that is greater than all that begin with the
 * prefix; NULL for the empty prefix.  It may be no text, and is compared only.
 */
static text *
prefix_end(text *prefix)
{
	int len = VARSIZE_ANY_EXHDR(prefix);
	text *end;

	if (len == 0)
		return NULL;
	/* the last byte of a text in UTF-8 is never 0xFF */
	end = cstring_to_text_with_len(VARDATA_ANY(prefix), len);
	((unsigned char *) VARDATA_ANY(end))[len - 1]++;
	return end;
}

/* As keys are ordered: by their bytes. */
static int
text_order(text *a, text *b)
{
	int alen = VARSIZE_ANY_EXHDR(a);
	int blen = VARSIZE_ANY_EXHDR(b);
	int cmp = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(alen, blen));

	return cmp != 0 ? cmp : alen - blen;
}

/* The statement of a shape. */
static SPIPlanPtr
query_plan(KeyQuery *q)
{
	DpSingleTable *s = q->s;
	const void *id = &s->plan_query[q->index][q->shape];
	SPIPlanPtr plan = dp_plan(s->decl, id);
	Oid types[9] = { TEXTOID, TEXTOID, TEXTOID, INT8OID,         TIMESTAMPTZOID,
					 TEXTOID, TEXTOID, TEXTOID, dp_types()->bson };
	const char *direction = q->shape & DESCENDING ? " DESC" : "";
	const char *column = quote_identifier(s->decl->doc_column);
	char *pk = q->index == 0 ? "pk" : psprintf("gsi%d_pk", q->index);
	char *sk = q->index == 0 ? "sk" : psprintf("gsi%d_sk", q->index);
	StringInfoData sql;

	if (plan != NULL)
		return plan;
	initStringInfo(&sql);
	if (q->shape & COUNT)
		appendStringInfoString(&sql, "SELECT pg_catalog.count(*) FROM (");
	appendStringInfo(&sql, "SELECT t.%s FROM ", column);
	dp_sql_table(&sql, s->decl->target);
	appendStringInfo(&sql, " AS t WHERE t.%s OPERATOR(pg_catalog.=) $1", pk);
	if (q->shape & LOWER)
		appendStringInfo(&sql, " AND t.%s OPERATOR(pg_catalog.%s) $2", sk,
						 q->shape & LOWER_OPEN ? ">" : ">=");
	if (q->shape & UPPER)
		appendStringInfo(&sql, " AND t.%s OPERATOR(pg_catalog.%s) $3", sk,
						 q->shape & UPPER_OPEN ? "<" : "<=");
	if (q->shape & AFTER)
		appendStringInfo(&sql, " AND ROW(t.%s, t.pk, t.sk) OPERATOR(pg_catalog.%s) ROW($6, $7, $8)",
						 sk, q->shape & DESCENDING ? "<" : ">");
	if (s->ttl != NULL)
		appendStringInfoString(
			&sql, " AND (t.expires_at IS NULL OR t.expires_at OPERATOR(pg_catalog.>) $5)");
	if (q->shape & FILTER)
	{
		appendStringInfo(&sql, " AND t.%s", column);
		dp_sql_own_operator(&sql, "@@");
		appendStringInfoString(&sql, "$9");
	}
	appendStringInfo(&sql, " ORDER BY t.%s%s", sk, direction);
	if (q->index > 0)
		appendStringInfo(&sql, ", t.pk%s, t.sk%s", direction, direction);
	appendStringInfoString(&sql, " LIMIT $4");
	if (q->shape & COUNT)
		appendStringInfoString(&sql, ") AS q");
	return dp_plan_make(s->decl, id, sql.data, 9, types, 0);
}

/* {count: n}, as int32 if it fits */
static Datum
count_document(int64 n)
{
	DpBuilder b;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (n <= PG_INT32_MAX)
		dp_builder_append_int32(&b, "count", 5, (int32) n);
	else
		dp_builder_append_int64(&b, "count", 5, n);
	dp_builder_end(&b);
	return PointerGetDatum(dp_builder_finish_bson(&b));
}
