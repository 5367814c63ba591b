/*
 * selectivity_field.c
 *		Estimates for comparisons of a field with a value: doc -> 'price' > 5.
 *
 * PostgreSQL finds statistics for a field of a document only if there is an index on the expression
 * or extended statistics.  With them, or if the expression is not a field, its own estimators are
 * used; else the statistics of the column's documents.
 *
 * PostgreSQL recognizes the two ends of a range by its own estimators.  Since these operators have
 * others, the estimate of the upper end looks for the lower end among the conditions of its table,
 * and returns its share of the rows that the lower one leaves, so that the product of the two is
 * right.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/timestamp.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/fetch.h"
#include "bson/number.h"
#include "index/stats/selectivity.h"
#include "index/stats/selectivity_field.h"

/* Not a btree strategy; here it means <> */
#define NOT_EQUAL (BTMaxStrategyNumber + 1)

/* Parts of a path, gathered from the last one to the first */
#define FIELD_MAX_PARTS DP_MAX_DEPTH

typedef struct FieldParts
{
	const char *names[FIELD_MAX_PARTS];
	uint32 lens[FIELD_MAX_PARTS];
	int first; /* position of the first one that is filled */
} FieldParts;

static double restriction(PG_FUNCTION_ARGS, int strategy);
static double range_given_lower(PlannerInfo *root, int varRelid, VariableStatData *variable,
								const DpField *field, double selectivity);
static bool const_value(const Const *constant, DpValue *value);
static double field_compare(const DpField *field, int strategy, const DpValue *value);
static bool add_shares(HeapTuple tuple, int kind, double *rest, double shares[3]);

/* ---------------------------------------------------------------- expressions */

static bool
parts_add(FieldParts *parts, const char *name, uint32 len)
{
	if (parts->first == 0)
		return false;
	parts->names[--parts->first] = name;
	parts->lens[parts->first] = len;
	return true;
}

/* Adds a constant argument of -> or #>, or a subscript, to the path. */
static bool
parts_add_constant(FieldParts *parts, Node *node, bool is_name)
{
	Const *constant = (Const *) node;
	DpPath *path;

	if (!IsA(node, Const) || constant->constisnull)
		return false;
	switch (constant->consttype)
	{
		case TEXTOID:
		{
			text *t = DatumGetTextPP(constant->constvalue);

			if (is_name)
				return parts_add(parts, pnstrdup(VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t)),
								 VARSIZE_ANY_EXHDR(t));
			path = dp_path_parse(VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));
			break;
		}
		case INT4OID:
		{
			char *digits = psprintf("%d", DatumGetInt32(constant->constvalue));

			return parts_add(parts, digits, strlen(digits));
		}
		case TEXTARRAYOID:
			path = dp_path_of_array(DatumGetArrayTypeP(constant->constvalue));
			break;
		default:
			return false;
	}
	for (int i = path->nsteps - 1; i >= 0; i--)
		if (!parts_add(parts, path->steps[i].name, path->steps[i].namelen))
			return false;
	return true;
}

/*
 * Splits an expression of type bson_value, or its text.  Returns the document, or NULL if it is not
 * a field at a constant path.
 */
static Node *
field_document(Node *node, FieldParts *parts)
{
	const DpTypes *types = dp_types();
	const char *getter = exprType(node) == TEXTOID ? "bson_get_text" : "bson_get";

	parts->first = FIELD_MAX_PARTS;
	if (exprType(node) != types->bson_value && exprType(node) != TEXTOID)
		return NULL;

	for (;;)
	{
		List *args = NIL;
		Oid function = InvalidOid;
		char *name;

		while (IsA(node, RelabelType))
			node = (Node *) ((RelabelType *) node)->arg;
		if (IsA(node, SubscriptingRef))
		{
			SubscriptingRef *ref = (SubscriptingRef *) node;

			if (ref->refassgnexpr != NULL || ref->reflowerindexpr != NIL ||
				(ref->refcontainertype != types->bson &&
				 ref->refcontainertype != types->bson_value))
				return NULL;
			for (int i = list_length(ref->refupperindexpr) - 1; i >= 0; i--)
				if (list_nth(ref->refupperindexpr, i) == NULL ||
					!parts_add_constant(parts, list_nth(ref->refupperindexpr, i), true))
					return NULL;
			node = (Node *) ref->refexpr;
		}
		else
		{
			if (IsA(node, OpExpr))
			{
				args = ((OpExpr *) node)->args;
				function = get_opcode(((OpExpr *) node)->opno);
			}
			else if (IsA(node, FuncExpr))
			{
				args = ((FuncExpr *) node)->args;
				function = ((FuncExpr *) node)->funcid;
			}
			if (list_length(args) != 2 || !IsA(lsecond(args), Const))
				return NULL;
			node = linitial(args);
			if (exprType(node) != types->bson && exprType(node) != types->bson_value)
				return NULL;
			name = get_func_name(function);
			if (name == NULL || strcmp(name, getter) != 0 ||
				get_func_namespace(function) != types->schema ||
				!parts_add_constant(parts, lsecond(args), false))
				return NULL;
		}
		if (exprType(node) == types->bson)
			return node;
		getter = "bson_get";
	}
}

bool
dp_field_is_field(Node *expression)
{
	FieldParts parts;

	return field_document(expression, &parts) != NULL;
}

bool
dp_field_recognize(PlannerInfo *root, Node *expression, int varRelid, DpField *field)
{
	DpScope scope = { DP_SCOPE_DOCUMENT, NULL, NULL, 0 };
	FieldParts parts;
	Node *document;

	document = field_document(expression, &parts);
	if (document == NULL)
		return false;
	field->estimator = dp_estimator_create(root, document, varRelid);
	if (field->estimator->stats == NULL)
		return false;
	dp_scope_lookup(field->estimator, &scope,
					dp_path_of_names(FIELD_MAX_PARTS - parts.first, parts.names + parts.first,
									 parts.lens + parts.first),
					&field->known);
	return true;
}

/* The BSON value of a Const; false if there is none. */
static bool
const_value(const Const *constant, DpValue *value)
{
	switch (constant->consttype)
	{
		case DATEOID:
			if (DATE_NOT_FINITE(DatumGetDateADT(constant->constvalue)))
				return false;
			break;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			if (TIMESTAMP_NOT_FINITE(DatumGetTimestampTz(constant->constvalue)))
				return false;
			break;
		case NUMERICOID:
		{
			uint8 *bytes = palloc(DP_DECIMAL128_SIZE);

			dp_numeric_round_to_decimal128(DatumGetNumeric(constant->constvalue), bytes);
			value->type = DP_TYPE_DECIMAL128;
			value->data = bytes;
			value->len = DP_DECIMAL128_SIZE;
			return true;
		}
		default:
			break;
	}
	*value = dp_value_of_varlena(dp_datum_to_value(constant->constvalue, constant->consttype));
	return true;
}

/* ---------------------------------------------------------------- shares */

/* The share of documents whose field has a type of this number. */
static double
direct_type(const DpKnown *known, int type)
{
	return known->positional ? known->path->types[type] * known->position
							 : known->path->direct_types[type];
}

double
dp_field_present(const DpField *field)
{
	double present = 0;

	if (field->known.path == NULL)
		return dp_scope_unknown(field->estimator);
	for (int i = 0; i < DP_STATS_TYPES; i++)
		present += direct_type(&field->known, i);
	return Min(present, 1.0) * (1.0 - field->estimator->null_frac);
}

/* The share of all rows in which the field compares with the value by a btree strategy. */
static double
field_compare(const DpField *field, int strategy, const DpValue *value)
{
	const DpKnown *known = &field->known;
	double keep = 1.0 - field->estimator->null_frac;
	int class = dp_type_class[value->type];
	bool less = strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
	bool with_equal =
		strategy == BTLessEqualStrategyNumber || strategy == BTGreaterEqualStrategyNumber;
	double same = 0;   /* fields of the value's class */
	double others = 0; /* of the classes on the searched side */
	double part = DEFAULT_INEQ_SEL;

	if (known->path == NULL)
		return dp_scope_unknown(field->estimator) * keep;
	if (strategy == BTEqualStrategyNumber)
		return dp_estimate_direct_equal(field->estimator, known, value) * keep;
	if (strategy == NOT_EQUAL)
		return Max(dp_field_present(field) -
					   dp_estimate_direct_equal(field->estimator, known, value) * keep,
				   0);

	/* in the order of the classes */
	for (int i = 0; i < DP_STATS_TYPES; i++)
	{
		int other = dp_type_class[dp_stats_type_of_number(i)];

		if (other == class)
			same += direct_type(known, i);
		else if ((other < class) == less)
			others += direct_type(known, i);
	}
	if (value->type == DP_TYPE_NULL || value->type == DP_TYPE_UNDEFINED)
		part = with_equal ? 1.0 : 0.0;
	else if (!dp_type_is_container(value->type) && same > 0)
	{
		DpLimit limit = { 0, class, *value,
						  strategy == BTGreaterStrategyNumber ||
							  strategy == BTLessEqualStrategyNumber };
		DpLimit begin = { -1, class };
		DpLimit end = { 1, class };
		DpShare all = dp_path_share_range(known->path, &begin, &end);
		DpShare some =
			dp_path_share_range(known->path, less ? &begin : &limit, less ? &limit : &end);

		if (all.items > 0)
			part = Min(some.items / all.items, 1.0);
	}
	return Min(others + same * part, 1.0) * keep;
}

/* ---------------------------------------------------------------- restrictions */

/* bson_value_eqsel(internal, oid, internal, int4) -> float8, and so on: one for each operator. */
#define RESTRICTION(symbol, strategy)                                                              \
	DP_FUNCTION(symbol);                                                                           \
	Datum symbol(PG_FUNCTION_ARGS)                                                                 \
	{                                                                                              \
		double result = restriction(fcinfo, strategy);                                             \
		CLAMP_PROBABILITY(result);                                                                 \
		PG_RETURN_FLOAT8(result);                                                                  \
	}

RESTRICTION(dp_bson_value_ltsel, BTLessStrategyNumber)
RESTRICTION(dp_bson_value_lesel, BTLessEqualStrategyNumber)
RESTRICTION(dp_bson_value_eqsel, BTEqualStrategyNumber)
RESTRICTION(dp_bson_value_gesel, BTGreaterEqualStrategyNumber)
RESTRICTION(dp_bson_value_gtsel, BTGreaterStrategyNumber)
RESTRICTION(dp_bson_value_neqsel, NOT_EQUAL)

/* The estimate of PostgreSQL's own estimator of the operator. */
static double
core_restriction(FunctionCallInfo fcinfo, int strategy)
{
	static const PGFunction functions[] = { NULL,        scalarltsel, scalarlesel, eqsel,
											scalargesel, scalargtsel, neqsel };

	return DatumGetFloat8(DirectFunctionCall4Coll(functions[strategy], PG_GET_COLLATION(),
												  PG_GETARG_DATUM(0), PG_GETARG_DATUM(1),
												  PG_GETARG_DATUM(2), PG_GETARG_DATUM(3)));
}

/* The strategy with the sides of the operator exchanged. */
static int
turned(int strategy)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return BTGreaterStrategyNumber;
		case BTLessEqualStrategyNumber:
			return BTGreaterEqualStrategyNumber;
		case BTGreaterEqualStrategyNumber:
			return BTLessEqualStrategyNumber;
		case BTGreaterStrategyNumber:
			return BTLessStrategyNumber;
		default:
			return strategy;
	}
}

/* A field compared with a value unknown at plan time. */
static double
compare_unknown(const DpField *field, int strategy)
{
	double present = dp_field_present(field);
	double equal;

	if (strategy != BTEqualStrategyNumber && strategy != NOT_EQUAL)
		return Min(present, DEFAULT_INEQ_SEL);
	equal = present;
	if (field->known.path != NULL)
		equal /= field->known.path->n_distinct != 0
					 ? dp_path_distinct(field->estimator, field->known.path)
					 : 1.0 / DEFAULT_EQ_SEL;
	return strategy == NOT_EQUAL ? present - equal : equal;
}

/* The share of rows that satisfy a comparison. */
static double
restriction(FunctionCallInfo fcinfo, int strategy)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List *args = (List *) PG_GETARG_POINTER(2);
	int varRelid = PG_GETARG_INT32(3);
	VariableStatData variable;
	Node *other;
	bool on_left;
	DpField field;
	bool is_field = false;
	DpValue value;
	double result;

	if (!get_restriction_variable(root, args, varRelid, &variable, &other, &on_left))
		return core_restriction(fcinfo, strategy);

	if (!dp_field_is_described(&variable) && !variable.isunique)
		is_field = dp_field_recognize(root, variable.var, varRelid, &field);
	if (!is_field)
		result = core_restriction(fcinfo, strategy);
	if (!on_left)
		strategy = turned(strategy);
	if (is_field)
	{
		if (!IsA(other, Const))
			result = compare_unknown(&field, strategy);
		else if (((Const *) other)->constisnull)
			result = 0.0;
		else if (const_value((Const *) other, &value))
			result = field_compare(&field, strategy, &value);
		else
			result = compare_unknown(&field, strategy);
	}
	if (strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber)
		result = range_given_lower(root, varRelid, &variable, is_field ? &field : NULL, result);
	ReleaseVariableStats(variable);
	return result;
}

/* True if the clause says that the expression is greater than an expression without columns. */
static bool
is_lower_end(Node *clause, Node *expression)
{
	OpExpr *op = (OpExpr *) clause;
	char *name;
	Node *left;
	Node *right;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return false;
	name = get_opname(op->opno);
	if (name == NULL)
		return false;
	left = linitial(op->args);
	right = lsecond(op->args);
	if (name[0] == '<' && (name[1] == '\0' || strcmp(name, "<=") == 0))
	{
		Node *swap = left;

		left = right;
		right = swap;
	}
	else if (strcmp(name, ">") != 0 && strcmp(name, ">=") != 0)
		return false;
	while (IsA(left, RelabelType))
		left = (Node *) ((RelabelType *) left)->arg;
	return equal(left, expression) && !contain_var_clause(right);
}

/*
 * If the table has a condition that is the lower end of the same range: which
 * share of the rows that it keeps the upper end keeps.  selectivity is the
 * upper end's by itself.
 */
static double
range_given_lower(PlannerInfo *root, int varRelid, VariableStatData *variable, const DpField *field,
				  double selectivity)
{
	ListCell *lc;

	if (variable->rel == NULL || variable->rel->reloptkind == RELOPT_JOINREL)
		return selectivity;
	foreach(lc, variable->rel->baserestrictinfo)
	{
		Node *clause = (Node *) lfirst_node(RestrictInfo, lc)->clause;
		OpExpr *op = (OpExpr *) clause;
		double lower;
		double present = 1.0;
		double both;

		if (!is_lower_end(clause, variable->var))
			continue;
		lower = restriction_selectivity(root, op->opno, op->args, op->inputcollid, varRelid);
		if (lower <= 0)
			return selectivity;
		if (field != NULL)
			present = dp_field_present(field);
		else if (HeapTupleIsValid(variable->statsTuple))
			present = 1.0 - ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;
		if (selectivity == DEFAULT_INEQ_SEL && lower == DEFAULT_INEQ_SEL)
			both = DEFAULT_RANGE_INEQ_SEL;
		else
			both = selectivity + lower - present;
		/* what is left by rounding, or by ends in the wrong order */
		if (both <= 0)
			both = both < -0.01 ? DEFAULT_RANGE_INEQ_SEL * 0.01 : 1.0e-6;
		return Min(both / lower, 1.0);
	}
	return selectivity;
}

bool
dp_estimate_arrays(PlannerInfo *root, Node *field, double shares[3])
{
	VariableStatData variable;
	bool found = false;

	memset(shares, 0, 3 * sizeof(double));
	examine_variable(root, field, 0, &variable);
	if (dp_field_is_described(&variable) && variable.acl_ok)
	{
		double rest = 1.0 - ((Form_pg_statistic) GETSTRUCT(variable.statsTuple))->stanullfrac;

		found = add_shares(variable.statsTuple, STATISTIC_KIND_MCV, &rest, shares);
		found |= add_shares(variable.statsTuple, STATISTIC_KIND_HISTOGRAM, &rest, shares);
	}
	ReleaseVariableStats(variable);
	return found;
}

/* Adds the shares of common values, and takes them from the rest, or the rest by a histogram. */
static bool
add_shares(HeapTuple tuple, int kind, double *rest, double shares[3])
{
	AttStatsSlot slot;
	int numbers = kind == STATISTIC_KIND_MCV ? ATTSTATSSLOT_NUMBERS : 0;

	if (!get_attstatsslot(&slot, tuple, kind, InvalidOid, ATTSTATSSLOT_VALUES | numbers))
		return false;
	for (int i = 0; i < slot.nvalues; i++)
	{
		int class = dp_type_class[dp_datum_first_byte(slot.values[i])];
		double share = numbers != 0 ? slot.numbers[i] : *rest / slot.nvalues;

		shares[class < DP_CLASS_ARRAY ? 0 : class == DP_CLASS_ARRAY ? 1 : 2] += share;
	}
	for (int i = 0; i < slot.nnumbers; i++)
		*rest -= slot.numbers[i];
	free_attstatsslot(&slot);
	return true;
}
