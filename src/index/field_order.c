/*
 * field_order.c
 *		Indexes on fields, such as ((doc -> 'a')), for orders for which PostgreSQL finds none.
 *
 * ORDER BY doc -> 'a': SQL and MongoDB differ in where NULL comes in an order, and an index has one
 * of them.  For the other, it is scanned twice: for NULL, and for the others in order.
 *
 * ORDER BY bson_sort_key(doc, '{a: 1}'): this key takes the least element of an array, and null for
 * what is missing.  So the index is scanned in parts, and the executor merges them by the key:
 *
 *		values before all arrays, and values after them, in the order of the index
 *
 *		arrays, sorted by the key
 *
 *		NULL (nothing at the path), sorted by the key unless all have the same
 *
 *		arrays of fields before it in the index, for which a filter has a value
 *
 * Checks that exclude arrays, undefined and MinKey (collection_facts.c) leave one scan, also for
 * several fields.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/fetch.h"
#include "bson/text.h"
#include "index/changed_row.h"
#include "index/field_order.h"
#include "index/stats/selectivity.h"
#include "index/text_condition.h"
#include "mql/collection_calls.h"
#include "mql/error.h"

/* The order of an index from a column on, which is a field */
typedef struct FieldOrder
{
	PlannerInfo *root;
	RelOptInfo *rel;
	Relation table;
	IndexOptInfo *index;
	int column;
	Expr *field;
	Var *doc;
	DpDocFacts *facts; /* NULL: not read yet */
	ScanDirection direction;
	List *pathkeys; /* of the query, at its beginning */
	List *implied;  /* what follows from filters (RestrictInfo) .. */
	List *loose;    /* .. and for fields (DpLooseField) */
} FieldOrder;

static struct varlena *first_array(void);
static struct varlena *after_arrays(void);
static bool add_value_order(FieldOrder *o);
static bool is_ordered_by(const PathKey *key, Expr *expr, Relids relids);
static void add_key_order(FieldOrder *o);
static List *add_loose_parts(FieldOrder *o, List **fixed);
static bool has_one_value(FieldOrder *o, int column, List *clauses);
static bool find_spec(FieldOrder *o, const PathKey *key, DpValue *spec);
static bool has_spec(FieldOrder *o, const DpValue *spec, bool reversed, bool *exact);
static DpPath *field_path(FieldOrder *o, int column);
static bool is_same(const DpPath *a, const DpPath *b);
static bool is_exact(FieldOrder *o, int column, const DpPath *path, bool last);
static bool has_checks(FieldOrder *o);
static bool is_never_null(FieldOrder *o);
static RestrictInfo *condition(FieldOrder *o, Expr *clause);
static List *conditions_of(FieldOrder *o, List *clauses);
static List *add_part(FieldOrder *o, List *parts, List *conditions, bool ordered);
static Path *part_path(FieldOrder *o, List *conditions, bool ordered);
static bool uses(FieldOrder *o, IndexPath *path, List *conditions, bool ordered);
static void add_ordered_path(FieldOrder *o, List *parts, bool merge);

void
dp_add_ordered_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid, List *implied, List *loose)
{
	FieldOrder o = { .root = root, .rel = rel, .loose = loose };
	ListCell *lc;

	/* a search for several values may change the order */
	foreach(lc, implied)
		if (!IsA(((RestrictInfo *) lfirst(lc))->clause, ScalarArrayOpExpr))
			o.implied = lappend(o.implied, lfirst(lc));
	foreach(lc, rel->indexlist)
	{
		ListCell *next;

		o.index = lfirst(lc);
		if (o.index->relam != BTREE_AM_OID || o.index->sortopfamily == NULL ||
			(o.index->indpred != NIL && !o.index->predOK))
			continue;
		next = list_head(o.index->indexprs);
		for (o.column = 0; next != NULL && o.column < o.index->nkeycolumns; o.column++)
		{
			Const *path;

			if (o.index->indexkeys[o.column] != 0)
				continue;
			o.field = lfirst(next);
			next = lnext(o.index->indexprs, next);
			if (!dp_doc_is_call((Node *) o.field, "bson_get", TEXTOID, &path))
				continue;
			o.doc = dp_call_column((Node *) o.field);
			o.facts = NULL;
			if (o.table == NULL)
				o.table = table_open(relid, NoLock);
			if (!add_value_order(&o))
				add_key_order(&o);
		}
	}
	if (o.table != NULL)
		table_close(o.table, NoLock);
}

Var *
dp_call_column(Node *call)
{
	return IsA(call, OpExpr) ? linitial(((OpExpr *) call)->args)
							 : linitial(((FuncExpr *) call)->args);
}

List *
dp_array_clauses(Expr *field)
{
	return list_make2(dp_field_compare(field, ">=", first_array()),
					  dp_field_compare(field, "<", after_arrays()));
}

void
dp_array_estimate(List *conditions, double share)
{
	linitial_node(RestrictInfo, conditions)->norm_selec = share;
	lsecond_node(RestrictInfo, conditions)->norm_selec = 1.0;
}

Expr *
dp_null_test(Expr *field, NullTestType type)
{
	NullTest *test = makeNode(NullTest);

	test->arg = copyObject(field);
	test->nulltesttype = type;
	test->location = -1;
	return (Expr *) test;
}

static struct varlena *
first_array(void)
{
	DpValue empty = { dp_empty_document, DP_DOCUMENT_MIN_SIZE, DP_TYPE_ARRAY };

	return dp_value_to_varlena(&empty);
}

/* The least value that comes after all arrays */
static struct varlena *
after_arrays(void)
{
	static const uint8 bytes[5] = { 0 }; /* its length and its subtype */
	DpValue binary = { bytes, sizeof(bytes), DP_TYPE_BINARY };

	return dp_value_to_varlena(&binary);
}

/* ---------------------------------------------------------------- doc -> 'a' */

/* Whether the query is ordered by the field.  Adds a path unless PostgreSQL has one itself. */
static bool
add_value_order(FieldOrder *o)
{
	PathKey *key = linitial(o->root->query_pathkeys);
	bool *nulls_first = &o->index->nulls_first[o->column];
	bool forward = o->index->reverse_sort[o->column] == dp_pathkey_is_descending(key);
	NullTestType first = key->pk_nulls_first ? IS_NULL : IS_NOT_NULL;
	List *parts;

	if (key->pk_opfamily != o->index->sortopfamily[o->column] ||
		!is_ordered_by(key, o->field, o->rel->relids))
		return false;
	if ((*nulls_first == forward) == key->pk_nulls_first)
		return true;
	o->direction = forward ? ForwardScanDirection : BackwardScanDirection;
	*nulls_first = !*nulls_first;
	o->pathkeys = truncate_useless_pathkeys(o->root, o->rel,
											build_index_pathkeys(o->root, o->index, o->direction));
	*nulls_first = !*nulls_first;
	if (!pathkeys_contained_in(list_make1(key), o->pathkeys))
		return true;
	parts = add_part(o, NIL, list_make1(condition(o, dp_null_test(o->field, first))), true);
	parts =
		add_part(o, parts,
				 list_make1(condition(o, dp_null_test(o->field, key->pk_nulls_first ? IS_NOT_NULL
																					: IS_NULL))),
				 true);
	add_ordered_path(o, parts, false);
	return true;
}

static bool
is_ordered_by(const PathKey *key, Expr *expr, Relids relids)
{
	EquivalenceMember *member = find_ec_member_matching_expr(key->pk_eclass, expr, relids);

	return member != NULL && bms_equal(member->em_relids, relids);
}

/* ---------------------------------------------------------------- sort keys */

/* Adds a path if the query is ordered by sort keys that the index has from the column on. */
static void
add_key_order(FieldOrder *o)
{
	bool exact = false;
	List *fixed = NIL;
	List *parts;
	DpValue spec;
	ListCell *lc;

	o->pathkeys = NIL;
	o->direction = NoMovementScanDirection;
	foreach(lc, o->root->query_pathkeys)
	{
		PathKey *key = lfirst(lc);
		bool more;

		if ((o->pathkeys != NIL && !exact) || !find_spec(o, key, &spec) ||
			!has_spec(o, &spec, dp_pathkey_is_descending(key), &more))
			break;
		exact = more;
		o->pathkeys = lappend(o->pathkeys, key);
	}
	if (o->pathkeys == NIL)
		return;
	parts = add_loose_parts(o, &fixed);
	if (exact)
		parts = add_part(o, parts, fixed, true);
	else
	{
		DpPath *path = field_path(o, o->column);
		bool arrays = !has_checks(o) || dp_doc_index(o->facts, path, NULL) == NULL;

		if (arrays)
		{
			RestrictInfo *low = condition(o, dp_field_compare(o->field, "<", first_array()));
			RestrictInfo *high = condition(o, dp_field_compare(o->field, ">=", after_arrays()));
			List *between = conditions_of(o, dp_array_clauses(o->field));
			double shares[3];

			if (dp_estimate_arrays(o->root, (Node *) o->field, shares))
			{
				low->norm_selec = shares[0];
				high->norm_selec = shares[2];
				dp_array_estimate(between, shares[1]);
			}
			parts = add_part(o, parts, lcons(low, list_copy(fixed)), true);
			parts = add_part(o, parts, lcons(high, list_copy(fixed)), true);
			parts = add_part(o, parts, list_concat(between, fixed), false);
		}
		else
			parts =
				add_part(o, parts,
						 lcons(condition(o, dp_null_test(o->field, IS_NOT_NULL)), list_copy(fixed)),
						 true);
		parts = add_part(o, parts,
						 lcons(condition(o, dp_null_test(o->field, IS_NULL)), list_copy(fixed)),
						 is_never_null(o) && (path->nsteps == 1 || !arrays));
	}
	add_ordered_path(o, parts, true);
}

/*
 * Filters that compare fields before the column with one value: these values are fixed, and other
 * rows that may match have arrays or NULL there.  The parts for these are returned.
 */
static List *
add_loose_parts(FieldOrder *o, List **fixed)
{
	List *parts = NIL;
	ListCell *next = list_head(o->index->indexprs);
	ListCell *lc;

	for (int i = 0; i < o->column; i++)
	{
		Expr *field;

		if (o->index->indexkeys[i] != 0)
			continue;
		field = lfirst(next);
		next = lnext(o->index->indexprs, next);
		foreach(lc, o->loose)
		{
			DpLooseField *loose = lfirst(lc);

			if (!equal(loose->field, field) || !has_one_value(o, i, loose->clauses))
				continue;
			parts = add_part(o, parts,
							 list_concat(conditions_of(o, dp_array_clauses(field)), *fixed), false);
			if (loose->deep)
				parts =
					add_part(o, parts,
							 lcons(condition(o, dp_null_test(field, IS_NULL)), list_copy(*fixed)),
							 false);
			*fixed = list_concat(conditions_of(o, loose->clauses), *fixed);
			break;
		}
	}
	return parts;
}

/* Whether the clauses compare a column with a value that is not an array. */
static bool
has_one_value(FieldOrder *o, int column, List *clauses)
{
	ListCell *lc;

	foreach(lc, clauses)
	{
		OpExpr *clause = lfirst(lc);

		if (IsA(clause, OpExpr) &&
			get_op_opfamily_strategy(clause->opno, o->index->opfamily[column]) ==
				BTEqualStrategyNumber &&
			dp_datum_first_byte(((Const *) lsecond(clause->args))->constvalue) != DP_TYPE_ARRAY)
			return true;
	}
	return false;
}

/* The constant specification if the key is the sort key of the documents. */
static bool
find_spec(FieldOrder *o, const PathKey *key, DpValue *spec)
{
	ListCell *lc;

	foreach(lc, key->pk_eclass->ec_members)
	{
		Node *expr = (Node *) ((EquivalenceMember *) lfirst(lc))->em_expr;
		Const *arg;

		if (!dp_doc_is_call(expr, "bson_sort_key", dp_types()->bson, &arg))
			continue;
		/* members of partitions are found by their expressions only */
		expr = copyObject(expr);
		linitial(((FuncExpr *) expr)->args) = o->doc;
		if (is_ordered_by(key, (Expr *) expr, o->rel->relids))
		{
			*spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(arg->constvalue));
			return true;
		}
	}
	return false;
}

/*
 * Whether the columns of the index have the order of the specification, if not for values that
 * exact tells about: it is true if there are none.
 */
static bool
has_spec(FieldOrder *o, const DpValue *spec, bool reversed, bool *exact)
{
	DpIter iter;
	DpElement e;
	int column = o->column;

	*exact = true;
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpPath *path;
		int64 up;
		ScanDirection direction;

		if (column == o->index->nkeycolumns || !dp_value_to_whole(&e.value, &up) ||
			(up != 1 && up != -1) || !*exact)
			return false;
		path = field_path(o, column);
		if (path == NULL || !is_same(path, dp_path_of_field(e.name)))
			return false;
		direction = o->index->reverse_sort[column] == ((up < 0) != reversed)
						? ForwardScanDirection
						: BackwardScanDirection;
		if (o->direction == NoMovementScanDirection)
			o->direction = direction;
		if (direction != o->direction)
			return false;
		*exact = is_exact(o, column, path, iter.next == iter.end);
		column++;
	}
	/* values of one field that are out of order have scans of their own */
	return *exact || column == o->column + 1;
}

/* The path of a column of the index, if it is a field of the documents; or NULL. */
static DpPath *
field_path(FieldOrder *o, int column)
{
	int n = 0;
	Node *field;
	Const *path;

	if (o->index->indexkeys[column] != 0)
		return NULL;
	for (int i = 0; i < column; i++)
		n += o->index->indexkeys[i] == 0;
	field = list_nth(o->index->indexprs, n);
	if (!dp_doc_is_call(field, "bson_get", TEXTOID, &path) || !equal(dp_call_column(field), o->doc))
		return NULL;
	return dp_path_parse(VARDATA_ANY(path->constvalue), VARSIZE_ANY_EXHDR(path->constvalue));
}

/* Whether the paths are the same; a position from the end of an array is a name for sort keys. */
static bool
is_same(const DpPath *a, const DpPath *b)
{
	if (a->nsteps != b->nsteps)
		return false;
	for (int i = 0; i < a->nsteps; i++)
		if (strcmp(a->steps[i].name, b->steps[i].name) != 0 ||
			(a->steps[i].is_index && a->steps[i].index < 0))
			return false;
	return true;
}

/*
 * Whether the index has the order of the sort key at the column for all documents.  NULL must come
 * before all values, and if another field follows, null must not differ from it.
 */
static bool
is_exact(FieldOrder *o, int column, const DpPath *path, bool last)
{
	return has_checks(o) && o->index->nulls_first[column] != o->index->reverse_sort[column] &&
		   is_never_null(o) && dp_doc_index(o->facts, path, NULL) != NULL &&
		   dp_doc_never(o->facts, path, "undefined") && dp_doc_never(o->facts, path, "minKey") &&
		   (last || dp_doc_never(o->facts, path, "null"));
}

/* Whether there are any checks; reads the facts. */
static bool
has_checks(FieldOrder *o)
{
	TupleConstr *constr = RelationGetDescr(o->table)->constr;

	if (constr == NULL || constr->num_check == 0)
		return false;
	if (o->facts == NULL)
		o->facts = dp_doc_facts(o->table, o->doc->varattno);
	return true;
}

/* Whether each row that is read has a document. */
static bool
is_never_null(FieldOrder *o)
{
	return dp_is_never_null(o->rel, RelationGetDescr(o->table), o->doc->varattno) ||
		   predicate_implied_by(list_make1(dp_null_test((Expr *) o->doc, IS_NOT_NULL)),
								get_actual_clauses(o->rel->baserestrictinfo), false);
}

/* ---------------------------------------------------------------- scans */

static RestrictInfo *
condition(FieldOrder *o, Expr *clause)
{
	return make_simple_restrictinfo(o->root, clause);
}

static List *
conditions_of(FieldOrder *o, List *clauses)
{
	List *result = NIL;
	ListCell *lc;

	foreach(lc, clauses)
		result = lappend(result, condition(o, lfirst(lc)));
	return result;
}

/*
 * Adds the scan of the index for rows with the conditions (RestrictInfo), sorted if it does not
 * have the order; or NULL.
 */
static List *
add_part(FieldOrder *o, List *parts, List *conditions, bool ordered)
{
	Path *path = part_path(o, conditions, ordered);

	if (path != NULL && !ordered)
	{
		path->pathkeys = NIL;
		path = (Path *) create_sort_path(o->root, o->rel, path, o->pathkeys, -1);
	}
	return lappend(parts, path);
}

/* The cheapest scan of the index, in its order if ordered, for rows with the conditions; or NULL.
 */
static Path *
part_path(FieldOrder *o, List *conditions, bool ordered)
{
	RelOptInfo *rel = o->rel;
	IndexOptInfo *index = o->index;
	List *paths = rel->pathlist;
	List *partial = rel->partial_pathlist;
	List *indexes = rel->indexlist;
	List *restrictions = index->indrestrictinfo;
	bool bitmaps = index->amhasgetbitmap;
	IndexPath *best = NULL;
	ListCell *lc;

	rel->pathlist = rel->partial_pathlist = NIL;
	rel->indexlist = list_make1(index);
	index->indrestrictinfo = list_concat(list_concat_copy(restrictions, o->implied), conditions);
	index->amhasgetbitmap = false;
	create_index_paths(o->root, rel);
	foreach(lc, rel->pathlist)
	{
		IndexPath *path = lfirst(lc);

		if (path->path.param_info == NULL && path->indexscandir == ForwardScanDirection &&
			uses(o, path, conditions, ordered) &&
			(best == NULL || path->path.total_cost < best->path.total_cost))
			best = path;
	}
	rel->pathlist = paths;
	rel->partial_pathlist = partial;
	rel->indexlist = indexes;
	index->indrestrictinfo = restrictions;
	index->amhasgetbitmap = bitmaps;
	/* PostgreSQL makes none without a condition */
	if (best == NULL && conditions == NIL && o->column == 0)
		best = create_index_path(o->root, index, NIL, NIL, NIL, NIL, o->direction, false, NULL, 1,
								 false);
	if (best == NULL)
		return NULL;
	best->indexscandir = o->direction;
	best->path.pathkeys = o->pathkeys;
	best->path.rows =
		clamp_row_est(rel->rows * clauselist_selectivity(o->root, conditions, 0, JOIN_INNER, NULL));
	return (Path *) best;
}

/*
 * Whether a scan uses the conditions and has the order of the column, if wanted: all columns before
 * it must be equal to something, and a search for several values on a later column is none.
 */
static bool
uses(FieldOrder *o, IndexPath *path, List *conditions, bool ordered)
{
	Bitmapset *fixed = NULL;
	int used = 0;
	ListCell *lc;
	ListCell *lc2;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst(lc);

		used += list_member_ptr(conditions, clause->rinfo);
		foreach(lc2, clause->indexquals)
		{
			Expr *qual = ((RestrictInfo *) lfirst(lc2))->clause;

			if (clause->indexcol > 0 && IsA(qual, ScalarArrayOpExpr))
				return false;
			if (clause->indexcol < o->column &&
				((IsA(qual, NullTest) && ((NullTest *) qual)->nulltesttype == IS_NULL) ||
				 (IsA(qual, OpExpr) &&
				  get_op_opfamily_strategy(((OpExpr *) qual)->opno,
										   o->index->opfamily[clause->indexcol]) ==
					  BTEqualStrategyNumber)))
				fixed = bms_add_member(fixed, clause->indexcol);
		}
	}
	return used == list_length(conditions) && (!ordered || bms_num_members(fixed) == o->column);
}

/* Adds a path of the parts, to be merged or one after the other, if there are all of them. */
static void
add_ordered_path(FieldOrder *o, List *parts, bool merge)
{
	RelOptInfo *rel = o->rel;
	Path *path = linitial(parts);

	if (list_member_ptr(parts, NULL))
		return;
	if (list_length(parts) > 1)
	{
		bool partition = rel->reloptkind == RELOPT_OTHER_MEMBER_REL;

		/*
		 * PostgreSQL takes several scans of a partition for partitions that it may leave out,
		 * unless they are below another node and of a relation without conditions.
		 */
		if (partition)
		{
			rel = makeNode(RelOptInfo);
			*rel = *o->rel;
			rel->baserestrictinfo = NIL;
		}
		if (o->root->rowMarks != NIL)
			parts = lcons(dp_changed_row_path(o->rel, o->pathkeys), parts);
		if (merge)
			path = (Path *) create_merge_append_path(o->root, rel, parts, o->pathkeys, NULL);
		else
			path = (Path *) create_append_path(o->root, rel, parts, NIL, o->pathkeys, NULL, 0,
											   false, rel->rows);
		if (partition)
			path = (Path *) create_projection_path(o->root, o->rel, path, o->rel->reltarget);
	}
	path->rows = o->rel->rows;
	add_path(o->rel, path);
}
