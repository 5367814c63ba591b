/*
 * expression.c
 *		Compiling expressions, and evaluating what is not an operator: literals,
 *		field paths, variables, arrays and objects.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/names.h"
#include "bson/sqltime.h"
#include "mql/error.h"
#include "mql/expression_node.h"

struct DpExpr
{
	DpNode *root;
	int nvariables;
	bool many_paths; /* from the root: read by a finder */
};

/* A field path: the steps after the variable that it begins at. */
typedef struct FieldPath
{
	int nsteps;
	DpPathStep steps[FLEXIBLE_ARRAY_MEMBER];
} FieldPath;

/* Slots that every state has */
#define SLOT_ROOT (-1)
#define SLOT_NOW (-2)
#define SLOT_REMOVE (-3)
#define SLOT_CURRENT (-4)
#define SLOT_LET (-5) /* the node's value is the name */

static const DpValue *expr_let;

static const DpOperator *const families[] = {
	dp_operators_logic,      dp_operators_arith,    dp_operators_math, dp_operators_string,
	dp_operators_array,      dp_operators_sequence, dp_operators_set,  dp_operators_object,
	dp_operators_convert,    dp_operators_calendar, dp_operators_date, dp_operators_dateformat,
	dp_operators_accumulate, dp_operators_regex,
};

static const DpOperator **sorted_operators;
static int nsorted_operators;

static DpNode *compile_string(DpCompiler *c, const DpValue *spec);
static DpNode *compile_variable(DpCompiler *c, const char *s, uint32 len);
static DpNode *compile_object(DpCompiler *c, const DpValue *spec);
static DpNode *literal_instead(DpCompiler *c, DpNode *node, const DpValue *spec);
static DpNode *compile_array(DpCompiler *c, const DpValue *spec);
static DpNode *compile_operator(DpCompiler *c, const DpElement *element);
static DpNode *compile_list(DpCompiler *c, const DpOperator *op, const DpValue *spec);
static int count_names(const char *names);
static FieldPath *parse_field_path(DpCompiler *c, const char *s, uint32 len);
static bool literal_eval(const DpNode *node, DpExprState *state, DpValue *result);
static void let_find(const DpNode *node, DpValue *result);
static bool path_eval(const DpNode *node, DpExprState *state, DpValue *result);
static bool array_eval(const DpNode *node, DpExprState *state, DpValue *result);
static bool object_eval(const DpNode *node, DpExprState *state, DpValue *result);

/* ---------------------------------------------------------------- entry points */

DpExpr *
dp_expr_compile(const DpValue *spec, int flags, const char *where)
{
	DpExpr *e = palloc(sizeof(DpExpr));
	DpCompiler c = { .flags = flags };

	if (where != NULL)
	{
		DpWhere *w = palloc0(sizeof(DpWhere));

		w->name = pstrdup(where);
		w->namelen = strlen(where);
		c.where = w;
	}
	e->root = dp_compile(&c, spec);
	e->nvariables = c.nvariables;
	e->many_paths = c.npaths > DP_NAMES_FEW;
	return e;
}

void
dp_expr_set_let(const DpValue *let)
{
	expr_let = let;
}

void
dp_expr_state_init(DpExprState *state, const DpValue *root)
{
	state->root = *root;
	state->variables = NULL;
	state->nvariables = 0;
	state->now_known = false;
	state->shared = NULL;
}

bool
dp_expr_eval(const DpExpr *e, DpExprState *state, DpValue *result)
{
	DpValue fixed[8];
	DpFinder finder;
	bool found;

	/* what this evaluation has lives as long as it takes */
	state->finder = state->shared;
	if (e->nvariables == 0 && !e->many_paths)
		return e->root->eval(e->root, state, result);
	if (e->many_paths && state->finder == NULL && state->root.type == DP_TYPE_DOCUMENT)
	{
		dp_finder_init(&finder, &state->root);
		state->finder = &finder;
	}
	state->variables =
		e->nvariables <= (int) lengthof(fixed) ? fixed : palloc(sizeof(DpValue) * e->nvariables);
	state->nvariables = e->nvariables;
	found = e->root->eval(e->root, state, result);
	if (state->finder != NULL && state->finder != state->shared)
		dp_finder_free(state->finder);
	state->variables = NULL;
	state->nvariables = 0;
	return found;
}

bool
dp_expr_is_true(const DpValue *v)
{
	switch (v->type)
	{
		case DP_TYPE_EOD:
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
			return false;
		case DP_TYPE_BOOL:
			return v->data[0] != 0;
		case DP_TYPE_INT32:
			return dp_get_int32(v->data) != 0;
		case DP_TYPE_INT64:
			return dp_get_int64(v->data) != 0;
		case DP_TYPE_DOUBLE:
			return dp_get_double(v->data) != 0;
		case DP_TYPE_DECIMAL128:
			return dp_decimal_is_nan(v->data) || dp_decimal_sign(v->data) != 0;
		default:
			return true;
	}
}

/* True if a container has at most so many levels, including itself. */
static bool
depth_fits(const DpValue *v, int levels)
{
	DpIter iter;
	DpValue element;

	if (levels == 0)
		return false;
	dp_iter_init_value(&iter, v);
	while (dp_iter_next_value(&iter, &element))
		if (dp_type_is_container(element.type) && !depth_fits(&element, levels - 1))
			return false;
	return true;
}

void
dp_check_value_depth(const DpValue *v)
{
	if (dp_type_is_container(v->type) && !depth_fits(v, DP_MAX_DEPTH))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document nested too deeply"),
				 errdetail("The limit is %d levels.", DP_MAX_DEPTH)));
}

/* ---------------------------------------------------------------- errors */

/* The place as text, "$cond.if.$add[1]", palloc'd. */
static char *
where_text(const DpWhere *where)
{
	StringInfoData text;
	const DpWhere *steps[2 * DP_MAX_DEPTH + 8];
	int n = 0;

	initStringInfo(&text);
	for (; where != NULL && n < (int) lengthof(steps); where = where->parent)
		steps[n++] = where;
	while (n-- > 0)
	{
		if (steps[n]->name == NULL)
			appendStringInfo(&text, "[%u]", steps[n]->position);
		else
			appendStringInfo(&text, "%s%.*s", text.len > 0 ? "." : "",
							 (int) Min(steps[n]->namelen, 200), steps[n]->name);
	}
	return text.data;
}

/* Raises the error of the two functions below. */
static void compile_report(DpCompiler *c, int sqlerrcode, const char *fmt, va_list args)
	pg_attribute_printf(3, 0) pg_attribute_noreturn();
static DpNode *node_path(DpCompiler *c, const char *path, uint32 len);
static char *where_text(const DpWhere *where);

static void
compile_report(DpCompiler *c, int sqlerrcode, const char *fmt, va_list args)
{
	char message[1024];

	vsnprintf(message, sizeof(message), fmt, args);
	if (c->where != NULL)
		ereport(ERROR, (errcode(sqlerrcode), errmsg("%s", message),
						errdetail("At \"%s\" in the specification.", where_text(c->where))));
	ereport(ERROR, (errcode(sqlerrcode), errmsg("%s", message)));
}

void
dp_compile_error(DpCompiler *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	compile_report(c, ERRCODE_INVALID_PARAMETER_VALUE, fmt, args);
}

void
dp_compile_unsupported(DpCompiler *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	compile_report(c, ERRCODE_FEATURE_NOT_SUPPORTED, fmt, args);
}

void
dp_node_error(const DpNode *node, int sqlerrcode, const char *fmt, ...)
{
	char message[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	ereport(ERROR, (errcode(sqlerrcode), errmsg("%s %s", node->op->name, message),
					errdetail("At \"%s\" in the specification.", where_text(node->where))));
}

void
dp_node_type_error(const DpNode *node, const char *expected, const DpValue *v)
{
	dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs %s, not %s", expected,
				  dp_operand_type(v));
}

const char *
dp_operand_type(const DpValue *v)
{
	return v->type == DP_TYPE_EOD ? "missing" : dp_type_name(v->type);
}

/* ---------------------------------------------------------------- compiling */

/*
 * A new node with room for nargs arguments, all absent.
 */
DpNode *
dp_node_make(DpCompiler *c, DpNodeEval eval, const DpOperator *op, int nargs)
{
	DpNode *node = palloc0(sizeof(DpNode) + sizeof(DpNode *) * nargs);

	node->eval = eval;
	node->op = op;
	node->where = c->where;
	node->nargs = nargs;
	node->args = (DpNode **) (node + 1);
	return node;
}

DpNode *
dp_node_literal(DpCompiler *c, const DpValue *value)
{
	DpNode *node = dp_node_make(c, literal_eval, NULL, 0);

	node->value = *value;
	return node;
}

bool
dp_node_is_literal(const DpNode *node, DpValue *value)
{
	if (node == NULL || node->eval != literal_eval)
		return false;
	*value = node->value;
	return true;
}

/*
 * The node for any expression.  Raises an error if it is not one.
 */
DpNode *
dp_compile(DpCompiler *c, const DpValue *spec)
{
	check_stack_depth();
	switch (spec->type)
	{
		case DP_TYPE_STRING:
			return compile_string(c, spec);
		case DP_TYPE_DOCUMENT:
			return compile_object(c, spec);
		case DP_TYPE_ARRAY:
			return compile_array(c, spec);
		default:
			return dp_node_literal(c, spec);
	}
}

DpNode *
dp_compile_field(DpCompiler *c, const DpElement *element)
{
	const DpWhere *saved = c->where;
	DpWhere *where = palloc(sizeof(DpWhere));
	DpNode *node;

	where->parent = saved;
	where->name = element->name;
	where->namelen = element->namelen;
	where->position = 0;
	c->where = where;
	node = dp_compile(c, &element->value);
	c->where = saved;
	return node;
}

DpNode *
dp_compile_position(DpCompiler *c, const DpValue *value, uint32 position)
{
	const DpWhere *saved = c->where;
	DpWhere *where = palloc(sizeof(DpWhere));
	DpNode *node;

	where->parent = saved;
	where->name = NULL;
	where->namelen = 0;
	where->position = position;
	c->where = where;
	node = dp_compile(c, value);
	c->where = saved;
	return node;
}

/*
 * A string is a field path, a variable or itself.
 */
static DpNode *
compile_string(DpCompiler *c, const DpValue *spec)
{
	const char *s = DP_STRING_DATA(spec);
	uint32 len = DP_STRING_LEN(spec);

	if (len == 0 || s[0] != '$')
		return dp_node_literal(c, spec);
	if (len > 1 && s[1] == '$')
		return compile_variable(c, s + 2, len - 2);
	return node_path(c, s + 1, len - 1);
}

/*
 * The slot of a variable, or that of the document if CURRENT was not given
 * another meaning.  Returns false if there is no such variable.
 */
static bool
scope_find(DpCompiler *c, const char *name, uint32 len, int *slot)
{
	int at = dp_names_find(&c->names, name, len);

	if (at < 0 || c->slots[at] < 0)
		return false;
	*slot = c->slots[at];
	return true;
}

/*
 * "$$name.path" without its dollars.
 */
static DpNode *
compile_variable(DpCompiler *c, const char *s, uint32 len)
{
	const char *dot = memchr(s, '.', len);
	uint32 namelen = dot ? dot - s : len;
	bool own = s[0] >= 'A' && s[0] <= 'Z'; /* MongoDB's names */
	DpValue decision;
	DpNode *node;
	int slot;

#define IS(word) (namelen == strlen(word) && memcmp(s, word, namelen) == 0)
	if (namelen == 0)
		dp_compile_error(c, "the name of a variable is empty");
	if (scope_find(c, s, namelen, &slot))
		;
	else if (IS("ROOT"))
		slot = SLOT_ROOT;
	else if (IS("CURRENT"))
		slot = c->flags & DP_EXPR_REDACT ? SLOT_CURRENT : SLOT_ROOT;
	else if ((c->flags & DP_EXPR_REDACT) && (IS("DESCEND") || IS("PRUNE") || IS("KEEP")))
	{
		/* strings, as MongoDB has them */
		(void) dp_result_string(&decision,
								IS("KEEP")    ? "keep"
								: IS("PRUNE") ? "prune"
											  : "descend",
								namelen);
		return dp_node_literal(c, &decision);
	}
	else if (IS("REMOVE"))
		slot = SLOT_REMOVE;
	else if (IS("NOW"))
	{
		if (c->flags & DP_EXPR_IMMUTABLE)
			dp_compile_unsupported(
				c, "$$NOW is not allowed here, because the result must not depend on the time");
		slot = SLOT_NOW;
	}
	else if (!own && (c->flags & DP_EXPR_LET))
		slot = SLOT_LET;
	else if (own)
		dp_compile_unsupported(c, "variable \"$$%.*s\" is not supported", (int) Min(namelen, 200),
							   s);
	else
		dp_compile_error(c, "variable \"$$%.*s\" is not defined", (int) Min(namelen, 200), s);
#undef IS

	node = dp_node_make(c, path_eval, NULL, 0);
	node->slot = slot;
	node->value.data = (const uint8 *) s;
	node->value.len = namelen;
	node->extra = parse_field_path(c, dot ? dot + 1 : NULL, dot ? len - namelen - 1 : 0);
	return node;
}

/* The node for "$a.b" without its dollar. */
static DpNode *
node_path(DpCompiler *c, const char *path, uint32 len)
{
	DpNode *node = dp_node_make(c, path_eval, NULL, 0);

	if (!scope_find(c, "CURRENT", strlen("CURRENT"), &node->slot))
		node->slot = c->flags & DP_EXPR_REDACT ? SLOT_CURRENT : SLOT_ROOT;
	if (len == 0)
		dp_compile_error(c, "a field path is empty");
	node->extra = parse_field_path(c, path, len);
	return node;
}

/*
 * The steps of a dotted path; none if s is NULL.  A number is the name of a field and never a
 * position.
 */
static FieldPath *
parse_field_path(DpCompiler *c, const char *s, uint32 len)
{
	const char *end = s ? s + len : NULL;
	int nsteps = 0;
	FieldPath *path;

	if (s != NULL)
	{
		if (memchr(s, 0, len) != NULL)
			dp_compile_error(c, "a field path holds a null character");
		nsteps = 1;
		for (uint32 i = 0; i < len; i++)
			nsteps += s[i] == '.';
	}
	if (nsteps > 200)
		dp_compile_error(c, "a field path has more than 200 parts");
	path = palloc0(offsetof(FieldPath, steps) + sizeof(DpPathStep) * nsteps);
	path->nsteps = nsteps;
	c->npaths++;
	for (int i = 0; i < nsteps; i++)
	{
		DpPathStep *step = &path->steps[i];
		const char *dot = memchr(s, '.', end - s);

		step->namelen = dot ? dot - s : end - s;
		step->name = pnstrdup(s, step->namelen);
		if (step->namelen == 0)
			dp_compile_error(c, "a part of a field path is empty");
		if (s[0] == '$')
			dp_compile_error(c, "a part of a field path begins with a dollar: \"%.*s\"",
							 (int) Min(step->namelen, 200), s);
		dp_path_step_block(step);
		s += step->namelen + 1;
	}
	return path;
}

/* Whether a name can be that of a variable of a user. */
static bool
variable_name_is_valid(const char *name, uint32 namelen)
{
	bool ok = namelen > 0 && ((name[0] >= 'a' && name[0] <= 'z') || (name[0] & 0x80) != 0);

	for (uint32 i = 1; i < namelen && ok; i++)
		ok = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
			 (name[i] >= '0' && name[i] <= '9') || name[i] == '_' || (name[i] & 0x80) != 0;
	return ok;
}

void
dp_expr_check_variable(const char *name, uint32 namelen, const char *where)
{
	DpWhere at = { .name = where, .namelen = strlen(where) };
	DpCompiler c = { .where = &at };

	if (!variable_name_is_valid(name, namelen))
		dp_compile_error(&c, "\"%.*s\" cannot be the name of a variable", (int) Min(namelen, 200),
						 name);
}

void
dp_scope_open(DpCompiler *c, DpScope *scope, const char *name, uint32 namelen)
{
	bool found;

	if (!variable_name_is_valid(name, namelen) &&
		!(namelen == 7 && memcmp(name, "CURRENT", 7) == 0))
		dp_compile_error(c, "\"%.*s\" cannot be the name of a variable", (int) Min(namelen, 200),
						 name);
	scope->parent = c->scope;
	scope->name = dp_names_add(&c->names, name, namelen, &found);
	if (!found)
	{
		c->slots = c->slots == NULL ? palloc(sizeof(int) * c->names.room)
									: repalloc_huge(c->slots, sizeof(int) * (Size) c->names.room);
		c->slots[scope->name] = -1;
	}
	scope->hidden = c->slots[scope->name];
	scope->slot = c->slots[scope->name] = c->nvariables++;
	c->scope = scope;
}

void
dp_scopes_close(DpCompiler *c, const DpScope *saved)
{
	for (; c->scope != saved; c->scope = c->scope->parent)
		c->slots[c->scope->name] = c->scope->hidden;
}

/* True if a node represents the bytes of the specification unchanged. */
static bool
node_is_verbatim(const DpNode *node, const DpValue *spec)
{
	return node->eval == literal_eval && node->value.type == spec->type &&
		   node->value.data == spec->data;
}

/*
 * A document is an operator with its arguments, or an object whose fields are
 * expressions.
 */
static DpNode *
compile_object(DpCompiler *c, const DpValue *spec)
{
	DpIter iter;
	DpElement element;
	DpNode *node;
	uint32 n = dp_array_count(spec->data, spec->len);
	bool verbatim = true;
	DpNames names = { 0 };

	dp_iter_init_value(&iter, spec);
	if (!dp_iter_next(&iter, &element))
		return dp_node_literal(c, spec);
	if (element.name[0] == '$')
	{
		if (n != 1)
			dp_compile_error(c, "an operator must be the only field of its document, which has %u",
							 n);
		return compile_operator(c, &element);
	}

	node = dp_node_make(c, object_eval, NULL, n);
	for (uint32 i = 0; i < n; i++)
	{
		bool twice;

		if (element.namelen == 0)
			dp_compile_error(c, "the name of a field is empty");
		if (element.name[0] == '$')
			dp_compile_error(
				c, "an operator must be the only field of its document, but \"%.*s\" is not",
				(int) Min(element.namelen, 200), element.name);
		if (memchr(element.name, '.', element.namelen) != NULL)
			dp_compile_error(c, "the name of a field in an object cannot hold a dot: \"%.*s\"",
							 (int) Min(element.namelen, 200), element.name);
		(void) dp_names_add(&names, element.name, element.namelen, &twice);
		if (twice)
			dp_compile_error(c, "the field \"%.*s\" is given twice",
							 (int) Min(element.namelen, 200), element.name);
		node->args[i] = dp_compile_field(c, &element);
		verbatim = verbatim && node_is_verbatim(node->args[i], &element.value);
		dp_iter_next(&iter, &element);
	}
	node->extra = names.names;
	if (verbatim)
	{
		dp_names_free(&names);
		return literal_instead(c, node, spec);
	}
	if (names.slots != NULL)
		pfree(names.slots);
	return node;
}

/*
 * A literal in the place of a node whose arguments are literals all.
 */
static DpNode *
literal_instead(DpCompiler *c, DpNode *node, const DpValue *spec)
{
	for (int i = 0; i < node->nargs; i++)
	{
		pfree(unconstify(DpWhere *, node->args[i]->where));
		pfree(node->args[i]);
	}
	pfree(node);
	return dp_node_literal(c, spec);
}

/*
 * An array is an array of expressions.
 */
static DpNode *
compile_array(DpCompiler *c, const DpValue *spec)
{
	DpIter iter;
	DpValue value;
	uint32 n = dp_array_count(spec->data, spec->len);
	DpNode *node = dp_node_make(c, array_eval, NULL, n);
	bool verbatim = true;

	dp_iter_init_value(&iter, spec);
	for (uint32 i = 0; dp_iter_next_value(&iter, &value); i++)
	{
		node->args[i] = dp_compile_position(c, &value, i);
		verbatim = verbatim && node_is_verbatim(node->args[i], &value);
	}
	return verbatim ? literal_instead(c, node, spec) : node;
}

/* For qsort and bsearch over the tables' rows. */
static int
operator_compare(const void *a, const void *b)
{
	return strcmp((*(const DpOperator *const *) a)->name, (*(const DpOperator *const *) b)->name);
}

/*
 * The row of an operator, or NULL.
 */
static const DpOperator *
operator_find(const char *name)
{
	DpOperator key = { .name = name };
	const DpOperator *keyp = &key;
	const DpOperator **found;

	if (sorted_operators == NULL)
	{
		const DpOperator **all;
		int n = 0;

		for (int f = 0; f < (int) lengthof(families); f++)
			for (const DpOperator *op = families[f]; op->name != NULL; op++)
				n++;
		all = MemoryContextAlloc(TopMemoryContext, sizeof(DpOperator *) * n);
		n = 0;
		for (int f = 0; f < (int) lengthof(families); f++)
			for (const DpOperator *op = families[f]; op->name != NULL; op++)
				all[n++] = op;
		qsort(all, n, sizeof(DpOperator *), operator_compare);
		nsorted_operators = n;
		sorted_operators = all;
	}
	found =
		bsearch(&keyp, sorted_operators, nsorted_operators, sizeof(DpOperator *), operator_compare);
	return found ? *found : NULL;
}

/*
 * {"$name": arguments}
 */
static DpNode *
compile_operator(DpCompiler *c, const DpElement *element)
{
	const DpWhere *saved = c->where;
	DpWhere *where = palloc(sizeof(DpWhere));
	const DpOperator *op = operator_find(element->name);
	DpNode *node;

	where->parent = saved;
	where->name = element->name;
	where->namelen = element->namelen;
	where->position = 0;
	c->where = where;
	if (op == NULL)
	{
		DpNearest nearest = { element->name, element->namelen };
		const char *hint = dp_elsewhere_hint(element->name);

		for (int i = 0; i < nsorted_operators; i++)
			dp_nearest_try(&nearest, sorted_operators[i]->name);
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("expression operator \"%.*s\" is not supported",
							   (int) Min(element->namelen, 200), element->name),
						errdetail("At \"%s\" in the specification.", where_text(where)),
						hint != NULL ? errhint("%s", hint) : dp_nearest_hint(&nearest)));
	}
	if (op->compile)
		node = op->compile(c, op, &element->value);
	else if (op->names && (op->max == 0 || dp_is_arguments(&element->value)))
		node = dp_compile_named(c, op, op->names, &element->value);
	else
		node = compile_list(c, op, &element->value);
	if (op->prepare)
		op->prepare(c, node);
	c->where = saved;
	return node;
}

/*
 * Arguments that are a list; one of them may stand alone.
 */
static DpNode *
compile_list(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	bool is_list = spec->type == DP_TYPE_ARRAY;
	uint32 n = is_list ? dp_array_count(spec->data, spec->len) : 1;
	DpNode *node;

	if (n < (uint32) op->min || (op->max >= 0 && n > (uint32) op->max))
	{
		if (op->max < 0)
			dp_compile_error(c, "%s needs at least %d arguments, not %u", op->name, op->min, n);
		if (op->min != op->max)
			dp_compile_error(c, "%s needs %d to %d arguments, not %u", op->name, op->min, op->max,
							 n);
		dp_compile_error(c, "%s needs %d argument%s, not %u", op->name, op->min,
						 op->min == 1 ? "" : "s", n);
	}
	/* arguments that are not given are NULL */
	node = dp_node_make(c, op->eval, op,
						Max(n, (uint32) (op->names ? count_names(op->names) : Max(op->max, 0))));
	node->nargs = n;
	if (!is_list)
		node->args[0] = dp_compile(c, spec);
	else
	{
		DpIter iter;
		DpValue value;

		dp_iter_init_value(&iter, spec);
		for (uint32 i = 0; dp_iter_next_value(&iter, &value); i++)
			node->args[i] = dp_compile_position(c, &value, i);
	}
	return node;
}

bool
dp_is_arguments(const DpValue *spec)
{
	DpIter iter;
	DpElement first;

	if (spec->type != DP_TYPE_DOCUMENT)
		return false;
	dp_iter_init_value(&iter, spec);
	return !dp_iter_next(&iter, &first) || first.name[0] != '$';
}

static int
count_names(const char *names)
{
	int n = 1;

	for (; *names != '\0'; names++)
		n += *names == ' ';
	return n;
}

int
dp_compile_arguments(DpCompiler *c, const char *what, const char *names, const DpValue *spec,
					 DpElement *elements)
{
	char *mistake;

	if (spec->type != DP_TYPE_DOCUMENT)
		dp_compile_error(c, "%s needs a document with its arguments, not %s", what,
						 dp_type_name(spec->type));
	mistake = dp_read_named(spec, what, "argument", names, elements);
	if (mistake != NULL)
		dp_compile_error(c, "%s", mistake);
	return count_names(names);
}

DpNode *
dp_compile_named(DpCompiler *c, const DpOperator *op, const char *names, const DpValue *spec)
{
	DpElement elements[DP_MOST_NAMED];
	int n = dp_compile_arguments(c, op->name, names, spec, elements);
	DpNode *node = dp_node_make(c, op->eval, op, n);

	for (int i = 0; i < n; i++)
		if (elements[i].name != NULL)
			node->args[i] = dp_compile_field(c, &elements[i]);
	return node;
}

/* ---------------------------------------------------------------- evaluating */

static bool
literal_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	*result = node->value;
	return node->value.type != DP_TYPE_EOD;
}

/* Appends the values at the steps from step on of each document in the array. */
static void
path_through_array(DpBuilder *b, const FieldPath *path, int step, const DpValue *array)
{
	DpIter iter;
	DpValue element;

	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &element))
	{
		DpValue value = element;
		bool found = element.type == DP_TYPE_DOCUMENT;

		for (int i = step; i < path->nsteps && found; i++)
		{
			const uint8 *at;

			if (value.type == DP_TYPE_ARRAY)
			{
				check_stack_depth();
				dp_builder_begin_array_field(b, NULL, 0);
				path_through_array(b, path, i, &value);
				dp_builder_end(b);
				break;
			}
			found = value.type == DP_TYPE_DOCUMENT &&
					dp_step_find(&value, &path->steps[i], &at, &value);
			if (found && i == path->nsteps - 1)
				dp_builder_append_value(b, NULL, 0, &value);
		}
	}
}

/* The value of a variable from outside; type DP_TYPE_EOD: missing. */
static void
let_find(const DpNode *node, DpValue *result)
{
	if (expr_let == NULL ||
		!dp_document_find(expr_let->data, expr_let->len, (const char *) node->value.data,
						  node->value.len, result))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("variable \"$$%.*s\" is not defined",
							   (int) Min(node->value.len, 200), (const char *) node->value.data)));
	if (result->type == DP_TYPE_UNDEFINED)
		result->type = DP_TYPE_EOD;
}

/*
 * A variable or the document, and a path from there.  Of an array on the way
 * the path is followed in each element that is a document.
 */
static bool
path_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const FieldPath *path = node->extra;

	if (node->slot == SLOT_ROOT)
		*result = state->root;
	else if (node->slot >= 0)
		*result = state->variables[node->slot];
	else if (node->slot == SLOT_NOW)
	{
		if (!state->now_known)
		{
			bool rest;
			int infinite;

			state->now =
				dp_time_of_timestamptz(GetCurrentTransactionStartTimestamp(), &rest, &infinite);
			state->now_known = true;
		}
		dp_result_date(result, state->now);
	}
	else if (node->slot == SLOT_CURRENT)
		*result = state->current;
	else if (node->slot == SLOT_LET)
		let_find(node, result);
	else
		result->type = DP_TYPE_EOD;

	for (int i = 0; i < path->nsteps; i++)
	{
		const uint8 *at;

		if (result->type == DP_TYPE_ARRAY)
		{
			DpBuilder b;

			dp_result_builder(&b, 0);
			dp_builder_begin_array(&b);
			path_through_array(&b, path, i, result);
			dp_builder_end(&b);
			return dp_result_built(result, &b, DP_TYPE_ARRAY);
		}
		if (i == 0 && node->slot == SLOT_ROOT && state->finder != NULL
				? !dp_finder_find(state->finder, path->steps[0].name, path->steps[0].namelen,
								  result)
				: result->type != DP_TYPE_DOCUMENT ||
					  !dp_step_find(result, &path->steps[i], &at, result))
		{
			result->type = DP_TYPE_EOD;
			return false;
		}
	}
	return result->type != DP_TYPE_EOD;
}

/*
 * An array of expressions; what is missing becomes null.
 */
static bool
array_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpBuilder b;

	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	for (int i = 0; i < node->nargs; i++)
	{
		DpValue v;

		if (dp_arg(node, i, state, &v))
			dp_builder_append_value(&b, NULL, 0, &v);
		else
			dp_builder_append_null(&b, NULL, 0);
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * An object whose fields are expressions; what is missing is left out.
 */
static bool
object_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const DpName *names = node->extra;
	DpBuilder b;

	dp_result_builder(&b, 0);
	dp_builder_begin_document(&b);
	for (int i = 0; i < node->nargs; i++)
	{
		DpValue v;

		if (dp_arg(node, i, state, &v))
			dp_builder_append_value(&b, names[i].name, names[i].len, &v);
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_DOCUMENT);
}

int32
dp_int_operand(const DpNode *node, const DpValue *v, const char *what)
{
	int64 n;

	if (!dp_value_to_int64(v, &n) || n < PG_INT32_MIN || n > PG_INT32_MAX)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  "needs a whole number as its %s, not %s", what,
					  dp_type_is_number(v->type) ? "another number" : dp_operand_type(v));
	return (int32) n;
}

int32
dp_int_arg(const DpNode *node, int i, DpExprState *state, const char *what)
{
	DpValue v;

	dp_arg(node, i, state, &v);
	return dp_int_operand(node, &v, what);
}
