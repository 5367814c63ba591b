/*
 * row.c
 *		Relations without documents: columns as fields, filters as conditions on columns.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "common/shortest_dec.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/number.h"
#include "mql/filter_compile.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/row.h"

/* Fields in one call of bson_build(): functions have at most 100 arguments */
#define BUILD_FIELDS 49

bool (*dp_documents_hook)(Oid relid) = NULL;

static DpRowKind kind_of(Oid type);
static DpValue divide(const DpRow *row, const DpValue *filter, StringInfo sql);
static DpValue divide_each(const DpRow *row, const DpValue *filters, StringInfo sql);
static const char *any_of(const DpRow *row, const DpValue *filters);
static void add(StringInfo sql, const char *condition);
static const char *condition_of(const DpRow *row, DpRowColumn *c, const char *op, const DpValue *v);
static const char *
compare(const DpRow *row, const DpRowColumn *c, const char *op, const DpValue *v);
static const char *compare_time(const DpRowColumn *c, const char *op, int64 ms);
static const char *among(const DpRow *row, const DpRowColumn *c, const DpValue *array);
static char *literal(const DpRow *row, const DpRowColumn *c, const DpValue *v);
static char *time_literal(int64 ms, const char *type);

DpRow *
dp_row_open(Oid relid)
{
	Relation rel = try_relation_open(relid, AccessShareLock);
	DpRow *row = palloc0(sizeof(DpRow));
	bool has_document = false;
	char relkind;

	if (rel == NULL)
		return NULL;
	relkind = rel->rd_rel->relkind;
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE &&
		relkind != RELKIND_VIEW && relkind != RELKIND_MATVIEW && relkind != RELKIND_FOREIGN_TABLE)
	{
		relation_close(rel, AccessShareLock);
		return NULL;
	}
	row->is_foreign = relkind == RELKIND_FOREIGN_TABLE;
	row->own = quote_identifier(get_namespace_name(dp_types()->schema));
	row->source = psprintf("%s AS t",
						   quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
													  RelationGetRelationName(rel)));
	for (int i = 0; i < RelationGetDescr(rel)->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
		DpRowColumn *c;

		if (att->attisdropped)
			continue;
		if (att->atttypid == dp_types()->bson)
		{
			has_document = has_document || !row->is_foreign || row->doc != NULL;
			row->doc = psprintf("coalesce(t.%s, '{}'::%s.bson)",
								quote_identifier(NameStr(att->attname)), row->own);
			continue;
		}
		c = palloc(sizeof(DpRowColumn));
		c->name = pstrdup(NameStr(att->attname));
		c->attnum = i + 1;
		c->sql = psprintf("t.%s", quote_identifier(c->name));
		c->type = getBaseType(att->atttypid);
		c->collation = att->attcollation;
		c->kind = kind_of(c->type);
		c->not_null = att->attnotnull;
		row->columns = lappend(row->columns, c);
	}
	relation_close(rel, AccessShareLock);
	if (has_document ||
		(row->doc != NULL && (dp_row_column(row, "_id") != NULL || dp_has_documents(relid))))
		return NULL;
	return row;
}

bool
dp_has_documents(Oid relid)
{
	return dp_documents_hook != NULL && dp_documents_hook(relid);
}

static DpRowKind
kind_of(Oid type)
{
	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return DP_ROW_INTEGER;
		case FLOAT4OID:
		case FLOAT8OID:
			return DP_ROW_FLOAT;
		case NUMERICOID:
			return DP_ROW_NUMERIC;
		case TEXTOID:
		case VARCHAROID:
			return DP_ROW_TEXT;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return DP_ROW_TIMESTAMP;
		case DATEOID:
			return DP_ROW_DATE;
		case BOOLOID:
			return DP_ROW_BOOL;
		case UUIDOID:
			return DP_ROW_UUID;
		default:
			return type == dp_types()->objectid ? DP_ROW_OBJECTID : DP_ROW_OTHER;
	}
}

DpRowColumn *
dp_row_column(const DpRow *row, const char *name)
{
	ListCell *lc;

	if (strchr(name, '.') == NULL)
		foreach(lc, row->columns)
			if (strcmp(((DpRowColumn *) lfirst(lc))->name, name) == 0)
				return lfirst(lc);
	return NULL;
}

DpRow *
dp_row_with(const DpRow *row, const List *names)
{
	DpRow *result = memcpy(palloc(sizeof(DpRow)), row, sizeof(DpRow));
	ListCell *lc;

	result->columns = NIL;
	foreach(lc, row->columns)
	{
		DpRowColumn *c = lfirst(lc);
		bool wanted = names == NIL;
		ListCell *name;

		foreach(name, names)
			wanted = wanted || strcmp(lfirst(name), c->name) == 0;
		if (wanted)
			result->columns = lappend(result->columns,
									  memcpy(palloc(sizeof(DpRowColumn)), c, sizeof(DpRowColumn)));
	}
	return result;
}

char *
dp_row_document(const DpRow *row, const List *fields)
{
	bool whole = row->doc != NULL && fields == NIL;
	StringInfoData sql;
	ListCell *lc;
	int n = 0;

	foreach(lc, fields)
		whole = whole || (row->doc != NULL && dp_row_column(row, lfirst(lc)) == NULL);
	initStringInfo(&sql);
	if (whole)
		appendStringInfoString(&sql, row->doc);
	foreach(lc, row->columns)
	{
		DpRowColumn *c = lfirst(lc);
		bool wanted = fields == NIL;
		ListCell *lc2;

		foreach(lc2, fields)
			wanted = wanted || strcmp(lfirst(lc2), c->name) == 0;
		if (!wanted)
			continue;
		if (n % BUILD_FIELDS > 0)
			appendStringInfoString(&sql, ", ");
		else
		{
			if (sql.len > 0)
				appendStringInfo(&sql, "%s OPERATOR(%s.||) ", n > 0 ? ")" : "", row->own);
			appendStringInfo(&sql, "%s.bson_build(", row->own);
		}
		appendStringInfo(&sql, "%s::pg_catalog.text, %s", quote_literal_cstr(c->name), c->sql);
		n++;
	}
	if (sql.len == 0)
		return psprintf("'{}'::%s.bson", row->own);
	return psprintf("(%s%s)", sql.data, n > 0 ? ")" : "");
}

bool
dp_row_has_byte_order(const DpRowColumn *column)
{
	return column->collation == C_COLLATION_OID;
}

bool
dp_row_has_equality(const DpRowColumn *column)
{
	switch (column->kind)
	{
		case DP_ROW_TEXT:
			return get_collation_isdeterministic(column->collation);
		case DP_ROW_TIMESTAMP:
		case DP_ROW_OTHER:
			return false;
		default:
			return true;
	}
}

/* ---------------------------------------------------------------- filters */

char *
dp_row_conditions(const DpRow *row, const DpValue *filter)
{
	StringInfoData sql;
	DpValue rest;

	initStringInfo(&sql);
	rest = divide(row, filter, &sql);
	if (rest.len > DP_DOCUMENT_MIN_SIZE)
		add(&sql, psprintf("%s OPERATOR(%s.@@) %s",
						   dp_row_document(row, dp_pipeline_filter_fields(&rest)), row->own,
						   dp_sql_document(&rest)));
	return sql.len > 0 ? sql.data : NULL;
}

static void
add(StringInfo sql, const char *condition)
{
	appendStringInfo(sql, "%s%s", sql->len > 0 ? " AND " : "", condition);
}

/* Appends what is said by conditions on columns, and returns the rest of the filter. */
static DpValue
divide(const DpRow *row, const DpValue *filter, StringInfo sql)
{
	DpBuilder rest;
	DpIter iter;
	DpElement e;

	check_stack_depth();
	dp_builder_init(&rest, filter->len);
	dp_builder_begin_document(&rest);
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &e))
	{
		DpRowColumn *c = e.name[0] == '$' ? NULL : dp_row_column(row, e.name);
		DpValue left = e.value;
		const char *condition;

		if (strcmp(e.name, "$and") == 0)
			left = divide_each(row, &e.value, sql);
		else if (strcmp(e.name, "$or") == 0 && (condition = any_of(row, &e.value)) != NULL)
		{
			add(sql, condition);
			continue;
		}
		else if (c != NULL && dp_filter_is_operators(&e.value))
		{
			DpBuilder operators;
			DpIter inner;
			DpElement op;

			dp_builder_init(&operators, e.value.len);
			dp_builder_begin_document(&operators);
			dp_iter_init_value(&inner, &e.value);
			while (dp_iter_next(&inner, &op))
			{
				condition = condition_of(row, c, op.name, &op.value);
				if (condition != NULL)
					add(sql, condition);
				else
					dp_builder_append_value(&operators, op.name, op.namelen, &op.value);
			}
			dp_builder_end(&operators);
			left = dp_builder_view(&operators, DP_TYPE_DOCUMENT);
			if (left.len == DP_DOCUMENT_MIN_SIZE)
				continue;
		}
		else if (c != NULL && (condition = condition_of(row, c, "$eq", &e.value)) != NULL)
		{
			add(sql, condition);
			continue;
		}
		if (strcmp(e.name, "$and") != 0 || left.len > DP_DOCUMENT_MIN_SIZE)
			dp_builder_append_value(&rest, e.name, e.namelen, &left);
	}
	dp_builder_end(&rest);
	return dp_builder_view(&rest, DP_TYPE_DOCUMENT);
}

/* Does so for each filter of an array. */
static DpValue
divide_each(const DpRow *row, const DpValue *filters, StringInfo sql)
{
	DpBuilder rest;
	DpIter iter;
	DpValue filter;

	dp_builder_init(&rest, filters->len);
	dp_builder_begin_array(&rest);
	dp_iter_init_value(&iter, filters);
	while (dp_iter_next_value(&iter, &filter))
	{
		DpValue left = divide(row, &filter, sql);

		if (left.len > DP_DOCUMENT_MIN_SIZE)
			dp_builder_append_value(&rest, NULL, 0, &left);
	}
	dp_builder_end(&rest);
	return dp_builder_view(&rest, DP_TYPE_ARRAY);
}

/* The condition that one of the filters matches; NULL unless conditions on columns say all. */
static const char *
any_of(const DpRow *row, const DpValue *filters)
{
	StringInfoData sql;
	DpIter iter;
	DpValue filter;

	initStringInfo(&sql);
	dp_iter_init_value(&iter, filters);
	while (dp_iter_next_value(&iter, &filter))
	{
		DpRow *branch = dp_row_with(row, NIL);
		StringInfoData conditions;

		initStringInfo(&conditions);
		if (divide(branch, &filter, &conditions).len > DP_DOCUMENT_MIN_SIZE || conditions.len == 0)
			return NULL;
		appendStringInfo(&sql, "%s(%s)", sql.len > 0 ? " OR " : "", conditions.data);
	}
	return psprintf("(%s)", sql.data);
}

/* The condition that an operator of a filter is, NULL if SQL has none. */
static const char *
condition_of(const DpRow *row, DpRowColumn *c, const char *op, const DpValue *v)
{
	static const char *const operators[][2] = {
		{ "$eq", "=" }, { "$gt", ">" }, { "$gte", ">=" }, { "$lt", "<" }, { "$lte", "<=" },
	};
	const char *sql = NULL;

	if (c->kind == DP_ROW_OTHER)
		return NULL;
	if (v->type == DP_TYPE_NULL && strcmp(op, "$eq") == 0)
		return psprintf("%s IS NULL", c->sql);
	if (v->type == DP_TYPE_NULL && strcmp(op, "$ne") == 0)
		sql = psprintf("%s IS NOT NULL", c->sql);
	else if (strcmp(op, "$in") == 0)
		sql = among(row, c, v);
	else if (strcmp(op, "$ne") == 0 || strcmp(op, "$nin") == 0)
	{
		sql = op[2] == 'e' ? compare(row, c, "=", v) : among(row, c, v);
		return sql == NULL ? NULL : psprintf("(%s) IS NOT TRUE", sql);
	}
	else
		for (int i = 0; i < lengthof(operators); i++)
			if (strcmp(op, operators[i][0]) == 0)
				sql = compare(row, c, operators[i][1], v);
	c->not_null = c->not_null || sql != NULL;
	return sql;
}

/* A comparison with a value. */
static const char *
compare(const DpRow *row, const DpRowColumn *c, const char *op, const DpValue *v)
{
	bool equal = op[0] == '=';
	const char *sql = c->sql;
	const char *value;

	if (c->kind == DP_ROW_TIMESTAMP)
		return v->type == DP_TYPE_DATE ? compare_time(c, op, dp_get_int64(v->data)) : NULL;
	value = literal(row, c, v);
	if (value == NULL)
		return NULL;
	if (equal ? !dp_row_has_equality(c) : c->kind == DP_ROW_BOOL || c->kind == DP_ROW_UUID)
		return NULL;
	if (!equal && c->kind == DP_ROW_TEXT && !dp_row_has_byte_order(c))
		sql = psprintf("%s COLLATE pg_catalog.\"C\"", sql);
	sql = psprintf("%s OPERATOR(%s.%s) %s", sql,
				   c->kind == DP_ROW_OBJECTID ? row->own : "pg_catalog", op, value);
	/* which is neither less nor greater than a number in a filter */
	if (op[0] == '>' && (c->kind == DP_ROW_FLOAT || c->kind == DP_ROW_NUMERIC))
		sql = psprintf("%s AND %s OPERATOR(pg_catalog.<>) 'NaN'::%s", sql, c->sql,
					   format_type_be_qualified(c->type));
	return sql;
}

/* A comparison with a time that has microseconds, which the document has not. */
static const char *
compare_time(const DpRowColumn *c, const char *op, int64 ms)
{
	const char *type = format_type_be_qualified(c->type);
	char *from = time_literal(ms, type);
	char *next = ms < PG_INT64_MAX ? time_literal(ms + 1, type) : NULL;

	if (from == NULL || next == NULL)
		return NULL;
	if (op[0] == '=')
		return psprintf("%s OPERATOR(pg_catalog.>=) %s AND %s OPERATOR(pg_catalog.<) %s", c->sql,
						from, c->sql, next);
	return psprintf("%s OPERATOR(pg_catalog.%s) %s", c->sql, op[0] == '>' ? ">=" : "<",
					strcmp(op, ">") == 0 || strcmp(op, "<=") == 0 ? next : from);
}

/* Whether it equals an element of an array, all of which SQL can compare. */
static const char *
among(const DpRow *row, const DpRowColumn *c, const DpValue *array)
{
	StringInfoData values;
	DpIter iter;
	DpValue one;
	int n = 0;

	if (c->kind == DP_ROW_TIMESTAMP || !dp_row_has_equality(c))
		return NULL;
	initStringInfo(&values);
	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &one))
	{
		char *value = literal(row, c, &one);

		if (value == NULL)
			return NULL;
		appendStringInfo(&values, "%s%s", n++ > 0 ? ", " : "", value);
	}
	if (n == 0)
		return NULL;
	return psprintf(n == 1 ? "%s OPERATOR(%s.=) %s" : "%s OPERATOR(%s.=) ANY (ARRAY[%s])", c->sql,
					c->kind == DP_ROW_OBJECTID ? row->own : "pg_catalog", values.data);
}

/* A constant that compares with the column as the value does with its BSON; NULL if none does. */
static char *
literal(const DpRow *row, const DpRowColumn *c, const DpValue *v)
{
	char text[Max(DP_DECIMAL128_TEXT_SIZE, MAXDATELEN + 1)];
	int64 whole;
	double d;

	switch (c->kind)
	{
		case DP_ROW_INTEGER:
			if (!dp_type_is_number(v->type) || !dp_value_to_whole(v, &whole) ||
				(c->type == INT2OID && (whole < PG_INT16_MIN || whole > PG_INT16_MAX)) ||
				(c->type == INT4OID && (whole < PG_INT32_MIN || whole > PG_INT32_MAX)))
				return NULL;
			return psprintf("'" INT64_FORMAT "'::%s", whole, format_type_be_qualified(c->type));
		case DP_ROW_FLOAT:
			if (v->type == DP_TYPE_DOUBLE)
				d = dp_get_double(v->data);
			else if (v->type == DP_TYPE_INT32)
				d = dp_get_int32(v->data);
			else if (v->type == DP_TYPE_INT64)
			{
				whole = dp_get_int64(v->data);
				d = (double) whole;
				if (whole < -(INT64CONST(1) << 53) || whole > INT64CONST(1) << 53)
					return NULL;
			}
			else
				return NULL;
			if (isnan(d))
				return NULL;
			double_to_shortest_decimal_buf(d, text);
			return psprintf("'%s'::pg_catalog.float8", text);
		case DP_ROW_NUMERIC:
			if (!dp_type_is_number(v->type))
				return NULL;
			if (dp_value_to_whole(v, &whole))
				return psprintf("'" INT64_FORMAT "'::pg_catalog.numeric", whole);
			if (v->type != DP_TYPE_DECIMAL128)
				return NULL;
			text[dp_decimal128_to_text(v->data, text)] = '\0';
			/* neither NaN nor infinite */
			if (strpbrk(text, "Nn") != NULL)
				return NULL;
			return psprintf("'%s'::pg_catalog.numeric", text);
		case DP_ROW_TEXT:
			if (v->type != DP_TYPE_STRING || strlen(DP_STRING_DATA(v)) != DP_STRING_LEN(v))
				return NULL;
			return psprintf("%s::pg_catalog.text", quote_literal_cstr(DP_STRING_DATA(v)));
		case DP_ROW_DATE:
			if (v->type != DP_TYPE_DATE)
				return NULL;
			return time_literal(dp_get_int64(v->data), "pg_catalog.timestamp");
		case DP_ROW_BOOL:
			return v->type == DP_TYPE_BOOL ? (v->data[0] != 0 ? "true" : "false") : NULL;
		case DP_ROW_UUID:
			if (v->type != DP_TYPE_BINARY || v->len != 5 + UUID_LEN || v->data[4] != DP_BINARY_UUID)
				return NULL;
			return psprintf("%s::pg_catalog.uuid",
							quote_literal_cstr(DatumGetCString(
								DirectFunctionCall1(uuid_out, PointerGetDatum(v->data + 5)))));
		case DP_ROW_OBJECTID:
			if (v->type != DP_TYPE_OBJECTID)
				return NULL;
			hex_encode((const char *) v->data, DP_OBJECTID_SIZE, text);
			return psprintf("'%.*s'::%s.objectid", 2 * DP_OBJECTID_SIZE, text, row->own);
		default:
			return NULL;
	}
}

/* A time in milliseconds as a constant of the type; NULL if PostgreSQL has no such time. */
static char *
time_literal(int64 ms, const char *type)
{
	char text[MAXDATELEN + 1];
	struct pg_tm tm;
	fsec_t fsec;
	Timestamp t;

	if (pg_sub_s64_overflow(ms, DP_EPOCH_SHIFT_MS, &ms) || pg_mul_s64_overflow(ms, 1000, &t) ||
		!IS_VALID_TIMESTAMP(t) || timestamp2tm(t, NULL, &tm, &fsec, NULL, NULL) != 0)
		return NULL;
	EncodeDateTime(&tm, fsec, true, 0, NULL, USE_ISO_DATES, text);
	return psprintf("'%s'::%s", text, type);
}

/* ---------------------------------------------------------------- finding */

bool
dp_row_lookup(Oid relid, const char *field, bool indexed, DpDocLookup *lookup)
{
	DpRow *row = dp_row_open(relid);
	DpRowColumn *c;
	Relation rel;
	ListCell *lc;

	if (row == NULL)
		return false;
	memset(lookup, 0, sizeof(DpDocLookup));
	lookup->source = pstrdup(row->source);
	lookup->doc = dp_row_document(row, NIL);
	c = dp_row_column(row, field);
	if (c == NULL || !dp_row_has_equality(c))
		return true;
	lookup->type = c->type;
	if (!indexed)
	{
		lookup->expr = pstrdup(c->sql);
		lookup->is_key = c->not_null;
		return true;
	}
	rel = relation_open(relid, AccessShareLock);
	foreach(lc, RelationGetIndexList(rel))
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);
		Form_pg_index i = index->rd_index;

		if (i->indisvalid && i->indkey.values[0] == c->attnum &&
			RelationGetIndexPredicate(index) == NIL)
		{
			lookup->expr = pstrdup(c->sql);
			lookup->is_key |=
				c->not_null && i->indisunique && i->indimmediate && i->indnkeyatts == 1;
		}
		index_close(index, AccessShareLock);
	}
	relation_close(rel, AccessShareLock);
	return true;
}

/* ---------------------------------------------------------------- order */

/* Columns if all fields have them; otherwise the sort key of their document. */
char *
dp_row_order(const DpRow *row, const DpValue *spec)
{
	StringInfoData sql;
	List *fields = NIL;
	bool plain = true;
	DpIter iter;
	DpElement field;

	initStringInfo(&sql);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &field))
	{
		DpRowColumn *c = dp_row_column(row, field.name);
		int64 direction;

		fields = lappend(fields, pnstrdup(field.name, strcspn(field.name, ".")));
		plain = plain && c != NULL && c->kind != DP_ROW_FLOAT && c->kind != DP_ROW_NUMERIC &&
				c->kind != DP_ROW_OTHER && dp_value_to_whole(&field.value, &direction);
		if (!plain)
			continue;
		/* times in one millisecond are equal, so that a next field decides */
		plain = c->kind != DP_ROW_TIMESTAMP || iter.next >= iter.end;
		appendStringInfo(&sql, "%s%s%s%s%s", sql.len > 0 ? ", " : "", c->sql,
						 c->kind == DP_ROW_TEXT && !dp_row_has_byte_order(c)
							 ? " COLLATE pg_catalog.\"C\""
							 : "",
						 direction < 0 ? " DESC" : "",
						 c->not_null     ? ""
						 : direction < 0 ? " NULLS LAST"
										 : " NULLS FIRST");
	}
	if (plain)
		return sql.data;
	return psprintf("%s.bson_sort_key(%s, %s)", row->own, dp_row_document(row, fields),
					dp_sql_document(spec));
}
