/*
 * collection_calls.c
 *		Pieces of SQL for the calls for collections, and for pipelines: turns a filter and a sort
 *		specification into conditions and an order that indexes serve.
 *
 * The calls themselves are in patterns/collection/.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_trigger.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/collation.h"
#include "mql/collection_calls.h"
#include "mql/collection_shape.h"
#include "mql/collection_split.h"
#include "mql/collection_target.h"
#include "mql/filter.h"
#include "mql/sort_key.h"
#include "mql/spec.h"

/* Collects the conditions */
typedef struct Conditions
{
	DpTarget *target;
	DpCall *call;       /* NULL: operands are literals, and not elements of $2 */
	const char *schema; /* of the extension, quoted */
	StringInfoData sql;
	int maxoperands;
	bool is_keyed; /* one is that the key equals a value */
	bool variable; /* the filter has $$NOW or $rand, which operators refuse */
	List *loose;   /* of LooseCondition */

	/* by read_documents(): */
	struct varlena *near; /* the part of the filter for stored documents, */
	struct varlena *far;  /* and that for whole ones; NULL if they are empty */
	bool whole;           /* conditions or the order read whole documents */
	char *from;
	char *doc;
	char *order; /* NULL if there is none */
} Conditions;

/* What a filter implies for an indexed expression whose path may have arrays */
typedef struct LooseCondition
{
	const char *expr;
	bool deep;          /* it is NULL if there is an array on the way */
	StringInfoData sql; /* if none does */
} LooseCondition;

static bool shows_split(DpSplit *split, const List *fields);
static void
add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg);
static StringInfo loose_condition(Conditions *c, const char *expr, bool deep);
static void append_loose(Conditions *c);
static char *sort_order(Conditions *c, const DpValue *spec, const char *doc);
static char *sort_key(Conditions *c, const char *doc, const DpValue *spec);
static char *operands(Conditions *c, const DpValue *values, int n, bool array);
static char *add_operand(Conditions *c, struct varlena *value, const uint8 *origin);
static char *filter_operand(Conditions *c, struct varlena *filter);
static bool
add_search(Conditions *c, const DpPath *path, DpComparison how, const DpValue *values, int n);
static void prepare(DpCall *call, DpTarget *target);
static bool call_shows_split(const DpCall *call, DpSplit *split);
static void
read_documents(Conditions *c, struct varlena *filter, const DpValue *sort, bool shows_split);
static void append_filter(Conditions *c, struct varlena *filter);
static void append_match(Conditions *c, const char *doc, const char *filter);

/*
 * _collection_query(rel regclass, filter bson, sort bson, projection bson, field text, update
 * bson_value) -> (source text, doc text, conditions text, ordering text, doc_column text,
 * key_column text, change text, operands bson_value[]): the first parts of a call's statements
 */
DP_FUNCTION(dp_collection_query);
Datum
dp_collection_query(PG_FUNCTION_ARGS)
{
	DpCall call;
	TupleDesc desc;
	Datum values[DP_CALL_CHANGE + 2];
	bool nulls[DP_CALL_CHANGE + 2] = { false };

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	dp_call_begin(&call, fcinfo, 1);
	call.sort = PG_ARGISNULL(2) ? NULL : DP_GETARG_VARLENA(2);
	call.projection = PG_ARGISNULL(3) ? NULL : DP_GETARG_VARLENA(3);
	call.field = PG_ARGISNULL(4) ? NULL : PG_GETARG_TEXT_PP(4);
	call.update = PG_ARGISNULL(5) ? NULL : DP_GETARG_VARLENA(5);
	dp_call_prepare(&call);
	for (int i = 0; i <= DP_CALL_CHANGE; i++)
	{
		nulls[i] = call.sql[i] == NULL;
		if (!nulls[i])
			values[i] = CStringGetTextDatum(call.sql[i]);
	}
	values[DP_CALL_CHANGE + 1] = dp_call_operands(&call);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

void
dp_call_begin(DpCall *call, FunctionCallInfo fcinfo, int filter)
{
	if (PG_ARGISNULL(0) || PG_ARGISNULL(filter))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("%s cannot be null", PG_ARGISNULL(0) ? "relation" : "filter"),
						PG_ARGISNULL(0) ? 0 : errhint("The filter {} matches all documents.")));
	memset(call, 0, sizeof(DpCall));
	call->relid = PG_GETARG_OID(0);
	call->filter = DP_GETARG_VARLENA(filter);
}

Datum
dp_call_operands(const DpCall *call)
{
	return PointerGetDatum(construct_array(call->operands, call->noperands, dp_types()->bson_value,
										   -1, false, TYPALIGN_INT));
}

void
dp_call_prepare(DpCall *call)
{
	DpTarget target;
	DpShape shape;

	if (call->sort != NULL && DP_DOC_SIZE(call->sort) == DP_DOCUMENT_MIN_SIZE)
		call->sort = NULL;
	dp_target_open(&target, call->relid);
	if (call->collation != NULL)
	{
		DpValue collation = dp_value_of_document(call->collation);

		(void) dp_collation_get(&collation);
		prepare(call, &target);
	}
	else if (!dp_shape_find(&shape, call))
	{
		prepare(call, &target);
		dp_shape_keep(&shape, call);
	}
	table_close(target.rel, AccessShareLock);
}

static void
prepare(DpCall *call, DpTarget *target)
{
	Conditions c = { .target = target, .call = call };
	DpValue sort;
	bool shown;
	bool has_ctid = target->is_table && !target->is_remote;
	const char *order;

	dp_target_find(target);
	/* what is split off is shown or updated */
	shown = target->split != NULL && call_shows_split(call, target->split);
	call->once = target->split != NULL && call->update != NULL;
	if (call->sort != NULL)
		sort = dp_value_of_document(call->sort);
	read_documents(&c, call->filter, call->sort == NULL ? NULL : &sort, shown);
	call->sql[DP_CALL_SOURCE] = c.from;
	call->sql[DP_CALL_DOC] = c.doc;
	call->sql[DP_CALL_CONDITIONS] = c.sql.data;
	call->sql[DP_CALL_ORDERING] = c.order;
	order = c.order == NULL ? "" : psprintf(" ORDER BY %s", c.order);
	if (c.whole || shown)
		call->sql[DP_CALL_CHANGE] = psprintf(
			"SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER "
			"(WHERE pg_catalog.cardinality(c.docs) OPERATOR(pg_catalog.=) 2), "
			"pg_catalog.array_agg(c.docs) FILTER (WHERE $14) FROM "
			"(SELECT c.docs FROM (SELECT %s, %s, %s, $1, $11, $12, $14) AS docs FROM %s WHERE %s%s) AS c "
			"WHERE c.docs IS NOT NULL LIMIT $6) AS c",
			target->split->change(target->split),
			c.near == NULL ? "NULL" : filter_operand(&c, c.near),
			c.far == NULL ? "NULL" : filter_operand(&c, c.far), c.from, c.sql.data, order);
	if (has_ctid || target->row != NIL)
		call->sql[DP_CALL_LOCATE] =
			psprintf("SELECT %s FROM %s WHERE %s%s LIMIT 1",
					 has_ctid ? "t.tableoid, t.ctid, NULL"
							  : psprintf("NULL::pg_catalog.oid, NULL::pg_catalog.tid, %s",
										 dp_target_row_condition(target)),
					 c.from, c.sql.data, order);
	if (has_ctid)
		call->sql[DP_CALL_LOCATED] =
			"t.tableoid OPERATOR(pg_catalog.=) $9 AND t.ctid OPERATOR(pg_catalog.=) $10";
	call->is_table = has_ctid;
	call->is_remote = target->is_remote;
	call->hiding = target->hiding;
	call->is_single = has_ctid && c.is_keyed &&
					  dp_target_is_single(target, call->update != NULL ? TRIGGER_TYPE_UPDATE
																	   : TRIGGER_TYPE_DELETE);
	call->sql[DP_CALL_INSERTION] =
		psprintf("%s FROM pg_catalog.unnest($15) WITH ORDINALITY AS s (doc, n) ORDER BY n",
				 dp_target_insertion(target));
	if (target->is_remote && target->key != 0)
		call->sql[DP_CALL_NEW_IDS] = dp_target_new_ids(target);
	call->sql[DP_CALL_ID] = dp_target_id(target);
	call->sql[DP_CALL_DOC_COLUMN] = dp_target_attribute(target, target->doc);
	if (target->row != NIL && !target->is_remote)
		call->base = dp_target_base(target);
	if (target->key != 0)
		call->sql[DP_CALL_KEY_COLUMN] = dp_target_attribute(target, target->key);
}

static bool
call_shows_split(const DpCall *call, DpSplit *split)
{
	DpValue value;

	if (call->projection != NULL)
	{
		value = dp_value_of_document(call->projection);
		if (dp_split_projection(split, &value))
			return true;
	}
	if (call->field != NULL &&
		dp_split_find(split, dp_path_parse(VARDATA_ANY(call->field),
										   VARSIZE_ANY_EXHDR(call->field))) != NULL)
		return true;
	if (call->update == NULL)
		return false;
	value = dp_value_of_varlena(call->update);
	return dp_split_update(split, &value);
}

/*
 * Divides what a statement reads between stored and whole documents.  filter and sort may be NULL;
 * shows_split: split fields are shown.
 */
static void
read_documents(Conditions *c, struct varlena *filter, const DpValue *sort, bool shows_split)
{
	DpSplit *split = c->target->split;

	c->schema = c->target->schema;
	c->from = psprintf("%s AS t", c->target->name);
	c->doc = psprintf("t.%s", dp_target_column(c->target, c->target->doc));
	c->near = filter;
	initStringInfo(&c->sql);
	if (filter != NULL && DP_DOC_SIZE(filter) > DP_DOCUMENT_MIN_SIZE)
		append_filter(c, filter);
	else
		appendStringInfo(&c->sql, "%s IS NOT NULL", c->doc);
	if (c->target->seen != NULL)
		appendStringInfo(&c->sql, " AND %s", c->target->seen);
	c->whole = c->far != NULL || (sort != NULL && split != NULL && dp_split_sort(split, sort));
	if (c->whole)
	{
		/* once for each row that is left, and not before that is known; Citus refuses the subquery
		 */
		if (c->target->is_remote)
			c->doc = split->whole(split);
		else
		{
			c->from = psprintf("%s CROSS JOIN LATERAL (SELECT %s AS doc OFFSET 0) AS w", c->from,
							   split->whole(split));
			c->doc = "w.doc";
		}
		if (c->far != NULL)
		{
			appendStringInfoString(&c->sql, " AND ");
			append_match(c, c->doc, filter_operand(c, c->far));
		}
	}
	else if (shows_split)
		c->doc = split->whole(split);
	if (sort != NULL)
		c->order = sort_order(c, sort, c->doc);
}

/* The conditions of a filter on stored documents; sets near and far. */
static void
append_filter(Conditions *c, struct varlena *filter)
{
	DpValue spec = dp_value_of_document(filter);
	MemoryContext scratch =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns filter of a call",
							  DP_SPEC_CONTEXT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(scratch);
	DpFilter *compiled;

	c->variable =
		c->call != NULL && c->call->collation == NULL && dp_filter_is_variable(&spec, false);
	compiled =
		dp_filter_compile(&spec, DP_FILTER_DOCUMENT | (c->variable ? 0 : DP_FILTER_IMMUTABLE),
						  NULL);
	MemoryContextSwitchTo(old);
	if (c->target->split != NULL)
		dp_split_filter(c->target->split, &spec, &c->near, &c->far);
	if (c->near == NULL)
		appendStringInfo(&c->sql, "%s IS NOT NULL", c->doc);
	else
		append_match(c, c->doc,
					 c->call != NULL && c->far == NULL ? "$1" : filter_operand(c, c->near));
	dp_filter_each_comparison(compiled, add_condition, c);
	append_loose(c);
	MemoryContextDelete(scratch);
}

/* Appends whether a document matches a filter. */
static void
append_match(Conditions *c, const char *doc, const char *filter)
{
	if (c->call != NULL && c->call->collation != NULL)
		appendStringInfo(&c->sql, "docpatterns._collated_match(%s, %s, $8)", doc, filter);
	else if (c->variable)
		appendStringInfo(&c->sql, "docpatterns._match(%s, %s, NULL)", doc, filter);
	else
		appendStringInfo(&c->sql, "%s OPERATOR(%s.@@) %s", doc, c->schema, filter);
}

/* ---------------------------------------------------------------- conditions */

/*
 * For dp_filter_each_comparison(): adds a condition on the key or on an indexed expression, if the
 * filter implies it.
 */
static void
add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg)
{
	static const char *const operators[] = { "=", "<", "<=", ">", ">=", "=" };
	Conditions *c = arg;
	DpTarget *target = c->target;
	bool on_key = target->key != 0 && dp_path_is_id(path);
	const char *expr;
	char *operand;
	bool arrays = false;
	StringInfo sql = &c->sql;

	for (int i = 0; i < n; i++)
		switch (values[i].type)
		{
			case DP_TYPE_STRING:
			case DP_TYPE_SYMBOL:
			case DP_TYPE_DOCUMENT:
			case DP_TYPE_ARRAY:
				/* indexes compare bytes */
				if (c->call != NULL && c->call->collation != NULL)
					return;
				break;
			case DP_TYPE_NULL:
				/* elsewhere nothing is as good as null */
				if (!on_key || how != DP_COMPARE_EQ)
					return;
				break;
			case DP_TYPE_UNDEFINED:
			case DP_TYPE_MINKEY:
			case DP_TYPE_MAXKEY:
				/* values of other types match, too */
				return;
		}
	if (add_search(c, path, how, values, n))
		return;
	/* the planner finds these conditions by the filter (field_index.c), except for pruning */
	if (c->call == NULL && target->rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return;
	if (on_key)
	{
		if (how != DP_COMPARE_EQ && how != DP_COMPARE_IN && !dp_target_key_sorts(target))
			return;
		expr = psprintf("t.%s", dp_target_column(target, target->key));
		c->is_keyed |= how == DP_COMPARE_EQ;
	}
	else
	{
		expr = dp_target_indexed(target, path, &arrays);
		if (expr == NULL)
			return;
	}
	if (arrays)
		sql = loose_condition(c, expr, path->nsteps > 1);
	if (sql->len > 0)
		appendStringInfoString(sql, " AND ");
	operand = operands(c, values, n, how == DP_COMPARE_IN);
	if (on_key && how == DP_COMPARE_IN)
		appendStringInfoString(sql, dp_collection_key_in(target->rel, target->key, operand));
	else if (how == DP_COMPARE_IN)
		appendStringInfo(sql, "%s OPERATOR(%s.=) ANY (%s)", expr, c->schema, operand);
	else if (on_key && dp_target_key_type(target) != dp_types()->bson_value)
	{
		operand = dp_key_operand(dp_target_key_type(target), operand);
		/* a limit between the keys, such as 2.5, is for the filter */
		if (how != DP_COMPARE_EQ)
			appendStringInfo(sql, "(%s IS NULL OR ", operand);
		appendStringInfo(sql, "%s OPERATOR(%s.%s) %s%s", expr,
						 dp_target_key_type(target) == dp_types()->objectid ? c->schema
																			: "pg_catalog",
						 operators[how], operand, how == DP_COMPARE_EQ ? "" : ")");
	}
	else
		appendStringInfo(sql, "%s OPERATOR(%s.%s) %s", expr, c->schema, operators[how], operand);
}

/* SQL for a value, or for an array of values. */
static char *
operands(Conditions *c, const DpValue *values, int n, bool array)
{
	StringInfoData sql;
	int first;
	int room = n > 0;

	initStringInfo(&sql);
	if (c->call == NULL)
	{
		for (int i = 0; i < n; i++)
			appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "", dp_sql_value(&values[i]));
		if (!array)
			return sql.data;
		return n > 0 ? psprintf("ARRAY[%s]", sql.data)
					 : psprintf("'{}'::%s.bson_value[]", c->schema);
	}
	/* not another statement for each number of values */
	while (room < n)
		room *= 2;
	first = c->call->noperands + 1;
	for (int i = 0; i < room; i++)
	{
		const DpValue *value = &values[Min(i, n - 1)];

		add_operand(c, dp_value_to_varlena(value), value->data);
	}
	return array ? psprintf("($2)[%d:%d]", first, c->call->noperands) : psprintf("($2)[%d]", first);
}

/* SQL for a value. origin: where the filter has it; NULL if it was computed from the filter. */
static char *
add_operand(Conditions *c, struct varlena *value, const uint8 *origin)
{
	DpCall *call = c->call;

	if (call == NULL)
	{
		DpValue v = dp_value_of_varlena(value);

		return dp_sql_value(&v);
	}
	if (call->noperands == c->maxoperands)
	{
		bool first = c->maxoperands == 0;

		c->maxoperands = Max(8, c->maxoperands * 2);
		if (first)
		{
			call->operands = palloc(c->maxoperands * sizeof(Datum));
			call->origins = palloc(c->maxoperands * sizeof(uint8 *));
		}
		else
		{
			call->operands = repalloc(call->operands, c->maxoperands * sizeof(Datum));
			call->origins = repalloc(call->origins, c->maxoperands * sizeof(uint8 *));
		}
	}
	call->operands[call->noperands] = PointerGetDatum(value);
	call->origins[call->noperands] = origin;
	call->once |= origin == NULL;
	return psprintf("($2)[%d]", ++call->noperands);
}

/* A document among the operands. */
static char *
filter_operand(Conditions *c, struct varlena *filter)
{
	DpValue value = dp_value_of_document(filter);

	if (c->call == NULL)
		return dp_sql_document(&value);
	return psprintf("(%s::%s.bson)", add_operand(c, dp_value_to_varlena(&value), NULL), c->schema);
}

/*
 * Adds a condition on a path with split fields: the stored document cannot decide it, except by the
 * elements of an array that the stored document and an index of the pattern contain together.
 * Returns true for such a path.
 */
static bool
add_search(Conditions *c, const DpPath *path, DpComparison how, const DpValue *values, int n)
{
	DpSplitField *field = c->target->split == NULL ? NULL : dp_split_find(c->target->split, path);
	DpBuilder b;
	StringInfoData name;
	char *in_document;
	DpValue array;

	if (field == NULL)
		return false;
	if (field->search == NULL || field->path->nsteps != path->nsteps ||
		(how != DP_COMPARE_EQ && how != DP_COMPARE_IN))
		return true;
	for (int i = 0; i < n; i++)
		if (values[i].type == DP_TYPE_ARRAY)
			return true; /* the array as a whole, too */

	initStringInfo(&name);
	for (int i = 0; i < path->nsteps; i++)
		appendStringInfo(&name, "%s%s", i > 0 ? "." : "", path->steps[i].name);
	dp_builder_init(&b, 64);
	dp_builder_begin_document(&b);
	dp_builder_begin_document_field(&b, name.data, name.len);
	dp_builder_begin_array_field(&b, "$in", 3);
	for (int i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &values[i]);
	dp_builder_end(&b);
	dp_builder_end(&b);
	dp_builder_end(&b);
	in_document = filter_operand(c, dp_builder_finish_bson(&b));

	dp_builder_init(&b, 64);
	dp_builder_begin_array(&b);
	for (int i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &values[i]);
	dp_builder_end(&b);
	array = dp_builder_view(&b, DP_TYPE_ARRAY);
	appendStringInfo(&c->sql, " AND (t.%s OPERATOR(%s.@@) %s OR %s)",
					 dp_target_column(c->target, c->target->doc), c->schema, in_document,
					 field->search(field, add_operand(c, dp_value_to_varlena(&array), NULL)));
	return true;
}

/*
 * The collected conditions on an expression whose path may have arrays: a range has two sides and
 * is searched once.
 */
static StringInfo
loose_condition(Conditions *c, const char *expr, bool deep)
{
	LooseCondition *loose;
	ListCell *lc;

	foreach(lc, c->loose)
	{
		loose = lfirst(lc);
		if (strcmp(loose->expr, expr) == 0)
			return &loose->sql;
	}
	loose = palloc(sizeof(LooseCondition));
	loose->expr = expr;
	loose->deep = deep;
	initStringInfo(&loose->sql);
	c->loose = lappend(c->loose, loose);
	return &loose->sql;
}

/*
 * Adds the conditions on expressions whose paths may have arrays, whose elements a filter tests:
 * the expression satisfies the comparison, or is an array (any), or is NULL, because an array is on
 * the way.  The planner combines three searches of the index.
 */
static void
append_loose(Conditions *c)
{
	ListCell *lc;

	foreach(lc, c->loose)
	{
		LooseCondition *loose = lfirst(lc);

		/* from the smallest array to what comes after all of them: no bytes */
		appendStringInfo(
			&c->sql,
			" AND (%s OR %s OPERATOR(%s.>=) '[]'::%s.bson_value AND "
			"%s OPERATOR(%s.<) '{\"$binary\": {\"base64\": \"\", \"subType\": \"00\"}}'::%s.bson_value",
			loose->sql.data, loose->expr, c->schema, c->schema, loose->expr, c->schema, c->schema);
		if (loose->deep)
			appendStringInfo(&c->sql, " OR %s IS NULL", loose->expr);
		appendStringInfoChar(&c->sql, ')');
	}
}

/*
 * The ORDER BY of a sort specification.  Of several fields the first comes alone, too,
 * if an index has it: then only documents with the same key of it are left to be sorted.
 */
static char *
sort_order(Conditions *c, const DpValue *spec, const char *doc)
{
	DpTarget *target = c->target;
	DpIter iter;
	DpElement first;
	DpPath *path;
	int64 direction;
	char *key;

	dp_sort_spec_compile(spec);
	if (c->call != NULL && c->call->collation != NULL)
		return psprintf("docpatterns._collated_sort_key(%s, $3, $8)", doc);
	dp_iter_init_value(&iter, spec);
	(void) dp_iter_next(&iter, &first);
	if (target->split != NULL && dp_split_sort(target->split, spec))
		return sort_key(c, doc, spec);

	path = dp_path_of_field(first.name);
	doc = psprintf("t.%s", dp_target_column(target, target->doc));
	/* the key is unique: other fields decide nothing */
	if (target->key != 0 && dp_path_is_id(path) && dp_target_key_sorts(target) &&
		dp_value_to_whole(&first.value, &direction))
		return psprintf("t.%s%s", dp_target_column(target, target->key),
						direction < 0 ? " DESC" : "");
	key = sort_key(c, doc, spec);
	if (iter.next < iter.end)
	{
		bool arrays;

		if (dp_target_indexed(target, path, &arrays) != NULL)
		{
			DpBuilder b;
			DpValue alone;

			dp_builder_init(&b, 64);
			dp_builder_begin_document(&b);
			dp_builder_append_value(&b, first.name, first.namelen, &first.value);
			dp_builder_end(&b);
			alone = dp_builder_view(&b, DP_TYPE_DOCUMENT);
			return psprintf("%s, %s", sort_key(c, doc, &alone), key);
		}
	}
	return key;
}

static char *
sort_key(Conditions *c, const char *doc, const DpValue *spec)
{
	return psprintf("%s.bson_sort_key(%s, %s)", c->schema, doc, dp_sql_document(spec));
}

/* Whether one of the fields is split; NIL: all fields. */
static bool
shows_split(DpSplit *split, const List *fields)
{
	DpBuilder b;
	DpValue projection;
	ListCell *lc;

	dp_builder_init(&b, 128);
	dp_builder_begin_document(&b);
	foreach(lc, fields)
		dp_builder_append_bool(&b, lfirst(lc), strlen(lfirst(lc)), true);
	dp_builder_end(&b);
	projection = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	return dp_split_projection(split, &projection);
}

void
dp_collection_source(Oid relid, const DpValue *filter, const DpValue *sort, const List *fields,
					 DpDocSource *source)
{
	DpTarget target;
	Conditions c = { .target = &target };
	bool shown;

	dp_target_open(&target, relid);
	dp_target_find(&target);
	shown = target.split != NULL && shows_split(target.split, fields);
	read_documents(&c, filter == NULL ? NULL : dp_document_to_varlena(filter->data, filter->len),
				   sort, shown);
	source->from = c.from;
	source->doc = c.doc;
	source->computed = shown && !c.whole;
	source->conditions = c.sql.data;
	if (filter == NULL && TupleDescAttr(RelationGetDescr(target.rel), target.doc - 1)->attnotnull)
		source->conditions = target.seen;
	source->order = c.order;
	table_close(target.rel, AccessShareLock);
}
