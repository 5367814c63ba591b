/*
 * text_condition.c
 *		Conditions on the text of a field, such as doc ->> 'sku' = 'x'.
 *
 * PostgreSQL finds neither an index on (doc -> 'sku') for such a condition nor statistics about it.
 * Before it looks at the conditions on a table, a hook adds one that follows,
 *
 *		doc ->> 'sku' = 'x'			doc -> 'sku' = ANY (_text_values('x'))
 *		doc ->> 'sku' IN (..)		the same for all texts
 *		doc ->> 'sku' LIKE 'x%'		doc -> 'sku' is a string from 'x' to 'y', or no string
 *
 * where _text_values() has every value whose text is 'x', up to equality: strings, and numbers,
 * dates and others that are written so.  The condition itself stays and decides, with an operator
 * of the same function that estimates nothing, because both estimates would be multiplied.  If
 * there is an index on the text, statistics of it, or a partition key, PostgreSQL does better by
 * itself.
 *
 * PostgreSQL assumes ten elements in an array that it does not know.  Nearly every text has one
 * value, so costs and estimates for parameters are those of one each: otherwise a prepared
 * statement would be planned each time.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/restrictinfo.h"
#include "parser/parse_func.h"
#include "rewrite/rewriteManip.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/number.h"
#include "bson/text.h"
#include "index/text_condition.h"

static get_relation_info_hook_type previous_hook = NULL;

static void relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel);
static void add_to_tree(Node *node, Oid relid, RelOptInfo *rel);
static List *add_to_list(List *clauses, Oid relid, RelOptInfo *rel);
static Node *value_condition(Node *clause, Oid relid, RelOptInfo *rel);
static OpExpr *text_field(Node *node, RelOptInfo *rel);
static Expr *value_field(OpExpr *field);
static Oid values_function(Oid type);
static Expr *counted_values(Expr *clause);
static Expr *unknown_value(void);
static void
text_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost,
		  Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages);
static bool is_served(Oid relid, RelOptInfo *rel, OpExpr *field, bool like, Oid collation);
static bool is_column(Relation index, Node *field, bool like, Oid collation);
static bool orders_bytes(Oid collation);
static bool contains(Node *node, void *field);
static Node *prefix_condition(Expr *field, Const *pattern);
static bool may_be_other(const char *prefix);
static struct varlena *string_value(const char *s);
static Oid own_operator(const char *name);
static ArrayBuildState *add_values(ArrayBuildState *values, const char *s, Size len);
static ArrayBuildState *add_value(ArrayBuildState *values, const DpValue *value);
static ArrayBuildState *
add_parsed(ArrayBuildState *values, const char *before, const char *s, const char *after);

void
dp_text_conditions_init(void)
{
	previous_hook = get_relation_info_hook;
	get_relation_info_hook = relation_info;
}

static void
relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	if (previous_hook != NULL)
		previous_hook(root, relid, inhparent, rel);
	/* CREATE INDEX plans without a query */
	if (relid >= FirstNormalObjectId && root->parse->jointree != NULL)
		add_to_tree((Node *) root->parse->jointree, relid, rel);
}

static void
add_to_tree(Node *node, Oid relid, RelOptInfo *rel)
{
	if (IsA(node, FromExpr))
	{
		FromExpr *from = (FromExpr *) node;
		ListCell *lc;

		foreach(lc, from->fromlist)
			add_to_tree(lfirst(lc), relid, rel);
		from->quals = (Node *) add_to_list((List *) from->quals, relid, rel);
	}
	else if (IsA(node, JoinExpr))
	{
		JoinExpr *join = (JoinExpr *) node;

		add_to_tree(join->larg, relid, rel);
		add_to_tree(join->rarg, relid, rel);
		join->quals = (Node *) add_to_list((List *) join->quals, relid, rel);
	}
}

/* The clauses, between which is AND, with those that are added for the table. */
static List *
add_to_list(List *clauses, Oid relid, RelOptInfo *rel)
{
	List *added = NIL;
	ListCell *lc;

	if (clauses == NIL || !IsA(clauses, List))
		return clauses;
	foreach(lc, clauses)
	{
		Node *condition = value_condition(lfirst(lc), relid, rel);

		added = list_concat(added, make_ands_implicit((Expr *) condition));
	}
	return list_concat(clauses, added);
}

/* The condition on a field that follows from one on its text, which is marked; or NULL. */
static Node *
value_condition(Node *clause, Oid relid, RelOptInfo *rel)
{
	Oid *opno;
	List *args;
	Oid collation;
	OpExpr *field;
	Node *other;
	Expr *value;
	Node *condition;

	if (IsA(clause, OpExpr))
	{
		opno = &((OpExpr *) clause)->opno;
		args = ((OpExpr *) clause)->args;
	}
	else if (IsA(clause, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) clause)->useOr)
	{
		opno = &((ScalarArrayOpExpr *) clause)->opno;
		args = ((ScalarArrayOpExpr *) clause)->args;
	}
	else
		return NULL;
	collation = exprInputCollation(clause);
	if (*opno == TextEqualOperator)
	{
		if (!get_collation_isdeterministic(collation))
			return NULL;
	}
	else if (*opno != OID_TEXT_LIKE_OP || !IsA(clause, OpExpr))
		return NULL;

	field = text_field(linitial(args), rel);
	other = lsecond(args);
	if (field == NULL && *opno == TextEqualOperator && IsA(clause, OpExpr))
	{
		field = text_field(lsecond(args), rel);
		other = linitial(args);
	}
	if (field == NULL || contain_var_clause(other) || contain_volatile_functions(other) ||
		contain_subplans(other) ||
		is_served(relid, rel, field, *opno == OID_TEXT_LIKE_OP, collation))
		return NULL;

	value = value_field(field);
	if (*opno == OID_TEXT_LIKE_OP)
	{
		condition = !IsA(other, Const) || ((Const *) other)->constisnull
						? NULL
						: prefix_condition(value, (Const *) other);
		if (condition != NULL)
			*opno = OpernameGetOprid(list_make2(makeString("docpatterns"), makeString("~~")),
									 TEXTOID, TEXTOID);
		return condition;
	}
	else
	{
		const DpTypes *types = dp_types();
		Oid values = values_function(exprType(other));
		Node *array =
			eval_const_expressions(NULL, (Node *) makeFuncExpr(values, types->bson_value_array,
															   list_make1(copyObject(other)),
															   InvalidOid, exprCollation(other),
															   COERCE_EXPLICIT_CALL));
		ScalarArrayOpExpr *any = makeNode(ScalarArrayOpExpr);

		any->opno = dp_value_operator("=");
		any->opfuncid = get_opcode(any->opno);
		any->useOr = true;
		any->args = list_make2(value, array);
		any->location = -1;
		condition = (Node *) any;

		/* one value: as an equality it fixes a column of an index, and sorts */
		if (IsA(array, Const) && !((Const *) array)->constisnull)
		{
			Datum *elements;
			int n;

			deconstruct_array(DatumGetArrayTypeP(((Const *) array)->constvalue), types->bson_value,
							  -1, false, TYPALIGN_INT, &elements, NULL, &n);
			if (n == 1)
				condition = (Node *) dp_field_compare(value, "=", (struct varlena *) elements[0]);
		}
		else if (counted_values((Expr *) any) != NULL)
		{
			ListCell *lc;

			foreach(lc, rel->indexlist)
				if (((IndexOptInfo *) lfirst(lc))->amcostestimate == btcostestimate)
					((IndexOptInfo *) lfirst(lc))->amcostestimate = text_cost;
		}
	}
	/* PostgreSQL's operator with another estimator */
	if (IsA(clause, OpExpr))
		((OpExpr *) clause)->args = list_make2(field, other);
	*opno =
		OpernameGetOprid(list_make2(makeString("docpatterns"), makeString("=")), TEXTOID, TEXTOID);
	return condition;
}

/* The expression if it is column ->> 'path' of the relation, else NULL. */
static OpExpr *
text_field(Node *node, RelOptInfo *rel)
{
	OpExpr *field = (OpExpr *) node;

	if (!IsA(node, OpExpr) || field->opresulttype != TEXTOID || list_length(field->args) != 2 ||
		field->opno < FirstNormalObjectId || !IsA(linitial(field->args), Var) ||
		((Var *) linitial(field->args))->varno != rel->relid ||
		((Var *) linitial(field->args))->varlevelsup != 0 || !IsA(lsecond(field->args), Const) ||
		((Const *) lsecond(field->args))->consttype != TEXTOID ||
		((Const *) lsecond(field->args))->constisnull ||
		strcmp(get_opname(field->opno), "->>") != 0 || field->opno != own_operator("->>"))
		return NULL;
	return field;
}

/* column -> 'path' for column ->> 'path' */
static Expr *
value_field(OpExpr *field)
{
	Expr *value = make_opclause(own_operator("->"), dp_types()->bson_value, false,
								copyObject(linitial(field->args)), copyObject(lsecond(field->args)),
								InvalidOid, field->inputcollid);

	set_opfuncid((OpExpr *) value);
	return value;
}

/* _text_values() of a text or of an array. */
static Oid
values_function(Oid type)
{
	return LookupFuncName(list_make2(makeString("docpatterns"), makeString("_text_values")), 1,
						  &type, false);
}

/*
 * The condition with an array of as many unknown values as texts, if it is = ANY (_text_values(..))
 * and they can be counted, else NULL.
 */
static Expr *
counted_values(Expr *clause)
{
	ScalarArrayOpExpr *any = (ScalarArrayOpExpr *) clause;
	ScalarArrayOpExpr *counted;
	ArrayExpr *array;
	FuncExpr *values;
	ArrayExpr *texts;
	int n = 1;

	if (!IsA(clause, ScalarArrayOpExpr) || !IsA(lsecond(any->args), FuncExpr))
		return NULL;
	values = lsecond(any->args);
	texts = linitial(values->args);
	if (values->funcid == values_function(TEXTARRAYOID) && IsA(texts, ArrayExpr) &&
		!texts->multidims)
		n = list_length(texts->elements);
	else if (values->funcid != values_function(TEXTOID))
		return NULL;
	array = makeNode(ArrayExpr);
	array->array_typeid = dp_types()->bson_value_array;
	array->element_typeid = dp_types()->bson_value;
	for (int i = 0; i < n; i++)
		array->elements = lappend(array->elements, unknown_value());
	counted = makeNode(ScalarArrayOpExpr);
	*counted = *any;
	counted->args = list_make2(linitial(any->args), array);
	return (Expr *) counted;
}

static Expr *
unknown_value(void)
{
	CaseTestExpr *value = makeNode(CaseTestExpr);

	value->typeId = dp_types()->bson_value;
	value->typeMod = -1;
	return (Expr *) value;
}

/* The costs of a B-tree's scan, where texts that are not known have one value each. */
static void
text_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost,
		  Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages)
{
	IndexPath counted = *path;
	ListCell *lc;

	counted.indexclauses = NIL;
	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst(lc);
		Expr *condition = counted_values(linitial_node(RestrictInfo, clause->indexquals)->clause);

		if (condition != NULL)
		{
			IndexClause *copy = makeNode(IndexClause);

			*copy = *clause;
			copy->indexquals = list_make1(make_simple_restrictinfo(root, condition));
			clause = copy;
		}
		counted.indexclauses = lappend(counted.indexclauses, clause);
	}
	btcostestimate(root, &counted, loop_count, startup_cost, total_cost, selectivity, correlation,
				   pages);
}

/* An operator of a bson and a text. */
static Oid
own_operator(const char *name)
{
	return OpernameGetOprid(list_make2(makeString(get_namespace_name(dp_types()->schema)),
									   makeString(pstrdup(name))),
							dp_types()->bson, TEXTOID);
}

Oid
dp_value_operator(const char *name)
{
	const DpTypes *types = dp_types();

	return OpernameGetOprid(list_make2(makeString(get_namespace_name(types->schema)),
									   makeString(pstrdup(name))),
							types->bson_value, types->bson_value);
}

/*
 * Whether PostgreSQL knows the expression: from an index for its condition, statistics or as a
 * partition key.
 */
static bool
is_served(Oid relid, RelOptInfo *rel, OpExpr *field, bool like, Oid collation)
{
	Relation table;
	bool served = false;
	OpExpr *plain = copyObject(field);
	ListCell *lc;

	foreach(lc, rel->statlist)
		if (list_member(((StatisticExtInfo *) lfirst(lc))->exprs, field))
			return true;
	ChangeVarNodes((Node *) plain, rel->relid, 1, 0);
	table = table_open(relid, NoLock);
	if (table->rd_rel->relkind == RELKIND_FOREIGN_TABLE ||
		(table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		 contains((Node *) RelationGetPartitionKey(table)->partexprs, plain)))
		served = true;
	foreach(lc, served ? NIL : RelationGetIndexList(table))
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);

		served |= is_column(index, (Node *) plain, like, collation) ||
				  contains((Node *) RelationGetIndexPredicate(index), plain);
		index_close(index, NoLock);
	}
	table_close(table, NoLock);
	return served;
}

/* Whether an index has the field, and is in an order for = or LIKE if it is a B-tree. */
static bool
is_column(Relation index, Node *field, bool like, Oid collation)
{
	List *expressions = RelationGetIndexExpressions(index);
	ListCell *lc = list_head(expressions);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid order = index->rd_indcollation[i];

		if (index->rd_index->indkey.values[i] != 0)
			continue;
		if (equal(lfirst(lc), field) &&
			(index->rd_rel->relam != BTREE_AM_OID ||
			 (like ? index->rd_opfamily[i] == TEXT_PATTERN_BTREE_FAM_OID || orders_bytes(order)
				   : order == collation)))
			return true;
		lc = lnext(expressions, lc);
	}
	return false;
}

/* Whether a collation is C.  (utils/pg_locale.h, which knows, needs the headers of ICU.) */
static bool
orders_bytes(Oid collation)
{
	HeapTuple tuple;
	char *name;
	char provider;
	bool isnull;

	if (collation != DEFAULT_COLLATION_OID)
		return collation == C_COLLATION_OID;
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
	name = TextDatumGetCString(SysCacheGetAttr(DATABASEOID, tuple, Anum_pg_database_datcollate,
											   &isnull));
	ReleaseSysCache(tuple);
	/* all of the builtin provider's order bytes */
	return provider == 'b' ||
		   (provider == 'c' && (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0));
}

static bool
contains(Node *node, void *field)
{
	if (node == NULL)
		return false;
	return equal(node, field) || expression_tree_walker(node, contains, field);
}

/* ---------------------------------------------------------------- LIKE */

/*
 * The condition for a pattern that begins with a fixed text: the field is a string that begins with
 * it, or no string; NULL if it begins with a wildcard.
 */
static Node *
prefix_condition(Expr *field, Const *pattern)
{
	char *s = TextDatumGetCString(pattern->constvalue);
	StringInfoData prefix;
	StringInfoData limit;
	struct varlena *last_number;
	Expr *range;

	initStringInfo(&prefix);
	for (; *s != '\0' && *s != '%' && *s != '_'; s++)
	{
		if (*s == '\\' && *++s == '\0')
			return NULL; /* an error, for PostgreSQL */
		appendStringInfoChar(&prefix, *s);
	}
	if (prefix.len == 0)
		return NULL;

	/* strings are ordered by their bytes, and characters likewise; numbers come before them */
	initStringInfo(&limit);
	for (int len = prefix.len; len > 0;)
	{
		int last = len - 1;
		pg_wchar code;
		unsigned char next[MAX_MULTIBYTE_CHAR_LEN + 1] = { 0 };

		while (last > 0 && ((unsigned char) prefix.data[last] & 0xC0) == 0x80)
			last--;
		code = utf8_to_unicode((unsigned char *) prefix.data + last) + 1;
		len = last;
		if (code > 0x10FFFF)
			continue;
		unicode_to_utf8(code == 0xD800 ? 0xE000 : code, next);
		appendBinaryStringInfo(&limit, prefix.data, len);
		appendStringInfoString(&limit, (char *) next);
		break;
	}
	if (limit.len == 0)
		return NULL;
	range = make_andclause(list_make2(dp_field_compare(field, ">=", string_value(prefix.data)),
									  dp_field_compare(field, "<", string_value(limit.data))));
	if (!may_be_other(prefix.data))
		return (Node *) range;
	last_number = dp_datum_to_value(Float8GetDatum(get_float8_infinity()), FLOAT8OID);
	return (Node *)
		make_orclause(list_make3(range, dp_field_compare(field, "<=", last_number),
								 dp_field_compare(field, ">=", dp_text_to_value("{}", 2, NULL))));
}

/* Whether the text of a value that is no string can begin so: see dp_value_as_text(). */
static bool
may_be_other(const char *prefix)
{
	static const char *const words[] = { "true", "false", "NaN", "Infinity", "-Infinity" };
	Size len = strlen(prefix);

	for (int i = 0; i < lengthof(words); i++)
		if (strncmp(words[i], prefix, len) == 0)
			return true;
	return prefix[0] == '{' || prefix[0] == '[' || strspn(prefix, "0123456789+-.:eETZ") == len ||
		   strspn(prefix, "0123456789abcdef-") == len;
}

static struct varlena *
string_value(const char *s)
{
	return dp_datum_to_value(CStringGetTextDatum(s), TEXTOID);
}

Expr *
dp_field_compare(Expr *field, const char *op, struct varlena *value)
{
	const DpTypes *types = dp_types();
	Expr *clause = make_opclause(dp_value_operator(op), BOOLOID, false, copyObject(field),
								 (Expr *) makeConst(types->bson_value, -1, InvalidOid, -1,
													PointerGetDatum(value), false, false),
								 InvalidOid, InvalidOid);

	set_opfuncid((OpExpr *) clause);
	return clause;
}

/* ---------------------------------------------------------------- values of a text */

/*
 * _text_values(text) -> bson_value[], _text_values(text[]) -> bson_value[]: values such that each
 * value that ->> shows as one of the texts equals one of them
 */
DP_FUNCTION(dp_text_values);
Datum
dp_text_values(PG_FUNCTION_ARGS)
{
	ArrayBuildState *values = initArrayResult(dp_types()->bson_value, CurrentMemoryContext, false);
	text *t = PG_GETARG_TEXT_PP(0);

	values = add_values(values, VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));
	PG_RETURN_DATUM(makeArrayResult(values, CurrentMemoryContext));
}

DP_FUNCTION(dp_texts_values);
Datum
dp_texts_values(PG_FUNCTION_ARGS)
{
	ArrayBuildState *values = initArrayResult(dp_types()->bson_value, CurrentMemoryContext, false);
	Datum *texts;
	bool *nulls;
	int n;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls,
					  &n);
	for (int i = 0; i < n; i++)
		if (!nulls[i])
		{
			text *t = DatumGetTextPP(texts[i]);

			values = add_values(values, VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));
		}
	PG_RETURN_DATUM(makeArrayResult(values, CurrentMemoryContext));
}

/* Adds the values of a text, as dp_value_as_text() writes them. */
static ArrayBuildState *
add_values(ArrayBuildState *values, const char *text, Size len)
{
	char *s = pnstrdup(text, len);
	uint8 bytes[DP_DECIMAL128_SIZE];
	char *end;
	double number;
	struct varlena *value = NULL;
	DpValue same;

	values = accumArrayResult(values, PointerGetDatum(string_value(s)), false,
							  dp_types()->bson_value, CurrentMemoryContext);
	if (len == 0)
		return values;
	if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0)
	{
		DpValue truth = { .type = DP_TYPE_BOOL, .data = bytes, .len = 1 };

		bytes[0] = s[0] == 't';
		return add_value(values, &truth);
	}
	if (s[0] == '{' || s[0] == '[')
		return add_parsed(values, "", s, "");
	if (len == DP_OBJECTID_SIZE * 2 && strspn(s, "0123456789abcdef") == len)
		values = add_parsed(values, "{\"$oid\": \"", s, "\"}");
	else if (len == 36 && strspn(s, "0123456789abcdef-") == len)
		values = add_parsed(values, "{\"$uuid\": \"", s, "\"}");
	else if (s[len - 1] == 'Z' && strspn(s, "0123456789+-:.TZ") == len)
		values = add_parsed(values, "ISODate(\"", s, "\")");
	if (strchr("+-0123456789IN", s[0]) == NULL)
		return values;
	number = strtod(s, &end);
	if (*end == '\0')
	{
		value = dp_datum_to_value(Float8GetDatum(number), FLOAT8OID);
		values = accumArrayResult(values, PointerGetDatum(value), false, dp_types()->bson_value,
								  CurrentMemoryContext);
	}
	if (dp_decimal128_from_text(s, len, bytes))
	{
		DpValue decimal = { .type = DP_TYPE_DECIMAL128, .data = bytes, .len = DP_DECIMAL128_SIZE };

		if (value == NULL)
			return add_value(values, &decimal);
		same = dp_value_of_varlena(value);
		if (dp_value_compare(&decimal, &same) != 0)
			values = add_value(values, &decimal);
	}
	return values;
}

static ArrayBuildState *
add_value(ArrayBuildState *values, const DpValue *value)
{
	return accumArrayResult(values, PointerGetDatum(dp_value_to_varlena(value)), false,
							dp_types()->bson_value, CurrentMemoryContext);
}

/* Adds the value of Extended JSON, if it is that. */
static ArrayBuildState *
add_parsed(ArrayBuildState *values, const char *before, const char *s, const char *after)
{
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *volatile value = NULL;
	char *json = psprintf("%s%s%s", before, s, after);

	PG_TRY();
	{
		value = dp_cstring_to_value(json, strlen(json), NULL);
	}
	PG_CATCH();
	{
		/* parsing holds no resources but memory */
		MemoryContextSwitchTo(caller);
		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION &&
			ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
			PG_RE_THROW();
		FlushErrorState();
	}
	PG_END_TRY();
	return value == NULL ? values
						 : accumArrayResult(values, PointerGetDatum(value), false,
											dp_types()->bson_value, CurrentMemoryContext);
}

/* ---------------------------------------------------------------- functions for the planner */

/*
 * _text_sel(internal, oid, internal, int4) -> float8: what the condition on the field leaves, all
 * of it meets; but of ten assumed values that the planner counts for a parameter, one stays
 */
DP_FUNCTION(dp_text_sel);
Datum
dp_text_sel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List *args = (List *) PG_GETARG_POINTER(2);
	OpExpr *field = linitial(args);
	Node *other = estimate_expression_value(root, lsecond(args));
	double one;

	/* elements of an array are CaseTestExpr */
	if (IsA(other, Const) || IsA(other, CaseTestExpr) || !IsA(field, OpExpr) ||
		field->opno != own_operator("->>"))
		PG_RETURN_FLOAT8(1.0);
	one = restriction_selectivity(root, dp_value_operator("="),
								  list_make2(value_field(field), unknown_value()), InvalidOid,
								  PG_GETARG_INT32(3));
	PG_RETURN_FLOAT8(one > 0 ? one / (1 - pow(1 - one, 10)) : 1.0);
}

/*
 * _field_support(internal) -> internal: nothing; the planner calls it before it looks at a table,
 * and so the library is loaded with its hooks
 */
DP_FUNCTION(dp_field_support);
Datum
dp_field_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}
