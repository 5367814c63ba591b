/*
 * collection_calls.c
 *		Pieces of SQL for the calls for collections: finds the column with the documents, and
 *		turns a filter and a sort specification into conditions and an order that indexes serve.
 *
 * The calls themselves are in sql/collection_calls.sql and sql/collection_change.sql.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "parser/parse_func.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/collation.h"
#include "mql/collection_calls.h"
#include "mql/collection_shape.h"
#include "mql/collection_split.h"
#include "mql/filter.h"
#include "mql/sort_key.h"
#include "mql/spec.h"

/* The trigger function of collections, which is the same for all */
#define COLLECTION_TRIGGER "collection_set_id"

/* A relation as the calls see it */
typedef struct Target
{
	Relation rel;
	AttrNumber doc;
	AttrNumber key; /* holds the document's _id and is unique; or 0 */
	List *row;      /* columns (ints) that identify a row; NIL if there are none */
	DpDocFacts *facts;
	DpSplit *split; /* NULL unless patterns have split the documents */
} Target;

/* Collects the conditions */
typedef struct Conditions
{
	Target *target;
	DpCall *call;       /* NULL: operands are literals, and not elements of $2 */
	const char *schema; /* of the extension, quoted */
	StringInfoData sql;
	int maxoperands;
	bool is_keyed; /* one is that the key equals a value */
	List *loose;   /* of LooseCondition */
} Conditions;

/* What a filter implies for an indexed expression whose path may have arrays */
typedef struct LooseCondition
{
	const char *expr;
	bool deep;          /* it is NULL if there is an array on the way */
	StringInfoData sql; /* if none does */
} LooseCondition;

static void find_columns(Target *target);
static bool is_collection(Relation rel, AttrNumber *key, AttrNumber *doc);
static Oid key_type(Relation rel, AttrNumber key);
static bool key_sorts(Target *target);
static bool key_is_unique(Target *target);
static bool has_triggers(Relation rel, int event);
static StringInfo compare_lookup(const DpDocLookup *lookup);
static char *key_operand(Oid type, const char *value);
static const char *key_fresh(Target *target);
static char *new_id(Target *target);
static char *insertion(Target *target);
static char *row_id(Target *target);
static bool shows_split(DpSplit *split, const List *fields);
static char *key_value(Target *target);
static AttrNumber view_key(Relation view, AttrNumber doc);
static RangeTblEntry *view_table(Relation view, Query **query);
static List *row_columns(Relation rel);
static const char *attribute_name(Target *target, AttrNumber attnum);
static const char *column(Target *target, AttrNumber attnum);
static void
add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg);
static StringInfo loose_condition(Conditions *c, const char *expr, bool deep);
static void append_loose(Conditions *c);
static char *sort_order(Conditions *c, const DpValue *spec, const char *doc);
static char *sort_key(Conditions *c, const char *doc, const DpValue *spec);
static bool is_id(const DpPath *path);
static char *operands(Conditions *c, const DpValue *values, int n, bool array);
static char *add_operand(Conditions *c, struct varlena *value, const uint8 *origin);
static char *filter_operand(Conditions *c, struct varlena *filter);
static bool
add_search(Conditions *c, const DpPath *path, DpComparison how, const DpValue *values, int n);
static void prepare(DpCall *call, Target *target);
static void append_match(Conditions *c, const char *doc, const char *filter);
static Oid written_base(Relation view);
static char *row_condition(Target *target);
static char *double_percent(const char *s);
static char *row_key(Target *target, const char *schema);

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
	Target target = { 0 };
	DpShape shape;

	target.rel = try_table_open(call->relid, AccessShareLock);
	if (target.rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", call->relid)));
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
prepare(DpCall *call, Target *target)
{
	Conditions c = { .target = target, .call = call };
	struct varlena *near = call->filter;
	struct varlena *far = NULL;
	DpValue spec;
	char *source;
	const char *doc;
	const char *column_name;
	const char *key = NULL;
	const char *order = "";
	bool is_table;
	bool shown = false;    /* what is split off is shown, updated .. */
	bool computed = false; /* .. or reads them before it is known which rows are shown */

	find_columns(target);
	column_name = column(target, target->doc);
	doc = psprintf("t.%s", column_name);
	if (target->key != 0)
		key = column(target, target->key);
	is_table = target->rel->rd_rel->relkind == RELKIND_RELATION ||
			   target->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	source =
		psprintf("%s AS t",
				 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target->rel)),
											RelationGetRelationName(target->rel)));
	if ((is_table || target->rel->rd_rel->relkind == RELKIND_VIEW) &&
		target->rel->trigdesc != NULL && dp_split_hook != NULL)
		target->split = dp_split_hook(target->rel, target->doc);

	spec = dp_value_of_document(near);
	c.schema = quote_identifier(get_namespace_name(dp_types()->schema));
	initStringInfo(&c.sql);
	if (spec.len == DP_DOCUMENT_MIN_SIZE)
		appendStringInfo(&c.sql, "%s IS NOT NULL", doc);
	else
	{
		MemoryContext scratch =
			AllocSetContextCreate(CurrentMemoryContext, "docpatterns filter of a call",
								  DP_SPEC_CONTEXT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(scratch);
		DpFilter *compiled =
			dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);

		MemoryContextSwitchTo(old);
		if (target->split != NULL)
			dp_split_filter(target->split, &spec, &near, &far);
		if (near == NULL)
			appendStringInfo(&c.sql, "%s IS NOT NULL", doc);
		else
			append_match(&c, doc, far == NULL ? "$1" : filter_operand(&c, near));
		dp_filter_each_comparison(compiled, add_condition, &c);
		append_loose(&c);
		MemoryContextDelete(scratch);
	}
	computed = far != NULL;
	if (call->sort != NULL)
	{
		spec = dp_value_of_document(call->sort);
		if (target->split != NULL && dp_split_sort(target->split, &spec))
			computed = true;
	}
	if (target->split != NULL && call->projection != NULL)
	{
		DpValue projection = dp_value_of_document(call->projection);

		shown |= dp_split_projection(target->split, &projection);
	}
	if (target->split != NULL && call->field != NULL)
		shown |=
			dp_split_find(target->split, dp_path_parse(VARDATA_ANY(call->field),
													   VARSIZE_ANY_EXHDR(call->field))) != NULL;
	if (target->split != NULL && call->update != NULL)
	{
		DpValue update = dp_value_of_varlena(call->update);

		shown |= dp_split_update(target->split, &update);
		call->once = true;
	}

	if (computed)
	{
		/* once for each row that is left, and not before that is known */
		call->sql[DP_CALL_SOURCE] =
			psprintf("%s CROSS JOIN LATERAL (SELECT %s AS doc OFFSET 0) AS w", source,
					 target->split->whole(target->split));
		doc = "w.doc";
		if (far != NULL)
		{
			appendStringInfoString(&c.sql, " AND ");
			append_match(&c, doc, filter_operand(&c, far));
		}
	}
	else
	{
		call->sql[DP_CALL_SOURCE] = source;
		if (shown)
			doc = target->split->whole(target->split);
	}
	call->sql[DP_CALL_DOC] = doc;
	call->sql[DP_CALL_CONDITIONS] = c.sql.data;
	if (call->sort != NULL)
		call->sql[DP_CALL_ORDERING] = sort_order(&c, &spec, doc);
	if (call->sql[DP_CALL_ORDERING] != NULL)
		order = psprintf(" ORDER BY %s", call->sql[DP_CALL_ORDERING]);
	if (computed || shown)
		call->sql[DP_CALL_CHANGE] = psprintf(
			"SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER "
			"(WHERE pg_catalog.cardinality(c.docs) OPERATOR(pg_catalog.=) 2), "
			"pg_catalog.array_agg(c.docs) FILTER (WHERE $14) FROM "
			"(SELECT c.docs FROM (SELECT %s, %s, %s, $1, $11, $12, $14) AS docs FROM %s WHERE %s%s) AS c "
			"WHERE c.docs IS NOT NULL LIMIT $6) AS c",
			target->split->change(target->split), near == NULL ? "NULL" : filter_operand(&c, near),
			far == NULL ? "NULL" : filter_operand(&c, far), call->sql[DP_CALL_SOURCE], c.sql.data,
			order);

	if (is_table)
		call->sql[DP_CALL_LOCATED] =
			"t.tableoid OPERATOR(pg_catalog.=) $9 AND t.ctid OPERATOR(pg_catalog.=) $10";
	if (is_table || target->row != NIL)
		call->sql[DP_CALL_LOCATE] =
			psprintf("SELECT %s FROM %s WHERE %s%s LIMIT 1",
					 is_table ? "t.tableoid, t.ctid, NULL"
							  : psprintf("NULL::pg_catalog.oid, NULL::pg_catalog.tid, %s",
										 row_condition(target)),
					 source, c.sql.data, order);
	call->is_table = is_table;
	call->is_single = is_table && c.is_keyed && key_is_unique(target) &&
					  !has_triggers(target->rel, call->update != NULL ? TRIGGER_TYPE_UPDATE
																	  : TRIGGER_TYPE_DELETE);
	call->sql[DP_CALL_INSERTION] =
		psprintf("%s FROM pg_catalog.unnest($15) WITH ORDINALITY AS s (doc, n) ORDER BY n",
				 insertion(target));
	call->sql[DP_CALL_ID] = key != NULL ? key_value(target)
										: psprintf("t.%s OPERATOR(%s.->) '_id'::pg_catalog.text",
												   column_name, c.schema);
	call->sql[DP_CALL_DOC_COLUMN] = attribute_name(target, target->doc);
	if (target->row != NIL)
		call->base = written_base(target->rel);
	if (target->key != 0)
		call->sql[DP_CALL_KEY_COLUMN] = attribute_name(target, target->key);
}

/* Appends whether a document matches a filter. */
static void
append_match(Conditions *c, const char *doc, const char *filter)
{
	if (c->call->collation != NULL)
		appendStringInfo(&c->sql, "docpatterns._collated_match(%s, %s, $8)", doc, filter);
	else
		appendStringInfo(&c->sql, "%s OPERATOR(%s.@@) %s", doc, c->schema, filter);
}

/* ---------------------------------------------------------------- columns */

/*
 * Finds the column of the documents, and that of their keys if there is one.
 * Raises WRONG_OBJECT_TYPE for what is no table or view, UNDEFINED_COLUMN and
 * AMBIGUOUS_COLUMN unless there is one column of type bson (a collection takes
 * its first).
 */
static void
find_columns(Target *target)
{
	Relation rel = target->rel;
	TupleDesc desc = RelationGetDescr(rel);
	int n = 0;

	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
		case RELKIND_FOREIGN_TABLE:
			break;
		default:
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
							errmsg("\"%s\" is not a table or view", RelationGetRelationName(rel))));
	}
	if (is_collection(rel, &target->key, &target->doc))
		return;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && att->atttypid == dp_types()->bson)
		{
			target->doc = i + 1;
			n++;
		}
	}
	if (n != 1)
		ereport(ERROR, (errcode(n == 0 ? ERRCODE_UNDEFINED_COLUMN : ERRCODE_AMBIGUOUS_COLUMN),
						n == 0 ? errmsg("relation \"%s\" has no column of type bson",
										RelationGetRelationName(rel))
							   : errmsg("relation \"%s\" has more than one column of type bson",
										RelationGetRelationName(rel)),
						n == 0 ? errhint("Add a column of type bson, or convert one with "
										 "bson_column_convert().")
							   : errhint("Create a view that shows only one of them."),
						errtable(rel)));
	if (rel->rd_rel->relkind == RELKIND_VIEW)
	{
		target->key = view_key(rel, target->doc);
		target->row = row_columns(rel);
	}
}

/* Whether the relation is a collection, and which of its columns are the key and the document. */
static bool
is_collection(Relation rel, AttrNumber *key, AttrNumber *doc)
{
	TriggerDesc *triggers = rel->trigdesc;
	Oid function;

	*key = *doc = 0;
	if (triggers == NULL || !triggers->trig_insert_before_row || !triggers->trig_update_before_row)
		return false;
	/*
	 * what the relation has may be freed by a look into a catalog, so it is taken after the last
	 * one
	 */
	function = LookupFuncName(list_make2(makeString("docpatterns"), makeString(COLLECTION_TRIGGER)),
							  0, NULL, true);
	triggers = rel->trigdesc;
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgfoid == function && (trigger->tgenabled == TRIGGER_FIRES_ON_ORIGIN ||
											trigger->tgenabled == TRIGGER_FIRES_ALWAYS))
			return dp_collection_columns(trigger, RelationGetDescr(rel), key, doc);
	}
	return false;
}

bool
dp_collection_is_trigger(const Trigger *trigger)
{
	return trigger->tgnargs == 0 && strncmp(trigger->tgname, "zz_docpatterns_00", 17) == 0 &&
		   dp_is_internal(trigger->tgfoid, COLLECTION_TRIGGER);
}

bool
dp_collection_columns(const Trigger *trigger, TupleDesc desc, AttrNumber *key, AttrNumber *doc)
{
	if (trigger->tgnattr != 2 ||
		TupleDescAttr(desc, trigger->tgattr[1] - 1)->atttypid != dp_types()->bson)
		return false;
	*key = trigger->tgattr[0];
	*doc = trigger->tgattr[1];
	return true;
}

AttrNumber
dp_collection_key(Relation rel)
{
	AttrNumber key;
	AttrNumber doc;

	return is_collection(rel, &key, &doc) ? key : 0;
}

char *
dp_collection_key_in(Relation rel, AttrNumber key, const char *values)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), key - 1);
	DpDocLookup lookup = { .expr = psprintf("t.%s", quote_identifier(NameStr(att->attname))),
						   .type = att->atttypid };

	return dp_doc_lookup_in(&lookup, values);
}

/* The expression and the operator that compares it. */
static StringInfo
compare_lookup(const DpDocLookup *lookup)
{
	StringInfo sql = makeStringInfo();

	appendStringInfoString(sql, lookup->expr);
	if (lookup->type >= FirstNormalObjectId)
		dp_sql_own_operator(sql, "=");
	else
		appendStringInfoString(sql, " OPERATOR(pg_catalog.=) ");
	return sql;
}

char *
dp_doc_lookup_in(const DpDocLookup *lookup, const char *values)
{
	StringInfo sql = compare_lookup(lookup);

	if (lookup->type == dp_types()->bson_value)
		appendStringInfo(sql, "ANY (%s)", values);
	else
		appendStringInfo(sql, "ANY (docpatterns._collection_keys(%s, NULL::%s))", values,
						 format_type_be_qualified(lookup->type));
	return sql->data;
}

char *
dp_doc_lookup_is(const DpDocLookup *lookup, const char *value)
{
	StringInfo sql = compare_lookup(lookup);

	appendStringInfoString(sql, key_operand(lookup->type, value));
	return sql->data;
}

/* The type of the key column. */
static Oid
key_type(Relation rel, AttrNumber key)
{
	return TupleDescAttr(RelationGetDescr(rel), key - 1)->atttypid;
}

/*
 * Whether triggers of the user's could tell that a statement, on an UPDATE or a DELETE, is made
 * twice.
 */
static bool
has_triggers(Relation rel, int event)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];

		if ((trigger->tgtype & event) != 0 &&
			(!TRIGGER_FOR_ROW(trigger->tgtype) || TRIGGER_FOR_BEFORE(trigger->tgtype)) &&
			get_func_namespace(trigger->tgfoid) != dp_types()->internal)
			return true;
	}
	return false;
}

/* Whether no two rows of the table can have the same key. */
static bool
key_is_unique(Target *target)
{
	Relation rel = target->rel;
	Relation index;
	bool result;

	list_free(RelationGetIndexList(rel));
	/* tables that inherit have keys of their own */
	if (!OidIsValid(rel->rd_pkindex) ||
		(rel->rd_rel->relkind == RELKIND_RELATION && rel->rd_rel->relhassubclass))
		return false;
	index = index_open(rel->rd_pkindex, AccessShareLock);
	result = index->rd_index->indnkeyatts == 1 && index->rd_index->indimmediate &&
			 index->rd_index->indkey.values[0] == target->key;
	index_close(index, AccessShareLock);
	return result;
}

/* Whether the key column has the order of the documents' _id. */
static bool
key_sorts(Target *target)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target->rel), target->key - 1);

	/* NaN comes first among BSON's numbers and last among PostgreSQL's */
	return att->atttypid != NUMERICOID &&
		   (att->atttypid != TEXTOID || att->attcollation == C_COLLATION_OID);
}

/* A bson_value as a key, NULL for one that is none. */
static char *
key_operand(Oid type, const char *value)
{
	return psprintf(type == dp_types()->bson_value
						? "%s"
						: "(docpatterns._collection_keys(ARRAY[%s], NULL::%s))[1]",
					value, format_type_be_qualified(type));
}

/* A new key, NULL if keys of that type are not generated. */
static const char *
key_fresh(Target *target)
{
	Oid type = key_type(target->rel, target->key);
	const char *schema = quote_identifier(get_namespace_name(dp_types()->schema));

	if (type == UUIDOID)
		return "pg_catalog.gen_random_uuid()";
	if (type == dp_types()->objectid)
		return psprintf("%s.objectid()", schema);
	return type == dp_types()->bson_value
			   ? psprintf("docpatterns.bson_value_from(%s.objectid())", schema)
			   : "NULL";
}

/* The key of a row s (doc), which may be new. */
static char *
new_id(Target *target)
{
	return psprintf("coalesce(%s, %s)", row_id(target), key_fresh(target));
}

/* An INSERT of rows s (doc), up to its FROM. */
static char *
insertion(Target *target)
{
	char *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target->rel)),
											RelationGetRelationName(target->rel));

	if (target->key == 0)
		return psprintf("INSERT INTO %s AS t (%s) SELECT s.doc", name, column(target, target->doc));
	/* a partitioned collection needs the key before its trigger fires */
	return psprintf("INSERT INTO %s AS t (%s, %s) SELECT %s, s.doc", name,
					column(target, target->key), column(target, target->doc), new_id(target));
}

/* The key that a row s (doc) will have, NULL if it gets a new one. */
static char *
row_id(Target *target)
{
	return key_operand(key_type(target->rel, target->key),
					   psprintf("(s.doc OPERATOR(%s.->) '_id'::pg_catalog.text)",
								quote_identifier(get_namespace_name(dp_types()->schema))));
}

/* The key of a row as a bson_value. */
static char *
key_value(Target *target)
{
	if (key_type(target->rel, target->key) == dp_types()->bson_value)
		return psprintf("t.%s", column(target, target->key));
	return psprintf("t.%s OPERATOR(%s.->) '_id'::pg_catalog.text", column(target, target->doc),
					quote_identifier(get_namespace_name(dp_types()->schema)));
}

/*
 * The column of a view that is the key of the collection whose documents the view shows, unchanged
 * or by pattern_whole(); 0 if there is none.
 */
static AttrNumber
view_key(Relation view, AttrNumber doc)
{
	Query *query;
	RangeTblEntry *rte = view_table(view, &query);
	Relation base;
	AttrNumber base_key;
	AttrNumber base_doc;
	AttrNumber key = 0;
	bool shows_doc = false;
	ListCell *lc;

	if (rte == NULL)
		return 0;
	base = table_open(rte->relid, AccessShareLock);
	if (is_collection(base, &base_key, &base_doc))
		foreach(lc, query->targetList)
		{
			TargetEntry *tle = lfirst(lc);
			Node *expr = (Node *) tle->expr;

			if (tle->resno == doc && IsA(expr, FuncExpr))
			{
				char *name = get_func_name(((FuncExpr *) expr)->funcid);

				shows_doc = get_func_namespace(((FuncExpr *) expr)->funcid) == dp_types()->schema &&
							strcmp(name, "pattern_whole") == 0;
			}
			else if (tle->resno == doc)
				shows_doc = IsA(expr, Var) && ((Var *) expr)->varattno == base_doc;
			else if (!tle->resjunk && IsA(expr, Var) && ((Var *) expr)->varattno == base_key)
				key = tle->resno;
		}
	table_close(base, AccessShareLock);
	return shows_doc ? key : 0;
}

/*
 * The only relation whose rows, each at most once, a view shows; NULL if it is
 * no such view.
 */
static RangeTblEntry *
view_table(Relation view, Query **query)
{
	Query *q = get_view_query(view);
	RangeTblEntry *rte;

	*query = q;
	if (q->setOperations != NULL || q->hasTargetSRFs || q->hasAggs || q->groupClause != NIL ||
		q->groupingSets != NIL || q->distinctClause != NIL ||
		list_length(q->jointree->fromlist) != 1 ||
		!IsA(linitial(q->jointree->fromlist), RangeTblRef))
		return NULL;
	rte = rt_fetch(((RangeTblRef *) linitial(q->jointree->fromlist))->rtindex, q->rtable);
	return rte->rtekind == RTE_RELATION ? rte : NULL;
}

/*
 * The columns that identify a relation's rows: the primary key of a table, or a view's columns with
 * all of it.  NIL if there are none.
 */
static List *
row_columns(Relation rel)
{
	List *columns = NIL;
	List *found = NIL;
	ListCell *lc;

	check_stack_depth();
	if (rel->rd_rel->relkind == RELKIND_VIEW)
	{
		Query *query;
		RangeTblEntry *rte = view_table(rel, &query);
		Relation base;

		if (rte == NULL)
			return NIL;
		base = table_open(rte->relid, AccessShareLock);
		found = row_columns(base);
		table_close(base, AccessShareLock);
		foreach(lc, found)
		{
			ListCell *lc2;
			int shown = 0;

			foreach(lc2, query->targetList)
			{
				TargetEntry *tle = lfirst(lc2);

				if (!tle->resjunk && IsA(tle->expr, Var) &&
					((Var *) tle->expr)->varattno == lfirst_int(lc))
					shown = tle->resno;
			}
			if (shown == 0)
				return NIL;
			columns = lappend_int(columns, shown);
		}
		return columns;
	}
	list_free(RelationGetIndexList(rel));
	if (OidIsValid(rel->rd_pkindex))
	{
		Relation index = index_open(rel->rd_pkindex, AccessShareLock);

		for (int i = 0; i < index->rd_index->indnkeyatts; i++)
			columns = lappend_int(columns, index->rd_index->indkey.values[i]);
		index_close(index, AccessShareLock);
	}
	return columns;
}

/*
 * The table of a view whose rows must be locked before they are written: a trigger of the extension
 * executes its writes, based on what the statement has read.  InvalidOid for other views.
 */
static Oid
written_base(Relation view)
{
	TriggerDesc *triggers = view->trigdesc;
	Query *query;
	RangeTblEntry *rte;

	if (triggers == NULL || !triggers->trig_update_instead_row ||
		get_func_namespace(triggers->triggers[0].tgfoid) != dp_types()->internal)
		return InvalidOid;
	rte = view_table(view, &query);
	return rte == NULL ? InvalidOid : rte->relid;
}

/* SQL that selects, as a text, the condition that identifies a row, by its identifying columns. */
static char *
row_condition(Target *target)
{
	StringInfoData match;
	StringInfoData arguments;
	ListCell *lc;

	initStringInfo(&match);
	initStringInfo(&arguments);
	foreach(lc, target->row)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target->rel), lfirst_int(lc) - 1);
		const char *name = psprintf("t.%s", quote_identifier(NameStr(att->attname)));
		Oid type = getBaseType(att->atttypid);
		const char *type_name = double_percent(format_type_be_qualified(type));

		if (match.len > 0)
			appendStringInfoString(&match, " AND ");
		generate_operator_clause(&match, psprintf("%s::%s", double_percent(name), type_name), type,
								 lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr,
								 psprintf("%%L::%s", type_name), type);
		appendStringInfo(&arguments, ", %s", name);
	}
	return psprintf("pg_catalog.format(%s%s)", quote_literal_cstr(match.data), arguments.data);
}

/* A text as format() spells it. */
static char *
double_percent(const char *s)
{
	StringInfoData text;

	initStringInfo(&text);
	for (; *s != '\0'; s++)
		appendStringInfo(&text, *s == '%' ? "%%%%" : "%c", *s);
	return text.data;
}

static const char *
attribute_name(Target *target, AttrNumber attnum)
{
	return NameStr(TupleDescAttr(RelationGetDescr(target->rel), attnum - 1)->attname);
}

/* The name of a column, quoted. */
static const char *
column(Target *target, AttrNumber attnum)
{
	return quote_identifier(attribute_name(target, attnum));
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
	Target *target = c->target;
	bool on_key = target->key != 0 && is_id(path);
	const char *index = NULL;
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
	if (on_key)
	{
		if (how != DP_COMPARE_EQ && how != DP_COMPARE_IN && !key_sorts(target))
			return;
		expr = psprintf("t.%s", column(target, target->key));
		c->is_keyed |= how == DP_COMPARE_EQ;
	}
	else
	{
		if (target->facts == NULL)
			target->facts = dp_doc_facts(target->rel, target->doc);
		index = dp_doc_index(target->facts, path, &arrays);
		if (index == NULL)
			return;
		expr = psprintf("(t.%s OPERATOR(%s.->) %s::pg_catalog.text)", column(target, target->doc),
						c->schema, quote_literal_cstr(index));
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
	else if (on_key && key_type(target->rel, target->key) != dp_types()->bson_value)
	{
		operand = key_operand(key_type(target->rel, target->key), operand);
		/* a limit between the keys, such as 2.5, is for the filter */
		if (how != DP_COMPARE_EQ)
			appendStringInfo(sql, "(%s IS NULL OR ", operand);
		appendStringInfo(sql, "%s OPERATOR(%s.%s) %s%s", expr,
						 key_type(target->rel, target->key) == dp_types()->objectid ? c->schema
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
					 column(c->target, c->target->doc), c->schema, in_document,
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
 * The ORDER BY of a sort specification; NULL for {}.  Of several fields the first comes alone, too,
 * if an index has it: then only documents with the same key of it are left to be sorted.
 */
static char *
sort_order(Conditions *c, const DpValue *spec, const char *doc)
{
	Target *target = c->target;
	DpIter iter;
	DpElement first;
	DpPath *path;
	int64 direction;
	char *key;

	dp_sort_spec_compile(spec);
	if (c->call != NULL && c->call->collation != NULL)
		return psprintf("docpatterns._collated_sort_key(%s, $3, $8)", doc);
	dp_iter_init_value(&iter, spec);
	if (!dp_iter_next(&iter, &first))
		return NULL;
	if (target->split != NULL && dp_split_sort(target->split, spec))
		return sort_key(c, doc, spec);

	path = dp_path_of_field(first.name);
	doc = psprintf("t.%s", column(target, target->doc));
	/* the key is unique: other fields decide nothing */
	if (target->key != 0 && is_id(path) && key_sorts(target) &&
		dp_value_to_whole(&first.value, &direction))
		return psprintf("t.%s%s", column(target, target->key), direction < 0 ? " DESC" : "");
	key = sort_key(c, doc, spec);
	if (iter.next < iter.end)
	{
		bool arrays;

		if (target->facts == NULL)
			target->facts = dp_doc_facts(target->rel, target->doc);
		if (dp_doc_index(target->facts, path, &arrays) != NULL)
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

/* The key of a row as a bson_value, NULL if the relation has none. */
static char *
row_key(Target *target, const char *schema)
{
	Relation index;
	StringInfoData sql;

	if (target->key != 0)
		return key_value(target);
	list_free(RelationGetIndexList(target->rel));
	if (!OidIsValid(target->rel->rd_pkindex))
		return NULL;
	index = index_open(target->rel->rd_pkindex, AccessShareLock);
	initStringInfo(&sql);
	appendStringInfo(&sql, "%s.%s(", schema,
					 index->rd_index->indnkeyatts == 1 ? "to_bson" : "bson_array");
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
		appendStringInfo(&sql, "%st.%s", i > 0 ? ", " : "",
						 column(target, index->rd_index->indkey.values[i]));
	appendStringInfoChar(&sql, ')');
	index_close(index, AccessShareLock);
	return sql.data;
}

void
dp_collection_lookup(Oid relid, const DpPath *path, DpDocLookup *lookup)
{
	Target target = { 0 };
	const char *schema = quote_identifier(get_namespace_name(dp_types()->schema));
	const char *index;

	target.rel = try_table_open(relid, AccessShareLock);
	if (target.rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	find_columns(&target);
	memset(lookup, 0, sizeof(DpDocLookup));
	lookup->source =
		psprintf("%s AS t",
				 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target.rel)),
											RelationGetRelationName(target.rel)));
	lookup->doc = psprintf("t.%s", column(&target, target.doc));
	lookup->key = row_key(&target, schema);
	lookup->is_table = target.rel->rd_rel->relkind == RELKIND_RELATION ||
					   target.rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	lookup->deep = path->nsteps > 1;
	lookup->is_split = target.rel->trigdesc != NULL && dp_split_hook != NULL &&
					   dp_split_hook(target.rel, target.doc) != NULL;
	lookup->type = dp_types()->bson_value;
	if (target.key != 0 && is_id(path))
	{
		lookup->is_key = true;
		lookup->expr = psprintf("t.%s", column(&target, target.key));
		lookup->type = key_type(target.rel, target.key);
	}
	else
	{
		DpDocFacts *facts = dp_doc_facts(target.rel, target.doc);

		lookup->filters = dp_doc_gin(facts, path);
		index = dp_doc_index(facts, path, &lookup->arrays);
		if (index != NULL)
			lookup->expr = psprintf("(%s OPERATOR(%s.->) %s::pg_catalog.text)", lookup->doc, schema,
									quote_literal_cstr(index));
	}
	table_close(target.rel, AccessShareLock);
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
	Target target = { 0 };
	Conditions c = { 0 };
	bool whole = false;
	struct varlena *far = NULL;

	target.rel = try_table_open(relid, AccessShareLock);
	if (target.rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	find_columns(&target);
	if (target.rel->trigdesc != NULL && dp_split_hook != NULL)
		target.split = dp_split_hook(target.rel, target.doc);
	c.target = &target;
	c.schema = quote_identifier(get_namespace_name(dp_types()->schema));
	initStringInfo(&c.sql);
	source->from =
		psprintf("%s AS t",
				 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target.rel)),
											RelationGetRelationName(target.rel)));
	source->doc = psprintf("t.%s", column(&target, target.doc));
	if (filter != NULL)
	{
		DpFilter *compiled =
			dp_filter_compile(filter, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
		struct varlena *near = dp_document_to_varlena(filter->data, filter->len);

		if (target.split != NULL)
			dp_split_filter(target.split, filter, &near, &far);
		if (near == NULL)
			appendStringInfo(&c.sql, "%s IS NOT NULL", source->doc);
		else
			appendStringInfo(&c.sql, "%s OPERATOR(%s.@@) %s", source->doc, c.schema,
							 filter_operand(&c, near));
		dp_filter_each_comparison(compiled, add_condition, &c);
		append_loose(&c);
	}
	else if (!TupleDescAttr(RelationGetDescr(target.rel), target.doc - 1)->attnotnull)
		appendStringInfo(&c.sql, "%s IS NOT NULL", source->doc);
	whole =
		far != NULL || (sort != NULL && target.split != NULL && dp_split_sort(target.split, sort));
	source->computed = target.split != NULL && !whole && shows_split(target.split, fields);
	if (whole)
	{
		/* once for each row that is left, and not before that is known */
		source->from = psprintf("%s CROSS JOIN LATERAL (SELECT %s AS doc OFFSET 0) AS w",
								source->from, target.split->whole(target.split));
		source->doc = "w.doc";
		if (far != NULL)
			appendStringInfo(&c.sql, " AND w.doc OPERATOR(%s.@@) %s", c.schema,
							 filter_operand(&c, far));
	}
	else if (source->computed)
		source->doc = target.split->whole(target.split);
	source->conditions = c.sql.len > 0 ? c.sql.data : NULL;
	source->order = sort == NULL ? NULL : sort_order(&c, sort, source->doc);
	table_close(target.rel, AccessShareLock);
}

void
dp_collection_target(Oid relid, DpDocTarget *out)
{
	Target target = { 0 };

	target.rel = try_table_open(relid, AccessShareLock);
	if (target.rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	if (target.rel->rd_rel->relkind != RELKIND_RELATION &&
		target.rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not a table", RelationGetRelationName(target.rel))));
	find_columns(&target);
	if (target.rel->trigdesc != NULL && dp_split_hook != NULL &&
		dp_split_hook(target.rel, target.doc) != NULL)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("pipelines cannot write to \"%s\", whose documents are split",
							   RelationGetRelationName(target.rel)),
						errhint("Call collection_update() for each document of the result.")));
	out->name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target.rel)),
										   RelationGetRelationName(target.rel));
	out->doc = pstrdup(column(&target, target.doc));
	out->key = target.key == 0 ? NULL : pstrdup(column(&target, target.key));
	out->id = target.key == 0 ? NULL : new_id(&target);
	out->same = NULL;
	if (target.key != 0)
		out->same = psprintf("t.%s OPERATOR(%s.=) %s", out->key,
							 key_type(target.rel, target.key) >= FirstNormalObjectId
								 ? quote_identifier(get_namespace_name(dp_types()->schema))
								 : "pg_catalog",
							 row_id(&target));
	out->insert = insertion(&target);
	table_close(target.rel, AccessShareLock);
}

/* The path that a field of a specification names, with dots between its parts. */
DpPath *
dp_path_of_field(const char *name)
{
	int n = 1;
	const char **names;
	uint32 *lens;

	for (const char *p = name; *p != '\0'; p++)
		n += *p == '.';
	names = palloc(n * sizeof(char *));
	lens = palloc(n * sizeof(uint32));
	for (int i = 0; i < n; i++)
	{
		names[i] = name;
		lens[i] = strcspn(name, ".");
		name += lens[i] + 1;
	}
	return dp_path_of_names(n, names, lens);
}

/* Whether the path is _id. */
static bool
is_id(const DpPath *path)
{
	return path->nsteps == 1 && strcmp(path->steps[0].name, "_id") == 0;
}
