/*
 * filter_compile.c
 *		From a filter, a document, to the nodes that filter.c runs: the trees
 *		($and, $or, ...), fields and paths, and which operator is compiled how.
 *		filter_operand.c reads the operators' arguments.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "mql/filter_compile.h"

#define MOST_SPARE 63 /* of 64 bytes each, the allocation size of palloc() */

typedef DpFilterNode *(*TreeParser)(DpFilterCompiler *c, DpFilterOp op, const DpElement *field,
									const DpLocation *location);

static DpFilterNode *
parse_document(DpFilterCompiler *c, const DpValue *spec, const DpLocation *location);
static void parse_field(DpFilterCompiler *c, DpFilterNodes *nodes, const DpElement *field,
						const DpLocation *location);
static DpFilterPath *make_path(DpFilterCompiler *c, DpFilterNodes *nodes, const DpElement *field,
							   const DpLocation *location);
static const char *
named_rest(DpFilterCompiler *c, const DpElement *field, const DpLocation *location, uint32 *len);
static DpFilterNode *
parse_tree(DpFilterCompiler *c, DpFilterOp op, const DpElement *field, const DpLocation *location);
static DpFilterNode *parse_schema(DpFilterCompiler *c, DpFilterOp op, const DpElement *field,
								  const DpLocation *location);
static DpFilterNode *
parse_expr(DpFilterCompiler *c, DpFilterOp op, const DpElement *field, const DpLocation *location);
static DpFilterNode *parse_constant(DpFilterCompiler *c, DpFilterOp op, const DpElement *field,
									const DpLocation *location);
static DpFilterNode *parse_comment(DpFilterCompiler *c, DpFilterOp op, const DpElement *field,
								   const DpLocation *location);
static DpFilterPath *filter_value_path(bool alone);

/* Operators that stand where the name of a field may stand. */
static const struct
{
	const char *name;
	TreeParser parse;
	DpFilterOp op;
} tree_operators[] = { { "$and", parse_tree, FILTER_AND },
					   { "$or", parse_tree, FILTER_OR },
					   { "$nor", parse_tree, FILTER_NOR },
					   { "$jsonSchema", parse_schema, FILTER_SCHEMA },
					   { "$expr", parse_expr, FILTER_EXPR },
					   { "$comment", parse_comment, FILTER_TRUE },
					   { "$alwaysTrue", parse_constant, FILTER_TRUE },
					   { "$alwaysFalse", parse_constant, FILTER_FALSE } };

/* ---------------------------------------------------------------- entry points */

DpFilter *
dp_filter_compile(const DpValue *spec, int flags, const DpLocation *location)
{
	DpFilter *filter = palloc0(sizeof(DpFilter));
	DpFilterCompiler c = { flags };

	filter->mode = flags & DP_FILTER_MODE;
	c.mode = filter->mode;
	switch (filter->mode)
	{
		case DP_FILTER_VALUE:
		{
			DpFilterNodes nodes = { 0 };
			DpFilterPath *path = filter_value_path(false);

			dp_filter_parse_predicate(&c, &nodes, path, spec, location);
			filter->root = dp_filter_make_tree(FILTER_AND, &nodes);
			break;
		}
		case DP_FILTER_ELEMENT:
			filter->root = dp_filter_parse_element(&c, filter_value_path(false), spec, location);
			break;
		default:
			if (spec->type != DP_TYPE_DOCUMENT)
				dp_bad_spec_type(location, "a document", spec);
			filter->root = parse_document(&c, spec, location);
			if (filter->mode == DP_FILTER_NAMED && c.identifier == NULL)
				dp_bad_spec(location, "an array filter needs the name of a value");
			break;
	}
	filter->has_expr = c.has_expr;
	filter->identifier = c.identifier;
	filter->idlen = c.idlen;
	return filter;
}

void *
dp_filter_compile_spec(const DpValue *spec, void *arg)
{
	return dp_filter_compile(spec,
							 arg != NULL ? *(int *) arg : DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE,
							 NULL);
}

bool
dp_filter_is_variable(const DpValue *v, bool let)
{
	DpIter iter;
	DpElement e;

	if (v->type == DP_TYPE_STRING)
	{
		const char *s = (const char *) v->data + 4;

		return let ? strncmp(s, "$$", 2) == 0
				   : strncmp(s, "$$NOW", 5) == 0 || strncmp(s, "$$CLUSTER_TIME", 14) == 0;
	}
	if (!dp_type_is_container(v->type))
		return false;
	dp_iter_init_value(&iter, v);
	while (dp_iter_next(&iter, &e))
		if (strcmp(e.name, "$rand") == 0 || strcmp(e.name, "$sampleRate") == 0 ||
			dp_filter_is_variable(&e.value, let))
			return true;
	return false;
}

bool
dp_filter_has_expr(const DpFilter *filter)
{
	return filter->has_expr;
}

static void
each_equal(const DpFilterNode *node, DpFilterVisit visit, void *arg)
{
	if (node->op == FILTER_AND)
		for (int i = 0; i < node->u.children.n; i++)
			each_equal(node->u.children.nodes[i], visit, arg);
	else if (node->op == FILTER_EQ)
		visit(node->path->name, node->path->namelen, &node->value, arg);
}

void
dp_filter_each_equal(const DpFilter *filter, DpFilterVisit visit, void *arg)
{
	each_equal(filter->root, visit, arg);
}

/* ---------------------------------------------------------------- nodes */

/* A new node, put on the list. */
DpFilterNode *
dp_filter_add_node(DpFilterNodes *nodes, DpFilterOp op, const DpFilterPath *path)
{
	DpFilterNode *node;

	if (nodes->nspare_nodes == 0)
	{
		nodes->nspare_nodes = Min(nodes->n + 1, MOST_SPARE);
		nodes->spare_nodes = palloc0(nodes->nspare_nodes * sizeof(DpFilterNode));
	}
	node = nodes->spare_nodes++;
	nodes->nspare_nodes--;
	node->op = op;
	node->path = path;
	dp_filter_add(nodes, node);
	return node;
}

void
dp_filter_add(DpFilterNodes *nodes, DpFilterNode *node)
{
	if (nodes->n == nodes->room)
	{
		nodes->room = Max(4, nodes->room * 2);
		if (nodes->nodes == NULL)
			nodes->nodes = palloc(nodes->room * sizeof(DpFilterNode *));
		else
			nodes->nodes = repalloc(nodes->nodes, nodes->room * sizeof(DpFilterNode *));
	}
	nodes->nodes[nodes->n++] = node;
}

/*
 * The nodes as one: a conjunction or disjunction of one is that one.
 */
DpFilterNode *
dp_filter_make_tree(DpFilterOp op, DpFilterNodes *nodes)
{
	DpFilterNode *node;

	if (nodes->n == 1 && (op == FILTER_AND || op == FILTER_OR))
		return nodes->nodes[0];
	node = palloc0(sizeof(DpFilterNode));
	node->op = nodes->n == 0 && op == FILTER_AND ? FILTER_TRUE : op;
	node->u.children.nodes = nodes->nodes;
	node->u.children.n = nodes->n;
	return node;
}

/*
 * The path of a value by itself.  alone: an array is not tried element by
 * element.
 */
static DpFilterPath *
filter_value_path(bool alone)
{
	DpFilterPath *path = palloc0(sizeof(DpFilterPath));

	path->path = dp_path_of_names(0, NULL, NULL);
	path->name = "";
	path->alone = alone;
	return path;
}

/* ---------------------------------------------------------------- documents */

/*
 * A filter that is a document: all of its fields must hold.
 */
static DpFilterNode *
parse_document(DpFilterCompiler *c, const DpValue *spec, const DpLocation *location)
{
	DpFilterNodes nodes = { 0 };
	DpIter iter;
	DpElement field;

	check_stack_depth();
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &field))
	{
		DpLocation here = dp_location_field(location, &field);
		int i;

		if (field.name[0] != '$' || dp_filter_is_reference_name(field.name))
		{
			parse_field(c, &nodes, &field, &here);
			continue;
		}
		for (i = 0; i < lengthof(tree_operators); i++)
			if (strcmp(field.name, tree_operators[i].name) == 0)
				break;
		if (i == lengthof(tree_operators))
		{
			DpNearest nearest = { field.name, field.namelen };

			for (i = 0; i < lengthof(tree_operators); i++)
				dp_nearest_try(&nearest, tree_operators[i].name);
			dp_unknown_operator(&here, "top-level filter operator", &nearest);
		}
		dp_filter_add(&nodes, tree_operators[i].parse(c, tree_operators[i].op, &field, &here));
	}
	return dp_filter_make_tree(FILTER_AND, &nodes);
}

/*
 * The conditions of $elemMatch on the elements of the array at a path, either
 * form.
 */
DpFilterNode *
dp_filter_parse_element(DpFilterCompiler *c, const DpFilterPath *path, const DpValue *spec,
						const DpLocation *location)
{
	DpFilterNodes children = { 0 };
	DpFilterNodes one = { 0 };
	DpFilterCompiler inner = { c->flags, DP_FILTER_DOCUMENT, true };
	DpFilterNode *node;
	DpIter iter;
	DpElement first;
	bool of_value = false;

	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document", spec);

	/* operators other than those of whole documents apply to the element itself */
	dp_iter_init_value(&iter, spec);
	if (dp_filter_is_operators(spec) && dp_iter_next(&iter, &first))
	{
		of_value = true;
		for (int i = 0; i < lengthof(tree_operators); i++)
			if (strcmp(first.name, tree_operators[i].name) == 0 &&
				strcmp(first.name, "$comment") != 0)
				of_value = false;
	}
	if (of_value)
		dp_filter_parse_predicate(&inner, &children, filter_value_path(true), spec, location);
	else
		dp_filter_add(&children, parse_document(&inner, spec, location));

	node = dp_filter_add_node(&one, of_value ? FILTER_ELEM_VALUE : FILTER_ELEM_OBJECT, path);
	node->u.children.nodes = children.nodes;
	node->u.children.n = children.n;
	return node;
}

/* A field or a path and its conditions. */
static void
parse_field(DpFilterCompiler *c, DpFilterNodes *nodes, const DpElement *field,
			const DpLocation *location)
{
	dp_filter_parse_predicate(c, nodes, make_path(c, nodes, field, location), &field->value,
							  location);
}

/* The path in the name of a field.  Its parts are separated by dots; they may be empty. */
static DpFilterPath *
make_path(DpFilterCompiler *c, DpFilterNodes *nodes, const DpElement *field,
		  const DpLocation *location)
{
	DpFilterPath *path;
	const char *name = field->name;
	uint32 len = field->namelen;
	const char **names;
	uint32 *lens;
	int n = 1;

	if (c->mode == DP_FILTER_NAMED)
	{
		name = named_rest(c, field, location, &len);
		if (name == NULL)
			return filter_value_path(false);
	}
	if (nodes->nspare_paths == 0)
	{
		nodes->nspare_paths = Min(nodes->n + 1, MOST_SPARE);
		nodes->spare_paths = palloc0(nodes->nspare_paths * sizeof(DpFilterPath));
	}
	path = nodes->spare_paths++;
	nodes->nspare_paths--;
	for (uint32 i = 0; i < len; i++)
		n += name[i] == '.';
	names = palloc(n * sizeof(char *));
	lens = palloc(n * sizeof(uint32));
	for (int i = 0; i < n; i++)
	{
		const char *dot = i < n - 1 ? memchr(name, '.', len) : name + len;

		names[i] = name;
		lens[i] = dot - name;
		len -= lens[i] + (i < n - 1);
		name = dot + 1;
	}
	path->path = dp_path_of_names(n, names, lens);
	path->first = n == 1 ? path->path : dp_path_of_name(names[0], lens[0]);
	path->name = names[0];
	path->namelen = names[n - 1] + lens[n - 1] - names[0];
	pfree(names);
	pfree(lens);
	return path;
}

/*
 * In an array filter: removes the first part of the path, its identifier, and returns the rest, or
 * NULL if there is none.
 */
static const char *
named_rest(DpFilterCompiler *c, const DpElement *field, const DpLocation *location, uint32 *len)
{
	const char *dot = memchr(field->name, '.', field->namelen);
	uint32 idlen = dot ? dot - field->name : field->namelen;

	if (idlen == 0 || !(field->name[0] >= 'a' && field->name[0] <= 'z'))
		dp_bad_spec(location,
					"the name of a value in an array filter must begin with a lower-case letter");
	for (uint32 i = 1; i < idlen; i++)
		if (!isalnum((unsigned char) field->name[i]))
			dp_bad_spec(location,
						"the name of a value in an array filter consists of letters and digits");
	if (c->identifier != NULL &&
		(c->idlen != idlen || memcmp(c->identifier, field->name, idlen) != 0))
		dp_bad_spec(location, "an array filter speaks of one value, not of \"%.*s\" and \"%.*s\"",
					(int) c->idlen, c->identifier, (int) idlen, field->name);
	c->identifier = field->name;
	c->idlen = idlen;
	if (dot == NULL)
		return NULL;
	*len = field->namelen - idlen - 1;
	return dot + 1;
}

/* ---------------------------------------------------------------- operators of documents */

/*
 * $and, $or and $nor.
 */
static DpFilterNode *
parse_tree(DpFilterCompiler *c, DpFilterOp op, const DpElement *field, const DpLocation *location)
{
	DpFilterNodes nodes = { 0 };
	DpIter iter;
	DpValue value;
	uint32 index = 0;

	if (field->value.type != DP_TYPE_ARRAY)
		dp_bad_spec_type(location, "an array", &field->value);
	dp_iter_init_value(&iter, &field->value);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation here = dp_location_index(location, index++);

		if (value.type != DP_TYPE_DOCUMENT)
			dp_bad_spec(&here, "\"%s\" needs an array of documents", field->name);
		dp_filter_add(&nodes, parse_document(c, &value, &here));
	}
	if (nodes.n == 0)
		dp_bad_spec(location, "\"%s\" needs an array that is not empty", field->name);
	return dp_filter_make_tree(op, &nodes);
}

static DpFilterNode *
parse_schema(DpFilterCompiler *c, DpFilterOp op, const DpElement *field, const DpLocation *location)
{
	DpFilterNodes one = { 0 };
	DpFilterNode *node;

	if ((c->flags & DP_FILTER_MODE) >= DP_FILTER_ELEMENT)
		dp_bad_spec(location, "\"%s\" can only be used in the filter of a query", field->name);
	if (field->value.type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document", &field->value);
	node = dp_filter_add_node(&one, op, NULL);
	node->u.schema = dp_schema_compile(&field->value, location);
	return node;
}

/*
 * $expr: an expression over the whole document.
 */
static DpFilterNode *
parse_expr(DpFilterCompiler *c, DpFilterOp op, const DpElement *field, const DpLocation *location)
{
	DpFilterNodes one = { 0 };
	DpFilterNode *node;

	if (c->mode != DP_FILTER_DOCUMENT || c->inside)
		dp_bad_spec(location, "\"%s\" can only speak of the whole document", field->name);
	c->has_expr = true;
	node = dp_filter_add_node(&one, op, NULL);
	node->u.expr.compiled =
		dp_expr_compile(&field->value,
						((c->flags & DP_FILTER_IMMUTABLE) ? DP_EXPR_IMMUTABLE : 0) |
							((c->flags & DP_FILTER_LET) ? DP_EXPR_LET : 0),
						dp_location_text(location));
	node->u.expr.scratch =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns $expr", ALLOCSET_SMALL_SIZES);
	return node;
}

/*
 * $alwaysTrue and $alwaysFalse, whose argument is 1.
 */
static DpFilterNode *
parse_constant(DpFilterCompiler *c, DpFilterOp op, const DpElement *field,
			   const DpLocation *location)
{
	DpFilterNodes one = { 0 };
	int64 number;

	if (!dp_value_to_whole(&field->value, &number) || number != 1)
		dp_bad_spec(location, "\"%s\" needs the number 1", field->name);
	return dp_filter_add_node(&one, op, NULL);
}

/* A comment has no effect. */
static DpFilterNode *
parse_comment(DpFilterCompiler *c, DpFilterOp op, const DpElement *field,
			  const DpLocation *location)
{
	DpFilterNodes one = { 0 };

	return dp_filter_add_node(&one, op, NULL);
}
