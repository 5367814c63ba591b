/*
 * facts.c
 *		Facts about a table that a writer caches between statements.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "kit/anchor.h"
#include "kit/rows/lookup.h"
#include "kit/sql/function.h"
#include "kit/statement.h"
#include "mql/collection_calls.h"

static HTAB *facts_table = NULL;

static void facts_triggers(DpTableFacts *facts, Relation rel, DpSkipTrigger skip);
static void facts_checks(DpTableFacts *facts, Relation rel);
static void index_read(DpTableIndexes *indexes, Oid oid);
static MemoryContext facts_context(DpTableFacts *facts);
static bool expression_keeps_state(Node *node, void *context);
static void facts_bury(DpTableFacts *facts);

/* Read at first use, and again after changes of the schema. */
DpTableFacts *
dp_table_facts(Relation rel, DpSkipTrigger skip)
{
	uint64 now = dp_schema_generation();
	DpFactsKey key;
	DpTableFacts *facts;
	bool found;
	int i;
	int documents = 0;
	Oid bson;

	if (facts_table == NULL)
	{
		HASHCTL ctl;

		ctl.keysize = sizeof(DpFactsKey);
		ctl.entrysize = sizeof(DpTableFacts);
		ctl.hcxt = CacheMemoryContext;
		facts_table =
			hash_create("docpatterns writers", 32, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	memset(&key, 0, sizeof(key));
	key.relid = RelationGetRelid(rel);
	key.skip = skip;
	facts = hash_search(facts_table, &key, HASH_ENTER, &found);
	if (likely(found && facts->generation == now))
		return facts;

	if (found)
		facts_bury(facts);
	facts->generation = 0;
	facts->context = NULL;
	facts->indexes = NULL;
	facts->owner = rel->rd_rel->relowner;
	facts->doc = 0;
	bson = dp_types()->bson;
	for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (!att->attisdropped && att->atttypid == bson)
		{
			facts->doc = att->attnum;
			documents++;
		}
	}
	if (documents > 1)
		facts->doc = 0;
	facts_triggers(facts, rel, skip);
	facts_checks(facts, rel);
	facts->generation = now;
	return facts;
}

/*
 * The kinds of triggers that must fire: those with at least one trigger that is neither disabled
 * nor skipped.
 */
static void
facts_triggers(DpTableFacts *facts, Relation rel, DpSkipTrigger skip)
{
	TriggerDesc *fire = &facts->fire;
	TriggerDesc *triggers = dp_triggers(rel);
	int i;
	bool collection = false;

	memset(fire, 0, sizeof(TriggerDesc));
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		int16 type = trigger->tgtype;
		bool row = TRIGGER_FOR_ROW(type) != 0;
		bool before = TRIGGER_FOR_BEFORE(type) != 0;

		if (trigger->tgenabled == TRIGGER_DISABLED || (skip != NULL && skip(trigger)) ||
			dp_trigger_is_anchor(trigger))
			continue;
		if (TRIGGER_FOR_INSERT(type))
		{
			if (row && before)
				fire->trig_insert_before_row = true;
			else if (row)
				fire->trig_insert_after_row = true;
			else if (before)
				fire->trig_insert_before_statement = true;
			else
				fire->trig_insert_after_statement = true;
			if (TRIGGER_USES_TRANSITION_TABLE(trigger->tgnewtable))
				fire->trig_insert_new_table = true;
		}
		if (TRIGGER_FOR_UPDATE(type))
		{
			if (row && before && dp_collection_is_trigger(trigger))
				collection = true;
			else if (row && before)
				fire->trig_update_before_row = true;
			else if (row)
				fire->trig_update_after_row = true;
			else if (before)
				fire->trig_update_before_statement = true;
			else
				fire->trig_update_after_statement = true;
			if (TRIGGER_USES_TRANSITION_TABLE(trigger->tgoldtable))
				fire->trig_update_old_table = true;
			if (TRIGGER_USES_TRANSITION_TABLE(trigger->tgnewtable))
				fire->trig_update_new_table = true;
		}
		if (TRIGGER_FOR_DELETE(type))
		{
			if (row && before)
				fire->trig_delete_before_row = true;
			else if (row)
				fire->trig_delete_after_row = true;
			else if (before)
				fire->trig_delete_before_statement = true;
			else
				fire->trig_delete_after_statement = true;
			if (TRIGGER_USES_TRANSITION_TABLE(trigger->tgoldtable))
				fire->trig_delete_old_table = true;
		}
	}
	facts->collection = collection && !fire->trig_update_before_row;
	facts->fires = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ||
				   fire->trig_insert_after_row || fire->trig_insert_after_statement ||
				   fire->trig_insert_before_statement || fire->trig_update_after_row ||
				   fire->trig_update_after_statement || fire->trig_update_before_statement ||
				   fire->trig_delete_after_row || fire->trig_delete_after_statement ||
				   fire->trig_delete_before_statement;
}

/*
 * Preparing the checks of a table for every statement would cost more than writing the row.  They
 * are cached if they call only C functions that keep no state of a transaction.
 */
static void
facts_checks(DpTableFacts *facts, Relation rel)
{
	TupleConstr *constr = RelationGetDescr(rel)->constr;
	MemoryContext old;
	int i;

	facts->checks = NULL;
	if (constr == NULL || constr->num_check == 0 || dp_has_virtual_columns(constr))
		return;
	old = MemoryContextSwitchTo(facts_context(facts));
	facts->checks = palloc0(sizeof(ExprState *) * constr->num_check);
	for (i = 0; i < constr->num_check; i++)
	{
		Expr *expr;

		if (!dp_check_enforced(constr->check[i]))
			continue;
		expr = stringToNode(constr->check[i].ccbin);
		if (expression_keeps_state((Node *) expr, NULL))
		{
			facts->checks = NULL;
			break;
		}
		facts->checks[i] = ExecInitExpr(expression_planner(expr), NULL);
	}
	MemoryContextSwitchTo(old);
}

DpTableIndexes *
dp_table_indexes(Relation rel)
{
	DpTableFacts *facts = dp_table_facts(rel, NULL);
	DpTableIndexes *indexes;
	MemoryContext old;
	List *oids;
	ListCell *lc;

	if (likely(facts->indexes != NULL))
		return facts->indexes;
	old = MemoryContextSwitchTo(facts_context(facts));
	oids = RelationGetIndexList(rel);
	indexes = palloc0(offsetof(DpTableIndexes, index) + list_length(oids) * sizeof(DpTableIndex));
	indexes->key = dp_lookup_key(rel);
	indexes->plain = true;
	foreach(lc, oids)
		index_read(indexes, lfirst_oid(lc));
	facts->indexes = indexes;
	MemoryContextSwitchTo(old);
	return indexes;
}

/* Adds a description of an index. */
static void
index_read(DpTableIndexes *indexes, Oid oid)
{
	Relation index = index_open(oid, AccessShareLock);
	DpTableIndex *x = &indexes->index[indexes->n];

	x->oid = oid;
	x->info = BuildIndexInfo(index);
	if (index->rd_rel->relam != BTREE_AM_OID || x->info->ii_Expressions != NIL ||
		x->info->ii_ExclusionOps != NULL || !index->rd_index->indimmediate ||
		expression_keeps_state((Node *) x->info->ii_Predicate, NULL))
		indexes->plain = false;
	if (x->info->ii_ReadyForInserts)
		indexes->n++;
	index_close(index, NoLock);
}

/* Returns the context of prepared expressions and index descriptions. */
static MemoryContext
facts_context(DpTableFacts *facts)
{
	if (facts->context == NULL)
		facts->context =
			AllocSetContextCreate(CacheMemoryContext, "docpatterns facts", ALLOCSET_SMALL_SIZES);
	return facts->context;
}

/* Whether an expression may keep something: all but the plainest. */
static bool
expression_keeps_state(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_Var:
		case T_Const:
		case T_FuncExpr:
		case T_OpExpr:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_RelabelType:
		case T_ScalarArrayOpExpr:
			break;
		default:
			return true;
	}
	if (check_functions_in_node(node, dp_function_keeps_state, NULL))
		return true;
	return expression_tree_walker(node, expression_keeps_state, context);
}

/* What is in use up the stack is freed when the transaction ends. */
static void
facts_bury(DpTableFacts *facts)
{
	if (facts->context == NULL)
		return;
	dp_bury(facts->context);
	facts->context = NULL;
	facts->checks = NULL;
	facts->indexes = NULL;
}
