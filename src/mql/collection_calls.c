/*
 * collection_calls.c
 *		What the calls for collections put into their SQL: which column holds the
 *		documents, how a filter and a sort specification become conditions and an
 *		order that indexes serve, and how many documents an update left alone.
 *
 * The calls themselves are in sql/collection_calls.sql.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "parser/parse_func.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "mql/collection_calls.h"
#include "mql/filter.h"
#include "mql/sort_key.h"

/* A relation as the calls see it */
typedef struct Target
{
	Relation	rel;
	AttrNumber	doc;
	AttrNumber	key;			/* holds the document's _id and is unique; or 0 */
	DpDocFacts *facts;
} Target;

/* What the conditions are put together in */
typedef struct Conditions
{
	Target	   *target;
	const char *schema;			/* of the extension, quoted */
	StringInfoData sql;
	Datum	   *operands;
	int			noperands;
	int			maxoperands;
	List	   *loose;			/* of LooseCondition */
} Conditions;

/* What a filter implies of an indexed expression that may meet arrays */
typedef struct LooseCondition
{
	const char *expr;
	bool		deep;			/* it is NULL if an array stands on the way */
	StringInfoData sql;			/* if none does */
} LooseCondition;

/* How many documents the update with a ticket has left alone */
typedef struct Unchanged
{
	int64		ticket;
	int64		count;
	struct Unchanged *outer;	/* of the statement around this one */
} Unchanged;

static Unchanged *unchanged = NULL;	/* in TopTransactionContext */
static bool unchanged_registered = false;
static int64 last_ticket = 0;

static void find_columns(Target *target);
static bool is_collection(Relation rel, AttrNumber *key, AttrNumber *doc);
static AttrNumber view_key(Relation view, AttrNumber doc);
static bool has_id_trigger(Relation rel);
static const char *column(Target *target, AttrNumber attnum);
static void add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg);
static StringInfo loose_condition(Conditions *c, const char *expr, bool deep);
static void append_loose(Conditions *c);
static char *sort_order(Conditions *c, const DpValue *spec);
static bool is_id(const DpPath *path);
static char *row_key(Target *target, const char *schema);
static void forget_unchanged(void *arg);
static bool same_bytes(Datum a, Datum b);

/*
 * _collection_query(rel regclass, filter bson, sort bson) -> (source text,
 * doc text, conditions text, operands bson_value[], ordering text, locate text,
 * located text, locks boolean, insertion text, id text)
 *
 * The parts of a statement on the relation, called t.  In the conditions $1 is
 * the filter and $2 are the operands.  locate selects what tells one such row
 * from the others, and located is the condition that it is that row, with $3,
 * $4 and $5 for what locate returned; both NULL if nothing does.  insertion
 * inserts the documents $1, and id is the _id of a row.
 */
DP_FUNCTION(dp_collection_query);
Datum
dp_collection_query(PG_FUNCTION_ARGS)
{
	Target		target = {0};
	Conditions	c = {0};
	TupleDesc	desc;
	Datum		values[10];
	bool		nulls[10] = {false};
	struct varlena *filter;
	DpValue		spec;
	char	   *source;
	const char *doc;
	const char *key = NULL;
	char	   *ordering = NULL;
	bool		is_table;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s cannot be null", PG_ARGISNULL(0) ? "relation" : "filter"),
				 PG_ARGISNULL(0) ? 0 : errhint("The filter {} takes all documents.")));

	target.rel = try_table_open(PG_GETARG_OID(0), AccessShareLock);
	if (target.rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", PG_GETARG_OID(0))));
	find_columns(&target);
	doc = column(&target, target.doc);
	if (target.key != 0)
		key = column(&target, target.key);
	is_table = target.rel->rd_rel->relkind == RELKIND_RELATION ||
		target.rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	source = psprintf("%s AS t",
					  quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target.rel)),
												 RelationGetRelationName(target.rel)));

	filter = DP_GETARG_VARLENA(1);
	spec = dp_value_of_document(filter);
	c.target = &target;
	c.schema = quote_identifier(get_namespace_name(dp_types()->schema));
	initStringInfo(&c.sql);
	if (spec.len == DP_DOCUMENT_MIN_SIZE)
		appendStringInfo(&c.sql, "t.%s IS NOT NULL", doc);
	else
	{
		appendStringInfo(&c.sql, "t.%s OPERATOR(%s.@@) $1", doc, c.schema);
		dp_filter_each_comparison(dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL),
								  add_condition, &c);
		append_loose(&c);
	}
	if (!PG_ARGISNULL(2))
	{
		spec = dp_value_of_document(DP_GETARG_VARLENA(2));
		ordering = sort_order(&c, &spec);
	}

	values[0] = CStringGetTextDatum(source);
	values[1] = CStringGetTextDatum(doc);
	values[2] = CStringGetTextDatum(c.sql.data);
	values[3] = PointerGetDatum(construct_array(c.operands, c.noperands, dp_types()->bson_value,
												-1, false, TYPALIGN_INT));
	nulls[4] = ordering == NULL;
	values[4] = ordering ? CStringGetTextDatum(ordering) : (Datum) 0;
	nulls[5] = nulls[6] = !is_table && key == NULL;
	if (is_table)
	{
		values[5] = CStringGetTextDatum(psprintf("SELECT t.tableoid, t.ctid, NULL::%s.bson_value FROM %s WHERE %s LIMIT 1",
												 c.schema, source, c.sql.data));
		values[6] = CStringGetTextDatum("t.tableoid OPERATOR(pg_catalog.=) $3 AND t.ctid OPERATOR(pg_catalog.=) $4");
	}
	else if (key != NULL)
	{
		values[5] = CStringGetTextDatum(psprintf("SELECT NULL::pg_catalog.oid, NULL::pg_catalog.tid, t.%s FROM %s WHERE %s LIMIT 1",
												 key, source, c.sql.data));
		values[6] = CStringGetTextDatum(psprintf("t.%s OPERATOR(%s.=) $5", key, c.schema));
	}
	values[7] = BoolGetDatum(is_table);
	if (key != NULL)
	{
		/* a partitioned collection needs the key before its trigger fires */
		values[8] = CStringGetTextDatum(psprintf("INSERT INTO %s (%s, %s) SELECT coalesce(d OPERATOR(%s.->) '_id'::pg_catalog.text, "
												 "%s.bson_value_from(%s.objectid())), d "
												 "FROM pg_catalog.unnest($1) WITH ORDINALITY AS u (d, n) ORDER BY n",
												 source, key, doc, c.schema, c.schema, c.schema));
		values[9] = CStringGetTextDatum(psprintf("t.%s", key));
	}
	else
	{
		values[8] = CStringGetTextDatum(psprintf("INSERT INTO %s (%s) SELECT d "
												 "FROM pg_catalog.unnest($1) WITH ORDINALITY AS u (d, n) ORDER BY n",
												 source, doc));
		values[9] = CStringGetTextDatum(psprintf("t.%s OPERATOR(%s.->) '_id'::pg_catalog.text", doc, c.schema));
	}
	table_close(target.rel, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
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
	Relation	rel = target->rel;
	TupleDesc	desc = RelationGetDescr(rel);
	int			n = 0;

	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
		case RELKIND_FOREIGN_TABLE:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
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
		ereport(ERROR,
				(errcode(n == 0 ? ERRCODE_UNDEFINED_COLUMN : ERRCODE_AMBIGUOUS_COLUMN),
				 n == 0 ?
				 errmsg("relation \"%s\" has no column of type bson", RelationGetRelationName(rel)) :
				 errmsg("relation \"%s\" has more than one column of type bson", RelationGetRelationName(rel)),
				 n == 0 ? 0 : errhint("A view may show one of them."),
				 errtable(rel)));
	if (rel->rd_rel->relkind == RELKIND_VIEW)
		target->key = view_key(rel, target->doc);
}

/*
 * Whether the relation is a collection, and which of its columns its trigger
 * takes for the key and for the document.
 */
static bool
is_collection(Relation rel, AttrNumber *key, AttrNumber *doc)
{
	TupleDesc	desc = RelationGetDescr(rel);
	const DpTypes *types = dp_types();

	*key = *doc = 0;
	if (!has_id_trigger(rel))
		return false;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (*key == 0 && att->atttypid == types->bson_value)
			*key = i + 1;
		else if (*doc == 0 && att->atttypid == types->bson)
			*doc = i + 1;
	}
	if (*key != 0 && *doc != 0)
		return true;
	*key = *doc = 0;
	return false;
}

AttrNumber
dp_collection_key(Relation rel)
{
	AttrNumber	key;
	AttrNumber	doc;

	return is_collection(rel, &key, &doc) ? key : 0;
}

/* Whether the relation has the trigger of collections. */
static bool
has_id_trigger(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;
	Oid			function;

	if (triggers == NULL || !triggers->trig_insert_before_row || !triggers->trig_update_before_row)
		return false;
	/* what the relation has may be freed by a look into a catalog, so it is taken after the last one */
	function = LookupFuncName(list_make2(makeString(get_namespace_name(dp_types()->schema)),
										 makeString("collection_set_id")), 0, NULL, true);
	triggers = rel->trigdesc;
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
		if (triggers->triggers[i].tgfoid == function &&
			(triggers->triggers[i].tgenabled == TRIGGER_FIRES_ON_ORIGIN ||
			 triggers->triggers[i].tgenabled == TRIGGER_FIRES_ALWAYS))
			return true;
	return false;
}

/*
 * The column of a view that is the key of the collection whose documents the
 * view shows, as they are or put together by pattern_whole(); 0 if there is
 * none.
 */
static AttrNumber
view_key(Relation view, AttrNumber doc)
{
	Query	   *query = get_view_query(view);
	RangeTblEntry *rte;
	Relation	base;
	AttrNumber	base_key;
	AttrNumber	base_doc;
	AttrNumber	key = 0;
	bool		shows_doc = false;
	ListCell   *lc;

	if (query->setOperations != NULL || list_length(query->jointree->fromlist) != 1 ||
		!IsA(linitial(query->jointree->fromlist), RangeTblRef))
		return 0;
	rte = rt_fetch(((RangeTblRef *) linitial(query->jointree->fromlist))->rtindex, query->rtable);
	if (rte->rtekind != RTE_RELATION)
		return 0;

	base = table_open(rte->relid, AccessShareLock);
	if (is_collection(base, &base_key, &base_doc))
		foreach(lc, query->targetList)
		{
			TargetEntry *tle = lfirst(lc);
			Node	   *expr = (Node *) tle->expr;

			if (tle->resno == doc && IsA(expr, FuncExpr))
			{
				char	   *name = get_func_name(((FuncExpr *) expr)->funcid);

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

/* The name of a column, quoted. */
static const char *
column(Target *target, AttrNumber attnum)
{
	return quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(target->rel), attnum - 1)->attname));
}

/* ---------------------------------------------------------------- conditions */

/*
 * For dp_filter_each_comparison(): adds a condition on the key or on an
 * expression that has an index, if what the filter says implies it.
 */
static void
add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg)
{
	static const char *const operators[] = {"=", "<", "<=", ">", ">=", "="};
	Conditions *c = arg;
	Target	   *target = c->target;
	bool		on_key = target->key != 0 && is_id(path);
	const char *index = NULL;
	const char *expr;
	bool		arrays = false;
	StringInfo	sql = &c->sql;

	for (int i = 0; i < n; i++)
		switch (values[i].type)
		{
			case DP_TYPE_NULL:
				/* elsewhere nothing is as good as null */
				if (!on_key || how != DP_COMPARE_EQ)
					return;
				break;
			case DP_TYPE_UNDEFINED:
			case DP_TYPE_MINKEY:
			case DP_TYPE_MAXKEY:
				/* other types are met, too */
				return;
		}
	if (!on_key)
	{
		if (target->facts == NULL)
			target->facts = dp_doc_facts(target->rel, target->doc);
		index = dp_doc_index(target->facts, path, &arrays);
		if (index == NULL)
			return;
	}

	while (c->noperands + n > c->maxoperands)
	{
		c->maxoperands = Max(8, c->maxoperands * 2);
		c->operands = c->operands == NULL ? palloc(c->maxoperands * sizeof(Datum)) :
			repalloc(c->operands, c->maxoperands * sizeof(Datum));
	}
	for (int i = 0; i < n; i++)
		c->operands[c->noperands + i] = PointerGetDatum(dp_value_to_varlena(&values[i]));

	if (on_key)
		expr = psprintf("t.%s", column(target, target->key));
	else
		expr = psprintf("(t.%s OPERATOR(%s.->) %s::pg_catalog.text)",
						column(target, target->doc), c->schema, quote_literal_cstr(index));
	if (arrays)
		sql = loose_condition(c, expr, path->nsteps > 1);
	if (sql->len > 0)
		appendStringInfoString(sql, " AND ");
	appendStringInfo(sql, "%s OPERATOR(%s.%s) ", expr, c->schema, operators[how]);
	if (how == DP_COMPARE_IN)
		appendStringInfo(sql, "ANY (($2)[%d:%d])", c->noperands + 1, c->noperands + n);
	else
		appendStringInfo(sql, "($2)[%d]", c->noperands + 1);
	c->noperands += n;
}

/*
 * What is known so far of an expression that may meet arrays: a range has two
 * sides and is searched once.
 */
static StringInfo
loose_condition(Conditions *c, const char *expr, bool deep)
{
	LooseCondition *loose;
	ListCell   *lc;

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
 * Adds the conditions on expressions that may meet arrays, of which a filter
 * tries the elements: the expression compares so, or is an array (any), or is
 * NULL, as it is when an array stands on the way.  The planner combines three
 * searches of the index.
 */
static void
append_loose(Conditions *c)
{
	ListCell   *lc;

	foreach(lc, c->loose)
	{
		LooseCondition *loose = lfirst(lc);

		/* from the smallest array to what comes after all of them: no bytes */
		appendStringInfo(&c->sql, " AND (%s OR %s OPERATOR(%s.>=) '[]'::%s.bson_value AND "
						 "%s OPERATOR(%s.<) '{\"$binary\": {\"base64\": \"\", \"subType\": \"00\"}}'::%s.bson_value",
						 loose->sql.data, loose->expr, c->schema, c->schema,
						 loose->expr, c->schema, c->schema);
		if (loose->deep)
			appendStringInfo(&c->sql, " OR %s IS NULL", loose->expr);
		appendStringInfoChar(&c->sql, ')');
	}
}

/*
 * What a sort specification is in ORDER BY: columns and expressions that have
 * indexes, if all of its fields are such, otherwise the sort key, with $3 for
 * the specification.  NULL for {}.
 */
static char *
sort_order(Conditions *c, const DpValue *spec)
{
	Target	   *target = c->target;
	StringInfoData sql;
	DpIter		iter;
	DpElement	field;
	const char *between = "";

	dp_sort_spec_compile(spec);
	initStringInfo(&sql);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &field))
	{
		DpPath	   *path = dp_path_of_field(field.name);
		bool		on_key = target->key != 0 && is_id(path);
		const char *index = NULL;
		int64		direction;

		if (!on_key)
		{
			if (target->facts == NULL)
				target->facts = dp_doc_facts(target->rel, target->doc);
			index = dp_doc_index(target->facts, path, NULL);

			/*
			 * NULLS FIRST puts nothing before null, which is as good, so that
			 * no other field may have to decide between them, and before
			 * undefined, which comes first.
			 */
			if (index != NULL &&
				(!dp_doc_never(target->facts, path, "undefined") ||
				 (iter.next < iter.end && !dp_doc_never(target->facts, path, "null"))))
				index = NULL;
		}
		if (!dp_value_to_whole(&field.value, &direction) || (!on_key && index == NULL))
			return psprintf("%s.bson_sort_key(t.%s, $3)", c->schema, column(target, target->doc));

		appendStringInfoString(&sql, between);
		if (on_key)
			appendStringInfo(&sql, "t.%s%s", column(target, target->key), direction < 0 ? " DESC" : "");
		else
			appendStringInfo(&sql, "(t.%s OPERATOR(%s.->) %s::pg_catalog.text)%s",
							 column(target, target->doc), c->schema, quote_literal_cstr(index),
							 direction < 0 ? " DESC NULLS LAST" : " NULLS FIRST");
		between = ", ";
	}
	return sql.len == 0 ? NULL : sql.data;
}

/* The key of a row as a bson_value, NULL if the relation has none. */
static char *
row_key(Target *target, const char *schema)
{
	Relation	index;
	StringInfoData sql;

	if (target->key != 0)
		return psprintf("t.%s", column(target, target->key));
	list_free(RelationGetIndexList(target->rel));
	if (!OidIsValid(target->rel->rd_pkindex))
		return NULL;
	index = index_open(target->rel->rd_pkindex, AccessShareLock);
	initStringInfo(&sql);
	appendStringInfo(&sql, "%s.%s(", schema, index->rd_index->indnkeyatts == 1 ? "to_bson" : "bson_array");
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
		appendStringInfo(&sql, "%st.%s", i > 0 ? ", " : "", column(target, index->rd_index->indkey.values[i]));
	appendStringInfoChar(&sql, ')');
	index_close(index, AccessShareLock);
	return sql.data;
}

void
dp_collection_lookup(Oid relid, const DpPath *path, DpLookup *lookup)
{
	Target		target = {0};
	const char *schema = quote_identifier(get_namespace_name(dp_types()->schema));
	const char *index;

	target.rel = try_table_open(relid, AccessShareLock);
	if (target.rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	find_columns(&target);
	memset(lookup, 0, sizeof(DpLookup));
	lookup->source = psprintf("%s AS t",
							  quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target.rel)),
														 RelationGetRelationName(target.rel)));
	lookup->doc = psprintf("t.%s", column(&target, target.doc));
	lookup->key = row_key(&target, schema);
	lookup->is_table = target.rel->rd_rel->relkind == RELKIND_RELATION ||
		target.rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	lookup->deep = path->nsteps > 1;
	if (target.key != 0 && is_id(path))
		lookup->expr = lookup->key;
	else
	{
		index = dp_doc_index(dp_doc_facts(target.rel, target.doc), path, &lookup->arrays);
		if (index != NULL)
			lookup->expr = psprintf("(%s OPERATOR(%s.->) %s::pg_catalog.text)", lookup->doc, schema,
									quote_literal_cstr(index));
	}
	table_close(target.rel, AccessShareLock);
}

/* The path that a field of a specification names, with dots between its parts. */
DpPath *
dp_path_of_field(const char *name)
{
	int			n = 1;
	const char **names;
	uint32	   *lens;

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

/* ---------------------------------------------------------------- documents left alone */

/*
 * _collection_ticket() -> bigint: begins to count documents that an update
 * leaves alone.
 */
DP_FUNCTION(dp_collection_ticket);
Datum
dp_collection_ticket(PG_FUNCTION_ARGS)
{
	Unchanged  *u;

	if (!unchanged_registered)
	{
		MemoryContextCallback *callback = MemoryContextAlloc(TopTransactionContext,
															 sizeof(MemoryContextCallback));

		callback->func = forget_unchanged;
		callback->arg = NULL;
		MemoryContextRegisterResetCallback(TopTransactionContext, callback);
		unchanged_registered = true;
	}
	u = MemoryContextAlloc(TopTransactionContext, sizeof(Unchanged));
	u->ticket = ++last_ticket;
	u->count = 0;
	u->outer = unchanged;
	unchanged = u;
	PG_RETURN_INT64(u->ticket);
}

/* The transaction is over, and with it the counts. */
static void
forget_unchanged(void *arg)
{
	unchanged = NULL;
	unchanged_registered = false;
}

/*
 * _collection_unchanged(ticket bigint) -> bigint: how many documents the update
 * with the ticket has left alone.  Its count ends, and so do those of inner
 * statements that have failed.
 */
DP_FUNCTION(dp_collection_unchanged);
Datum
dp_collection_unchanged(PG_FUNCTION_ARGS)
{
	int64		ticket = PG_GETARG_INT64(0);
	int64		count = 0;

	while (unchanged != NULL && unchanged->ticket >= ticket)
	{
		Unchanged  *u = unchanged;

		if (u->ticket == ticket)
			count = u->count;
		unchanged = u->outer;
		pfree(u);
	}
	PG_RETURN_INT64(count);
}

/*
 * _collection_changes(doc bson, updated bson, ticket bigint) -> boolean:
 * whether an update has changed the document; counts those that it has not.
 */
DP_FUNCTION(dp_collection_changes);
Datum
dp_collection_changes(PG_FUNCTION_ARGS)
{
	int64		ticket = PG_GETARG_INT64(2);

	if (!same_bytes(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)))
		PG_RETURN_BOOL(true);
	for (Unchanged *u = unchanged; u != NULL; u = u->outer)
		if (u->ticket == ticket)
		{
			u->count++;
			break;
		}
	PG_RETURN_BOOL(false);
}

/*
 * Whether two datums are the same as they are stored: bson_update() returns the
 * document itself when nothing changes.
 */
static bool
same_bytes(Datum a, Datum b)
{
	struct varlena *x = (struct varlena *) DatumGetPointer(a);
	struct varlena *y = (struct varlena *) DatumGetPointer(b);
	Size		size = VARSIZE_ANY(x);

	return x == y || (size == VARSIZE_ANY(y) && memcmp(x, y, size) == 0);
}
