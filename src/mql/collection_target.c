/*
 * collection_target.c
 *		Relations with documents as the calls for collections and pipelines see them: the columns
 *		of documents and keys, what tells rows apart, and how documents are inserted.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "mql/collection_target.h"

/* The trigger function of collections, which is the same for all */
#define COLLECTION_TRIGGER "collection_set_id"

static void find_columns(DpTarget *target);
static void find_hidden(DpTarget *target);
static bool is_collection(Relation rel, AttrNumber *key, AttrNumber *doc);
static StringInfo compare_lookup(const DpDocLookup *lookup);
static const char *key_fresh(const DpTarget *target);
static char *field(const DpTarget *target, const char *path);
static char *new_id(const DpTarget *target);
static char *row_id(const DpTarget *target);
static char *row_key(const DpTarget *target);
static AttrNumber view_key(Relation view, AttrNumber doc);
static RangeTblEntry *view_table(Relation view, Query **query);
static List *row_columns(Relation rel);
static char *double_percent(const char *s);

void
dp_target_open(DpTarget *target, Oid relid)
{
	memset(target, 0, sizeof(DpTarget));
	target->rel = try_table_open(relid, AccessShareLock);
	if (target->rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	target->is_table = target->rel->rd_rel->relkind == RELKIND_RELATION ||
					   target->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	target->is_remote = target->is_table && dp_remote_hook != NULL && dp_remote_hook(relid);
}

void
dp_target_find(DpTarget *target)
{
	Relation rel = target->rel;

	find_columns(target);
	if (target->is_remote)
		target->row = row_columns(rel);
	target->schema = quote_identifier(get_namespace_name(dp_types()->schema));
	target->name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
											  RelationGetRelationName(rel));
	if ((target->is_table || rel->rd_rel->relkind == RELKIND_VIEW) && rel->trigdesc != NULL &&
		dp_split_hook != NULL)
		target->split = dp_split_hook(rel, target->doc);
	find_hidden(target);
}

/* A view shows what its query selects, but its inserts meet the rows of the table. */
static void
find_hidden(DpTarget *target)
{
	Relation base = target->rel;
	Query *query;
	RangeTblEntry *rte;

	if (dp_seen_hook == NULL)
		return;
	while (base->rd_rel->relkind == RELKIND_VIEW && (rte = view_table(base, &query)) != NULL)
	{
		if (base != target->rel)
			table_close(base, AccessShareLock);
		base = table_open(rte->relid, AccessShareLock);
	}
	if ((base->rd_rel->relkind == RELKIND_RELATION ||
		 base->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) &&
		(base->trigdesc != NULL || base->rd_rel->relispartition) &&
		(target->seen = dp_seen_hook(base)) != NULL)
		target->hiding = RelationGetRelid(base);
	if (base == target->rel)
		return;
	target->seen = NULL;
	table_close(base, AccessShareLock);
}

/*
 * Finds the column of the documents, and that of their keys if there is one.
 * Raises WRONG_OBJECT_TYPE for what is no table or view, UNDEFINED_COLUMN and
 * AMBIGUOUS_COLUMN unless there is one column of type bson (a collection takes
 * its first).
 */
static void
find_columns(DpTarget *target)
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

	appendStringInfoString(sql, dp_key_operand(lookup->type, value));
	return sql->data;
}

Oid
dp_target_key_type(const DpTarget *target)
{
	return TupleDescAttr(RelationGetDescr(target->rel), target->key - 1)->atttypid;
}

bool
dp_target_is_single(const DpTarget *target, int event)
{
	Relation rel = target->rel;
	Relation index;
	bool is_key;

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];

		if ((trigger->tgtype & event) != 0 &&
			(!TRIGGER_FOR_ROW(trigger->tgtype) || TRIGGER_FOR_BEFORE(trigger->tgtype)) &&
			get_func_namespace(trigger->tgfoid) != dp_types()->internal)
			return false;
	}
	list_free(RelationGetIndexList(rel));
	/* tables that inherit have keys of their own */
	if (!OidIsValid(rel->rd_pkindex) ||
		(rel->rd_rel->relkind == RELKIND_RELATION && rel->rd_rel->relhassubclass))
		return false;
	index = index_open(rel->rd_pkindex, AccessShareLock);
	is_key = index->rd_index->indnkeyatts == 1 && index->rd_index->indimmediate &&
			 index->rd_index->indkey.values[0] == target->key;
	index_close(index, AccessShareLock);
	return is_key;
}

bool
dp_target_key_sorts(const DpTarget *target)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(target->rel), target->key - 1);

	/* NaN comes first among BSON's numbers and last among PostgreSQL's */
	return att->atttypid != NUMERICOID &&
		   (att->atttypid != TEXTOID || att->attcollation == C_COLLATION_OID);
}

char *
dp_key_operand(Oid type, const char *value)
{
	return psprintf(type == dp_types()->bson_value
						? "%s"
						: "(docpatterns._collection_keys(ARRAY[%s], NULL::%s))[1]",
					value, format_type_be_qualified(type));
}

/* A new key, NULL if keys of that type are not generated. */
static const char *
key_fresh(const DpTarget *target)
{
	Oid type = dp_target_key_type(target);

	if (type == UUIDOID)
		return "pg_catalog.gen_random_uuid()";
	if (type == dp_types()->objectid)
		return psprintf("%s.objectid()", target->schema);
	return type == dp_types()->bson_value
			   ? psprintf("docpatterns.bson_value_from(%s.objectid())", target->schema)
			   : "NULL";
}

/* The key of a row s (doc), which may be new. */
static char *
new_id(const DpTarget *target)
{
	return psprintf("coalesce(%s, %s)", row_id(target), key_fresh(target));
}

char *
dp_target_insertion(const DpTarget *target)
{
	if (target->key == 0)
		return psprintf("INSERT INTO %s AS t (%s) SELECT s.doc", target->name,
						dp_target_column(target, target->doc));
	/* a partitioned collection needs the key before its trigger fires */
	return psprintf("INSERT INTO %s AS t (%s, %s) SELECT %s, s.doc", target->name,
					dp_target_column(target, target->key), dp_target_column(target, target->doc),
					new_id(target));
}

char *
dp_target_new_ids(const DpTarget *target)
{
	const char *own = target->schema;

	return psprintf("SELECT pg_catalog.array_agg(CASE WHEN %s.bson_exists(s.doc, '_id') THEN s.doc "
					"ELSE %s.bson_build('_id'::pg_catalog.text, %s) OPERATOR(%s.||) s.doc END "
					"ORDER BY s.n) FROM pg_catalog.unnest($15) WITH ORDINALITY AS s (doc, n)",
					own, own, key_fresh(target), own);
}

/* The key that a row s (doc) will have, NULL if it gets a new one. */
static char *
row_id(const DpTarget *target)
{
	return dp_key_operand(dp_target_key_type(target),
						  psprintf("(s.doc OPERATOR(%s.->) '_id'::pg_catalog.text)",
								   target->schema));
}

char *
dp_target_id(const DpTarget *target)
{
	if (target->key != 0 && dp_target_key_type(target) == dp_types()->bson_value)
		return psprintf("t.%s", dp_target_column(target, target->key));
	return field(target, "_id");
}

/* The value at a path, spelled as an index has it. */
static char *
field(const DpTarget *target, const char *path)
{
	return psprintf("(t.%s OPERATOR(%s.->) %s::pg_catalog.text)",
					dp_target_column(target, target->doc), target->schema,
					quote_literal_cstr(path));
}

char *
dp_target_indexed(DpTarget *target, const DpPath *path, bool *arrays)
{
	const char *index;

	if (target->facts == NULL)
		target->facts = dp_doc_facts(target->rel, target->doc);
	index = dp_doc_index(target->facts, path, arrays);
	return index == NULL ? NULL : field(target, index);
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

Oid
dp_target_base(const DpTarget *target)
{
	TriggerDesc *triggers = target->rel->trigdesc;
	Query *query;
	RangeTblEntry *rte;

	if (triggers == NULL || !triggers->trig_update_instead_row ||
		get_func_namespace(triggers->triggers[0].tgfoid) != dp_types()->internal)
		return InvalidOid;
	rte = view_table(target->rel, &query);
	return rte == NULL ? InvalidOid : rte->relid;
}

char *
dp_target_row_condition(const DpTarget *target)
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

const char *
dp_target_attribute(const DpTarget *target, AttrNumber attnum)
{
	return pstrdup(NameStr(TupleDescAttr(RelationGetDescr(target->rel), attnum - 1)->attname));
}

const char *
dp_target_column(const DpTarget *target, AttrNumber attnum)
{
	return quote_identifier(dp_target_attribute(target, attnum));
}

/* The key of a row as a bson_value, NULL if the relation has none. */
static char *
row_key(const DpTarget *target)
{
	List *columns;
	StringInfoData sql;
	ListCell *lc;

	if (target->key != 0)
		return dp_target_id(target);
	columns = target->is_table ? row_columns(target->rel) : NIL;
	if (columns == NIL)
		return NULL;
	initStringInfo(&sql);
	foreach(lc, columns)
		appendStringInfo(&sql, "%st.%s", sql.len > 0 ? ", " : "",
						 dp_target_column(target, lfirst_int(lc)));
	return psprintf("%s.%s(%s)", target->schema,
					list_length(columns) == 1 ? "to_bson" : "bson_array", sql.data);
}

void
dp_collection_lookup(Oid relid, const DpPath *path, DpDocLookup *lookup)
{
	DpTarget target;

	dp_target_open(&target, relid);
	dp_target_find(&target);
	memset(lookup, 0, sizeof(DpDocLookup));
	lookup->source = psprintf("%s AS t", target.name);
	if (target.seen != NULL)
		lookup->source =
			psprintf("(SELECT t.*%s FROM %s WHERE %s) AS t",
					 target.is_table ? ", t.tableoid, t.ctid" : "", lookup->source, target.seen);
	lookup->doc = psprintf("t.%s", dp_target_column(&target, target.doc));
	lookup->key = row_key(&target);
	lookup->is_table = target.is_table;
	lookup->deep = path->nsteps > 1;
	lookup->is_split = target.split != NULL;
	lookup->type = dp_types()->bson_value;
	if (target.key != 0 && dp_path_is_id(path))
	{
		lookup->is_key = true;
		lookup->expr = psprintf("t.%s", dp_target_column(&target, target.key));
		lookup->type = dp_target_key_type(&target);
	}
	else
	{
		lookup->expr = dp_target_indexed(&target, path, &lookup->arrays);
		lookup->filters = dp_doc_gin(target.facts, path);
	}
	table_close(target.rel, AccessShareLock);
}

void
dp_collection_target(Oid relid, DpDocTarget *out)
{
	DpTarget target;

	dp_target_open(&target, relid);
	if (!target.is_table)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not a table", RelationGetRelationName(target.rel))));
	dp_target_find(&target);
	out->change = target.split == NULL ? NULL : target.split->change(target.split);
	out->name = target.name;
	out->doc = dp_target_column(&target, target.doc);
	out->key = target.key == 0 ? NULL : dp_target_column(&target, target.key);
	out->id = target.key == 0 ? NULL : new_id(&target);
	out->same = NULL;
	if (target.key != 0)
		out->same = psprintf("t.%s OPERATOR(%s.=) %s", out->key,
							 dp_target_key_type(&target) >= FirstNormalObjectId ? target.schema
																				: "pg_catalog",
							 row_id(&target));
	out->insert = dp_target_insertion(&target);
	out->hiding = target.hiding;
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

bool
dp_path_is_id(const DpPath *path)
{
	return path->nsteps == 1 && strcmp(path->steps[0].name, "_id") == 0;
}
