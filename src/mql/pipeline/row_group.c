/*
 * row_group.c
 *		$group over columns, by SQL's own aggregates: a foreign table may compute them where its
 *		data are.
 *
 * A number in BSON has a type of its own, and NaN is the least: where SQL's aggregate of a column
 * gives another result, that of its BSON values is used.  Foreign tables are an exception: their
 * sums of doubles agree to rounding, and NaN is their greatest number.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "mql/expression_date.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/row.h"

/* Functions have at most 100 arguments */
#define MAX_FIELDS 45

static char *group_id(DpQuery *q, const DpValue *id, StringInfo keys);
static char *group_key(const DpRow *row, const DpValue *v);
static char *group_start(const DpRow *row, const DpValue *spec);
static bool text_of(const DpValue *spec, const char *name, const char **text);
static const DpRowColumn *column_of(const DpRow *row, const DpValue *v);
static char *aggregate(const DpRow *row, const DpElement *accumulator);

bool
dp_query_group_row(DpQuery *q, const DpValue *id, const DpValue *totals)
{
	StringInfoData keys;
	StringInfoData doc;
	DpIter iter;
	DpElement field;
	char *value;

	initStringInfo(&keys);
	initStringInfo(&doc);
	value = group_id(q, id, &keys);
	if (value == NULL || dp_document_count(totals->data, totals->len) > MAX_FIELDS)
		return false;
	appendStringInfo(&doc, "%s.bson_build('_id'::pg_catalog.text, %s", q->pipeline->own, value);
	dp_iter_init_value(&iter, totals);
	while (dp_iter_next(&iter, &field))
	{
		DpIter inner;
		DpElement accumulator;

		dp_iter_init_value(&inner, &field.value);
		value = dp_iter_next(&inner, &accumulator) ? aggregate(q->row, &accumulator) : NULL;
		if (value == NULL)
			return false;
		appendStringInfo(&doc, ", %s::pg_catalog.text, %s", quote_literal_cstr(field.name), value);
	}
	appendStringInfoChar(&doc, ')');
	q->group = keys.data;
	if (keys.len == 0)
		q->having = "pg_catalog.count(*) OPERATOR(pg_catalog.>) 0";
	q->order = NULL;
	q->ordered = false;
	dp_query_set_doc(q, doc.data);
	return true;
}

/* ---------------------------------------------------------------- groups */

/* The _id as SQL, and what it groups by; NULL if that is more than columns. */
static char *
group_id(DpQuery *q, const DpValue *id, StringInfo keys)
{
	StringInfoData doc;
	DpIter iter;
	DpElement part;
	char *key;
	int n = 0;

	if (!dp_type_is_container(id->type) &&
		(id->type != DP_TYPE_STRING || DP_STRING_DATA(id)[0] != '$'))
		return dp_sql_value(id);
	key = group_key(q->row, id);
	if (key != NULL)
	{
		appendStringInfoString(keys, key);
		return key;
	}
	if (id->type != DP_TYPE_DOCUMENT)
		return NULL;
	initStringInfo(&doc);
	dp_iter_init_value(&iter, id);
	while (dp_iter_next(&iter, &part))
	{
		key = part.name[0] == '$' || n == MAX_FIELDS ? NULL : group_key(q->row, &part.value);
		if (key == NULL)
			return NULL;
		appendStringInfo(keys, "%s%s", n > 0 ? ", " : "", key);
		appendStringInfo(&doc, "%s%s::pg_catalog.text, %s", n > 0 ? ", " : "",
						 quote_literal_cstr(part.name), key);
		n++;
	}
	return n == 0 ? NULL : psprintf("%s.bson_build(%s)", q->pipeline->own, doc.data);
}

static char *
group_key(const DpRow *row, const DpValue *v)
{
	const DpRowColumn *c = column_of(row, v);
	DpValue spec;

	if (c != NULL)
		return dp_row_has_equality(c) ? pstrdup(c->sql)
									  : psprintf("coalesce(%s.to_bson(%s), 'null'::%s.bson_value)",
												 row->own, c->sql, row->own);
	if (v->type == DP_TYPE_DOCUMENT && dp_document_count(v->data, v->len) == 1 &&
		dp_document_find(v->data, v->len, "$dateTrunc", 10, &spec) && spec.type == DP_TYPE_DOCUMENT)
		return group_start(row, &spec);
	return NULL;
}

/*
 * $dateTrunc as bucket_start(), which counts days and less from Monday, 3 January 2000, and not
 * from the first of that year, as $dateTrunc does, whose weeks begin on Sunday.  NULL if it is not
 * that of a column and constants, or another origin would be the midnight of a zone.
 */
static char *
group_start(const DpRow *row, const DpValue *spec)
{
	const DpRowColumn *c;
	const char *unit = "";
	const char *zone = "UTC";
	const char *week = "sunday";
	const char *origin = NULL;
	const char *type;
	DpValue v;
	int64 n = 1;
	int64 ms;
	bool is_utc;

	if (!dp_document_find(spec->data, spec->len, "date", 4, &v) ||
		(c = column_of(row, &v)) == NULL || c->kind != DP_ROW_TIMESTAMP ||
		!text_of(spec, "unit", &unit) || !text_of(spec, "timezone", &zone) ||
		!text_of(spec, "startOfWeek", &week) ||
		(dp_document_find(spec->data, spec->len, "binSize", 7, &v) &&
		 (!dp_value_to_whole(&v, &n) || n < 1 || n > 1000000)))
		return NULL;
	is_utc = strcmp(zone, "UTC") == 0;
	if (dp_date_unit(unit) < 0 || strcmp(unit, "millisecond") == 0 ||
		(!is_utc && c->type == TIMESTAMPOID))
		return NULL;
	ms = dp_date_unit_ms(dp_date_unit(unit));
	if (strcmp(unit, "week") == 0)
	{
		bool monday = pg_strcasecmp(week, "monday") == 0;

		if (!monday && pg_strcasecmp(week, "sunday") != 0)
			return NULL;
		origin = !monday ? "2000-01-02" : n > 1 ? "2000-01-03" : NULL;
	}
	else if (ms > 0 && 2 * DP_MS_DAY % (n * ms) != 0)
		origin = "2000-01-01";
	/* the hours of a zone are those that its clock shows */
	if (!is_utc && (origin != NULL || (ms > 0 && ms < DP_MS_DAY)))
		return NULL;
	if (strcmp(unit, "quarter") == 0)
	{
		unit = "month";
		n *= 3;
	}
	type = c->type == TIMESTAMPOID ? "pg_catalog.timestamp" : "pg_catalog.timestamptz";
	if (origin != NULL)
		origin = psprintf(", '%s 00:00:00+00'::%s", origin, type);
	else
		origin = is_utc ? "" : psprintf(", NULL::%s", type);
	zone = is_utc ? "" : psprintf(", %s::pg_catalog.text", quote_literal_cstr(zone));
	return psprintf("%s.bucket_start('" INT64_FORMAT " %s'::pg_catalog.interval, %s%s%s)", row->own,
					n, unit, c->sql, origin, zone);
}

/* The string in a field, which may be missing; false for anything else. */
static bool
text_of(const DpValue *spec, const char *name, const char **text)
{
	DpValue v;

	if (!dp_document_find(spec->data, spec->len, name, strlen(name), &v))
		return true;
	if (v.type != DP_TYPE_STRING || DP_STRING_DATA(&v)[0] == '$')
		return false;
	*text = DP_STRING_DATA(&v);
	return true;
}

/* The column that an expression is, or NULL. */
static const DpRowColumn *
column_of(const DpRow *row, const DpValue *v)
{
	if (v->type != DP_TYPE_STRING || DP_STRING_DATA(v)[0] != '$')
		return NULL;
	return dp_row_column(row, DP_STRING_DATA(v) + 1);
}

/* ---------------------------------------------------------------- accumulators */

/* An accumulator as SQL; NULL if it is more than an aggregate of a column. */
static char *
aggregate(const DpRow *row, const DpElement *accumulator)
{
	const DpRowColumn *c = column_of(row, &accumulator->value);
	const char *name = accumulator->name + 1;
	bool sum = strcmp(name, "sum") == 0;
	bool avg = strcmp(name, "avg") == 0;
	bool range = strcmp(name, "min") == 0 || strcmp(name, "max") == 0;
	bool native;

	if (dp_total_is_count(accumulator))
		return "docpatterns._int(pg_catalog.count(*))";
	if (c == NULL || c->kind == DP_ROW_OTHER || !(sum || avg || range))
		return NULL;
	if (c->kind == DP_ROW_INTEGER && sum)
		return psprintf("docpatterns._sum(pg_catalog.sum(%s))", c->sql);
	if (c->kind == DP_ROW_INTEGER && avg)
		return psprintf("pg_catalog.sum(%s)::pg_catalog.float8 OPERATOR(pg_catalog./) "
						"pg_catalog.count(%s)",
						c->sql, c->sql);
	native = c->type == FLOAT8OID && row->is_foreign;
	if (native && sum)
		return psprintf("coalesce(%s.to_bson(pg_catalog.sum(%s)), '0'::%s.bson_value)", row->own,
						c->sql, row->own);
	native = native || (range && (c->kind == DP_ROW_INTEGER || c->kind == DP_ROW_DATE ||
								  c->kind == DP_ROW_TIMESTAMP ||
								  (c->kind == DP_ROW_TEXT && dp_row_has_byte_order(c))));
	if (native)
		return psprintf("pg_catalog.%s(%s)", name, c->sql);
	if (sum)
		return psprintf("coalesce(%s.sum(%s.to_bson(%s)), '0'::%s.bson_value)", row->own, row->own,
						c->sql, row->own);
	return psprintf("%s.%s(%s.to_bson(%s))", row->own, name, row->own, c->sql);
}
