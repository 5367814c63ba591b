/*
 * error.c
 *		Errors of the query languages, and the readings of values that their
 *		operators share.
 */
#include "postgres.h"

#include "common/int.h"

#include "bson/number.h"
#include "mql/error.h"

/* What MongoDB does by an operator or a stage, and this server in another way */
static const struct
{
	const char *name;
	const char *hint;
} elsewhere[] = {
	{ "$text", "Use PostgreSQL's text search: see docs/search.md." },
	{ "$meta", "Compute ranks and distances in SQL: see docs/search.md." },
	{ "$near", "Use PostGIS: see docs/search.md." },
	{ "$nearSphere", "Use PostGIS: see docs/search.md." },
	{ "$geoWithin", "Use PostGIS: see docs/search.md." },
	{ "$geoIntersects", "Use PostGIS: see docs/search.md." },
	{ "$where", "Use $expr, or a condition in SQL." },
	{ "$search", "Use PostgreSQL's text search: see docs/search.md." },
	{ "$searchMeta", "Use PostgreSQL's text search: see docs/search.md." },
	{ "$geoNear", "Use PostGIS: see docs/search.md." },
	{ "$vectorSearch", "Use the extension pgvector: see docs/search.md." },
	{ "$rankFusion", "Combine ranks in SQL: see docs/search.md." },
	{ "$scoreFusion", "Combine ranks in SQL: see docs/search.md." },
	{ "$changeStream", "Use the change feed pattern, or logical decoding." },
	{ "$changeStreamSplitLargeEvent", "Use the change feed pattern, or logical decoding." },
	{ "$listSearchIndexes", "Call collection_list_indexes()." },
	{ "$listClusterCatalog", "Query the view pg_tables." },
	{ "$currentOp", "Query the view pg_stat_activity." },
	{ "$listLocalSessions", "Query the view pg_stat_activity." },
	{ "$listSessions", "Query the view pg_stat_activity." },
	{ "$planCacheStats", "Query the view pg_prepared_statements." },
	{ "$queryStats", "Use the extension pg_stat_statements." },
	{ "$listSampledQueries", "Use the extension pg_stat_statements." },
	{ "$querySettings", "Set planner parameters for a session, a role or a database." },
	{ "$shardedDataDistribution", "Query the view citus_shards of the extension Citus." },
};

static void location_append(StringInfo out, const DpLocation *location);
static void location_callback(void *arg);
static bool exact_truncate(const DpExact *exact, int64 *result);

/*
 * The parts from the outermost to the innermost.
 */
static void
location_append(StringInfo out, const DpLocation *location)
{
	if (location->up != NULL)
	{
		location_append(out, location->up);
		if (out->len > 0)
			appendStringInfoChar(out, '.');
	}
	if (location->name != NULL)
		appendBinaryStringInfo(out, location->name, location->namelen);
	else
		appendStringInfo(out, "%u", location->index);
}

char *
dp_location_text(const DpLocation *location)
{
	StringInfoData out;
	char *text;

	initStringInfo(&out);
	if (location != NULL)
		location_append(&out, location);
	text = pstrdup(out.data);
	pfree(out.data);
	return text;
}

static void
location_callback(void *arg)
{
	const DpLocationContext *context = arg;

	if (context->location != NULL)
		errdetail("At path \"%s\".", dp_location_text(context->location));
}

void
dp_location_push(DpLocationContext *context, const DpLocation *location)
{
	context->location = location;
	context->callback.callback = location_callback;
	context->callback.arg = context;
	context->callback.previous = error_context_stack;
	error_context_stack = &context->callback;
}

void
dp_location_pop(DpLocationContext *context)
{
	error_context_stack = context->callback.previous;
}

bool
dp_location_is_callback(void (*callback)(void *))
{
	return callback == location_callback;
}

const char *
dp_elsewhere_hint(const char *name)
{
	for (int i = 0; i < lengthof(elsewhere); i++)
		if (strcmp(elsewhere[i].name, name) == 0)
			return elsewhere[i].hint;
	return NULL;
}

void
dp_unknown_operator(const DpLocation *location, const char *what, const DpNearest *nearest)
{
	const char *hint = dp_elsewhere_hint(location->name);

	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					hint != NULL ? errmsg("%s \"%s\" is not supported", what, location->name)
								 : errmsg("unknown %s \"%s\"", what, location->name),
					errdetail("At path \"%s\".", dp_location_text(location)),
					hint != NULL      ? errhint("%s", hint)
					: nearest != NULL ? dp_nearest_hint(nearest)
									  : 0));
}

void
dp_bad_spec(const DpLocation *location, const char *fmt, ...)
{
	StringInfoData message;

	initStringInfo(&message);
	for (;;)
	{
		va_list args;
		int needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(&message, fmt, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&message, needed);
	}
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg_internal("%s", message.data),
					location ? errdetail("At path \"%s\".", dp_location_text(location)) : 0));
}

char *
dp_read_named(const DpValue *doc, const char *what, const char *kind, const char *names,
			  DpElement *elements)
{
	DpIter iter;
	DpElement element;
	const char *p;
	int i;

	memset(elements, 0, sizeof(DpElement) * DP_MOST_NAMED);
	dp_iter_init_value(&iter, doc);
	while (dp_iter_next(&iter, &element))
	{
		for (i = 0, p = names;; i++)
		{
			size_t len;

			p += *p == '?';
			len = strcspn(p, " ");
			if (len == element.namelen && memcmp(p, element.name, len) == 0)
				break;
			if (p[len] == '\0')
				return psprintf("%s has no %s \"%.*s\"", what, kind,
								(int) Min(element.namelen, 200), element.name);
			p += len + 1;
		}
		if (elements[i].name != NULL)
			return psprintf("%s has its %s \"%s\" twice", what, kind, element.name);
		elements[i] = element;
	}
	for (i = 0, p = names; *p != '\0'; i++)
	{
		int len = strcspn(p, " ");

		if (*p != '?' && elements[i].name == NULL)
			return psprintf("%s needs the %s \"%.*s\"", what, kind, len, p);
		p += len + (p[len] == ' ');
	}
	return NULL;
}

void
dp_bad_spec_type(const DpLocation *location, const char *expected, const DpValue *found)
{
	if (location != NULL && location->name != NULL)
		dp_bad_spec(location, "\"%.*s\" needs %s, not %s", (int) location->namelen, location->name,
					expected, dp_type_name(found->type));
	dp_bad_spec(location, "expected %s, not %s", expected, dp_type_name(found->type));
}

bool
dp_value_to_whole(const DpValue *value, int64 *result)
{
	DpNumber number;
	uint8 buf[DP_EXACT_MAX_DIGITS];

	if (value->type == DP_TYPE_INT32)
	{
		*result = dp_get_int32(value->data);
		return true;
	}
	if (!dp_type_is_number(value->type))
		return false;
	dp_number_from_value(&number, value, buf);
	if (number.kind != DP_NUMBER_INTEGER)
		return false;
	*result = number.i;
	return true;
}

/*
 * The digits before the point, if they fit.
 */
static bool
exact_truncate(const DpExact *exact, int64 *result)
{
	int64 n = 0;

	if (exact->rank != 0 || exact->point > 19)
		return false;
	for (int i = 0; i < exact->point; i++)
	{
		int digit = i < exact->ndigits ? exact->digits[i] : 0;

		/* counted down, where there is room for one more */
		if (pg_mul_s64_overflow(n, 10, &n) || pg_sub_s64_overflow(n, digit, &n))
			return false;
	}
	if (!exact->negative && n == PG_INT64_MIN)
		return false;
	*result = exact->negative ? n : -n;
	return true;
}

bool
dp_value_truncate(const DpValue *value, int64 *result)
{
	switch (value->type)
	{
		case DP_TYPE_INT32:
			*result = dp_get_int32(value->data);
			return true;
		case DP_TYPE_INT64:
			*result = dp_get_int64(value->data);
			return true;
		case DP_TYPE_DOUBLE:
		{
			double d = trunc(dp_get_double(value->data));

			/* NaN is refused too */
			if (!(d >= (double) PG_INT64_MIN && d < -(double) PG_INT64_MIN))
				return false;
			*result = (int64) d;
			return true;
		}
		case DP_TYPE_DECIMAL128:
		{
			DpExact exact;
			uint8 buf[DP_EXACT_MAX_DIGITS];

			dp_exact_from_value(value, &exact, buf);
			return exact_truncate(&exact, result);
		}
		default:
			return false;
	}
}

bool
dp_value_is_true(const DpValue *value)
{
	int64 whole;

	switch (value->type)
	{
		case DP_TYPE_BOOL:
			return value->data[0] != 0;
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
			return false;
		case DP_TYPE_INT32:
			return dp_get_int32(value->data) != 0;
		case DP_TYPE_INT64:
			return dp_get_int64(value->data) != 0;
		case DP_TYPE_DOUBLE:
			return dp_get_double(value->data) != 0;
		case DP_TYPE_DECIMAL128:
			return !(dp_value_to_whole(value, &whole) && whole == 0);
		default:
			return true;
	}
}
