/*
 * key.c
 *		Clauses on columns of a relation of measurements that its scan uses: to find
 *		buckets, to skip buckets, and to select rows by time.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "patterns/bucket/scan.h"

static DpBucketKey *operator_key(PlannerInfo *root, DpBucketRel *rel, Index relid, Expr *clause,
								 Oid opno, Oid collation, Node *left, Node *right, bool is_array);

/*
 * The clause as a key, or NULL.
 */
DpBucketKey *
dp_bucket_key(PlannerInfo *root, DpBucketRel *rel, Index relid, Expr *clause)
{
	if (IsA(clause, OpExpr) && list_length(((OpExpr *) clause)->args) == 2)
	{
		OpExpr *op = (OpExpr *) clause;
		Node *left = linitial(op->args);
		Node *right = lsecond(op->args);
		Oid opno = op->opno;

		if (dp_bucket_column_of(rel, relid, left) == NULL)
		{
			Node *swap = left;

			left = right;
			right = swap;
			opno = get_commutator(opno);
		}
		return operator_key(root, rel, relid, clause, opno, op->inputcollid, left, right, false);
	}
	if (IsA(clause, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) clause)->useOr)
	{
		ScalarArrayOpExpr *op = (ScalarArrayOpExpr *) clause;

		return operator_key(root, rel, relid, clause, op->opno, op->inputcollid, linitial(op->args),
							lsecond(op->args), true);
	}
	if (IsA(clause, NullTest) && ((NullTest *) clause)->nulltesttype == IS_NULL &&
		!((NullTest *) clause)->argisrow)
	{
		DpBucketColumn *column =
			dp_bucket_column_of(rel, relid, (Node *) ((NullTest *) clause)->arg);
		DpBucketKey *key;

		if (column == NULL || column->role != DP_BUCKET_GROUP)
			return NULL;
		key = palloc0(sizeof(DpBucketKey));
		key->column = column;
		key->strategy = DP_KEY_IS_NULL;
		key->exact = true;
		key->value = (Expr *) makeBoolConst(true, false);
		key->clause = clause;
		return key;
	}
	return NULL;
}

/* A key on the column left, if it is one and the operator is one of its order. */
static DpBucketKey *
operator_key(PlannerInfo *root, DpBucketRel *rel, Index relid, Expr *clause, Oid opno,
			 Oid collation, Node *left, Node *right, bool is_array)
{
	DpBucketColumn *column = dp_bucket_column_of(rel, relid, left);
	DpBucketKey *key;
	TypeCacheEntry *type;
	Oid lefttype;
	Oid righttype;
	int strategy;

	if (column == NULL || !OidIsValid(opno) || bms_is_member(relid, pull_varnos(root, right)) ||
		contain_volatile_functions(right) || contain_subplans(right))
		return NULL;

	/* the clause may relabel the column to a binary compatible type with another order */
	type = lookup_type_cache(column->type, TYPECACHE_BTREE_OPFAMILY);
	if (!OidIsValid(type->btree_opf) || get_op_opfamily_strategy(opno, type->btree_opf) == 0)
		return NULL;
	get_op_opfamily_properties(opno, type->btree_opf, false, &strategy, &lefttype, &righttype);
	if (is_array && (strategy != BTEqualStrategyNumber || column->role != DP_BUCKET_GROUP))
		return NULL;

	/*
	 * texts are in the order of the column's collation; equality is the same in all deterministic
	 * ones
	 */
	if (OidIsValid(column->collation) && collation != column->collation)
		return NULL;
	if (column->role == DP_BUCKET_TIME && righttype != column->type &&
		(column->type != TIMESTAMPTZOID || righttype != TIMESTAMPOID) && righttype != DATEOID)
		return NULL;

	key = palloc0(sizeof(DpBucketKey));
	key->column = column;
	key->strategy = strategy;
	key->is_array = is_array;
	key->exact = column->role != DP_BUCKET_VALUE && !is_array;
	key->function = get_opcode(opno);
	key->righttype = righttype;
	key->collation = collation;
	key->value = (Expr *) right;
	key->clause = clause;
	return key;
}

DpBucketColumn *
dp_bucket_column_of(DpBucketRel *rel, Index relid, Node *expr)
{
	Var *var;

	while (IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	if (!IsA(expr, Var))
		return dp_bucket_field_column(rel, relid, expr);
	var = (Var *) expr;
	if (var->varno != relid || var->varlevelsup != 0 || var->varattno <= 0 ||
		var->varattno > rel->natts)
		return NULL;
	return rel->by_attnum[var->varattno - 1];
}

/*
 * Keys as a list of integer lists, and their values as expressions.
 */
List *
dp_bucket_keys_encode(List *keys, List **values)
{
	List *result = NIL;
	ListCell *lc;

	foreach(lc, keys)
	{
		DpBucketKey *key = lfirst(lc);
		List *item;

		item = list_make5_int(key->column->attnum, key->strategy, key->is_array,
							  (int) key->function, (int) key->righttype);
		item = lappend_int(item, (int) key->collation);
		item = lappend_int(item, key->exact);
		result = lappend(result, item);
		*values = lappend(*values, key->value);
	}
	return result;
}

/*
 * The keys of a plan, in the current context.
 */
void
dp_bucket_keys_decode(DpBucketRel *rel, List *encoded, List *values, PlanState *parent,
					  DpBucketKey **keys, int *nkeys)
{
	ListCell *lc;
	ListCell *lc2;

	*nkeys = 0;
	*keys = palloc0(sizeof(DpBucketKey) * Max(list_length(encoded), 1));
	forboth(lc, encoded, lc2, values)
	{
		List *item = lfirst(lc);
		DpBucketKey *key = &(*keys)[(*nkeys)++];
		int attnum = linitial_int(item);

		if (attnum > rel->natts || rel->by_attnum[attnum - 1] == NULL)
			elog(ERROR, "relation %u has no column %d", rel->relid, attnum);
		key->column = rel->by_attnum[attnum - 1];
		key->strategy = lsecond_int(item);
		key->is_array = lthird_int(item) != 0;
		key->function = (Oid) lfourth_int(item);
		key->righttype = (Oid) list_nth_int(item, 4);
		key->collation = (Oid) list_nth_int(item, 5);
		key->exact = list_nth_int(item, 6) != 0;
		if (OidIsValid(key->function))
			fmgr_info(key->function, &key->finfo);
		key->state = ExecInitExpr(lfirst(lc2), parent);
	}
}
