/*
 * kit/view.c
 *		Calls that take buckets and make buckets: merge, slice; and the check of
 *		a whole bucket.
 */
#include "postgres.h"

#include <math.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "bson/validate.h"
#include "types/bucket/builder.h"

static void check_values(const DpPackedColumn *p, const DpValues *v);
static void check_value(int type, const DpString *s);
static void compare_columns(const DpPackedColumn *is, const DpPackedColumn *was);
static DpBucketBuilder *bucket_builder_like(DpBucketReader *r, MemoryContext mcxt);

/* A builder that makes buckets with the same columns. */
static DpBucketBuilder *
bucket_builder_like(DpBucketReader *r, MemoryContext mcxt)
{
	DpBucketBuilder *b = dp_builder_create(mcxt, r->flags);

	for (int i = 0; i < r->ncolumns; i++)
	{
		const DpPackedColumn *p = dp_bucket_column(r, i);

		dp_builder_add(b, p->kind, p->name, p->namelen);
	}
	return b;
}

/*
 * Adds the columns to the builder that the bucket has and the builder has not.
 */
static void
add_missing_columns(DpBucketBuilder *b, DpBucketReader *r)
{
	for (int i = 0; i < r->ncolumns; i++)
	{
		const DpPackedColumn *p = dp_bucket_column(r, i);
		bool found = (r->flags & DP_BUCKET_NAMED) == 0 && i < b->ncolumns;

		for (int k = 0; k < b->ncolumns && !found && p->name != NULL; k++)
			found = b->columns[k].namelen == p->namelen &&
					memcmp(b->columns[k].name, p->name, p->namelen) == 0;
		if (!found)
			dp_builder_add(b, p->kind, p->name, p->namelen);
	}
}

struct varlena *
dp_bucket_merge(const Datum *buckets, int n)
{
	DpBucketReader r;
	DpBucketBuilder *b = NULL;
	struct varlena *result;

	if (n == 0)
		return NULL;
	dp_bucket_reader_init(&r, CurrentMemoryContext);
	for (int i = 0; i < n; i++)
	{
		dp_bucket_open(&r, buckets[i]);
		if (b == NULL)
			b = bucket_builder_like(&r, CurrentMemoryContext);
		else
			add_missing_columns(b, &r);
	}
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		dp_bucket_open(&r, buckets[i]);
		dp_bucket_append_bucket(b, &r, 0, r.count);
	}
	result = dp_bucket_builder_finish(b);
	dp_bucket_builder_free(b);
	dp_bucket_reader_free(&r);
	return result;
}

struct varlena *
dp_bucket_slice(Datum bucket, const int64 *since, const int64 *until)
{
	DpBucketReader r;
	struct varlena *result = NULL;
	int from = 0;
	int to;

	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open(&r, bucket);
	to = r.count;
	if ((r.flags & DP_BUCKET_TIMELESS) == 0)
		(void) dp_bucket_find_times(&r, since != NULL ? *since : PG_INT64_MIN,
									until != NULL ? *until : PG_INT64_MAX, &from, &to);
	if (from == 0 && to == r.count)
		result = PG_DETOAST_DATUM_COPY(bucket);
	else if (from < to)
	{
		DpBucketBuilder *b = bucket_builder_like(&r, CurrentMemoryContext);

		dp_bucket_append_bucket(b, &r, from, to);
		result = dp_bucket_builder_finish(b);
		dp_bucket_builder_free(b);
	}
	dp_bucket_reader_free(&r);
	return result;
}

/* ---------------------------------------------------------------- checking */

char *
dp_bucket_fault(const uint8 *bytes, Size size)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext work = AllocSetContextCreate(caller, "bucket check", ALLOCSET_DEFAULT_SIZES);
	char *volatile fault = NULL;

	PG_TRY();
	{
		MemoryContextSwitchTo(work);
		dp_bucket_validate(bytes, size);
	}
	PG_CATCH();
	{
		ErrorData *error;
		int class;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		/* errors other than bad bytes are raised: cancellation, memory, stack limits */
		class = ERRCODE_TO_CATEGORY(error->sqlerrcode);
		if (class == ERRCODE_OPERATOR_INTERVENTION || class == ERRCODE_INSUFFICIENT_RESOURCES ||
			class == ERRCODE_PROGRAM_LIMIT_EXCEEDED)
			PG_RE_THROW();
		FlushErrorState();
		fault = error->sqlerrcode == ERRCODE_DATA_CORRUPTED && error->detail != NULL
					? error->detail
					: error->message;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(work);
	return fault;
}

/* Reads everything, packs it again and compares the headers. */
void
dp_bucket_validate(const uint8 *bytes, Size size)
{
	DpBucketReader r;
	DpBucketReader again;
	DpBucketBuilder *b;
	struct varlena *packed;
	uint8 *presence;

	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open_bytes(&r, bytes, size);
	presence = palloc(r.count);
	for (int i = 0; i < r.ncolumns + r.nfields; i++)
	{
		DpValues v;

		const DpPackedColumn *p = dp_bucket_column(&r, i);

		CHECK_FOR_INTERRUPTS();
		if (p->name != NULL && dp_bucket_find_column(&r, p->parent, p->name, p->namelen) != i)
			dp_bucket_corrupted("Two columns have the same name.");
		if (p->name != NULL && !pg_verify_mbstr(PG_UTF8, p->name, p->namelen, true))
			dp_bucket_corrupted("A name is not valid UTF-8.");
		dp_column_load(&r, i, &v, presence);
		check_values(dp_bucket_column(&r, i), &v);
	}
	b = bucket_builder_like(&r, CurrentMemoryContext);
	dp_bucket_append_bucket(b, &r, 0, r.count);
	packed = dp_bucket_builder_finish(b);

	dp_bucket_reader_init(&again, CurrentMemoryContext);
	dp_bucket_open(&again, PointerGetDatum(packed));
	if (again.count != r.count || again.first != r.first || again.last != r.last ||
		again.ncolumns != r.ncolumns)
		dp_bucket_corrupted("The header does not say what the columns hold.");
	for (int i = 0; i < r.ncolumns; i++)
		compare_columns(dp_bucket_column(&r, i), dp_bucket_column(&again, i));
	for (int i = r.ncolumns; i < r.ncolumns + r.nfields; i++)
	{
		const DpPackedColumn *p = dp_bucket_column(&r, i);
		int k = dp_bucket_find_column(&again, p->parent, p->name, p->namelen);

		if (k < 0)
			dp_bucket_corrupted("The header has a field that no document has.");
		compare_columns(p, dp_bucket_column(&again, k));
	}
}

/* Whether two numbers are the same to rounding; NaN is NaN. */
static bool
nearly(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= 1e-9 * Max(fabs(a), fabs(b));
}

/*
 * Compares the summary of a column with that of the values that it holds.
 */
static void
compare_columns(const DpPackedColumn *is, const DpPackedColumn *was)
{
	const DpBucketSummary *a = &is->summary;
	const DpBucketSummary *b = &was->summary;
	bool same;

	same = is->bson_type == was->bson_type && a->nnulls == b->nnulls &&
		   a->nmissing == b->nmissing && a->has_range == b->has_range && a->has_sum == b->has_sum;
	if (same && is->integers && was->integers && a->scale == b->scale)
		same = a->min_i == b->min_i && a->max_i == b->max_i && a->sum_i == b->sum_i &&
			   a->min_scale == b->min_scale && a->max_scale == b->max_scale;
	else if (same && a->has_range)
		same =
			(a->min_d == b->min_d || (isnan(a->min_d) && isnan(b->min_d))) &&
			(a->max_d == b->max_d || (isnan(a->max_d) && isnan(b->max_d))) &&
			(nearly(a->sum_d, b->sum_d) ||
			 fabs(a->sum_d - b->sum_d) <= 1e-9 * a->nvalues * Max(fabs(a->min_d), fabs(a->max_d)));
	if (!same)
		dp_bucket_corrupted("The header does not say what the columns hold.");
}

/*
 * Whether the values are possible ones of the column's kind.
 */
static void
check_values(const DpPackedColumn *p, const DpValues *v)
{
	for (int i = 0; i < v->n; i++)
	{
		switch (p->kind)
		{
			case DP_PACKED_FLOAT4:
			case DP_PACKED_FLOAT8:
				break;
			case DP_PACKED_NUMERIC:
				if (v->types[i] == DP_NO_DECIMAL)
					(void) dp_text_to_numeric(v->strings[i]);
				break;
			case DP_PACKED_TEXT:
			case DP_PACKED_OTHER:
				check_value(DP_TYPE_STRING, &v->strings[i]);
				if (memchr(v->strings[i].data, 0, v->strings[i].len) != NULL)
					dp_bucket_corrupted("A text has a byte 0.");
				break;
			case DP_PACKED_BYTEA:
				break;
			case DP_PACKED_UUID:
			case DP_PACKED_OBJECTID:
				if (v->strings[i].len != (p->kind == DP_PACKED_UUID ? UUID_LEN : DP_OBJECTID_SIZE))
					dp_bucket_corrupted("The length of an id is wrong.");
				break;
			case DP_PACKED_DOCUMENT:
				check_value(DP_TYPE_DOCUMENT, &v->strings[i]);
				break;
			case DP_PACKED_SPLIT_DOCUMENT:
				return;
			case DP_PACKED_VALUE:
				if (dp_type_is_int(v->types[i]))
				{
					if (!dp_int_in_range(p->kind, v->types[i], v->ints[i]))
						dp_bucket_corrupted("A number is out of range.");
				}
				else if (v->types[i] != DP_TYPE_DOUBLE)
					check_value(v->types[i], &v->strings[i]);
				break;
			default:
				if (!dp_int_in_range(p->kind, 0, v->ints[i]))
					dp_bucket_corrupted("A number is out of range.");
				break;
		}
	}
}

/*
 * The bytes of a BSON value, or a string without its length.
 */
static void
check_value(int type, const DpString *s)
{
	DpFault fault;

	if (type == DP_TYPE_STRING)
	{
		const uint8 *p = s->data;
		const uint8 *end = p + s->len;

		/* strings of BSON may have bytes 0, which the function stops at */
		while (p < end)
		{
			p += pg_encoding_verifymbstr(PG_UTF8, (const char *) p, (int) (end - p));
			if (p < end && *p != 0)
				dp_bucket_corrupted("A text is not valid UTF-8.");
			p++;
		}
	}
	else if (type == DP_TYPE_DOCUMENT ? !dp_validate(s->data, s->len, &fault)
									  : !dp_validate_value(type, s->data, s->len, &fault))
		dp_bucket_corrupted("A document in it is not valid.");
}
