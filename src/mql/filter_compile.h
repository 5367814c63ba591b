/*
 * filter_compile.h
 *		Shared by the two halves of the filters' compiler. For the files filter_compile.c and
 *		filter_operand.c only.
 */
#ifndef DP_MQL_FILTER_COMPILE_H
#define DP_MQL_FILTER_COMPILE_H

#include "mql/filter_node.h"

typedef struct DpFilterCompiler
{
	int flags; /* DpFilterFlags */
	int mode;
	bool inside; /* of $elemMatch: not the whole document */
	bool has_expr;
	const char *identifier; /* NAMED: what the filter calls its value */
	uint32 idlen;
} DpFilterCompiler;

/* Nodes of a conjunction or disjunction that is being read. */
typedef struct DpFilterNodes
{
	DpFilterNode **nodes;
	int n;
	int room;
	DpFilterNode *spare_nodes; /* made some at a time: a filter may have 100,000 */
	int nspare_nodes;
	DpFilterPath *spare_paths;
	int nspare_paths;
} DpFilterNodes;

extern DpFilterNode *
dp_filter_add_node(DpFilterNodes *nodes, DpFilterOp op, const DpFilterPath *path);
extern void dp_filter_add(DpFilterNodes *nodes, DpFilterNode *node);
extern DpFilterNode *dp_filter_make_tree(DpFilterOp op, DpFilterNodes *nodes);

/* Adds the conditions on a path: operators, or a value that it must equal, or a pattern. */
extern void
dp_filter_parse_predicate(DpFilterCompiler *c, DpFilterNodes *nodes, const DpFilterPath *path,
						  const DpValue *spec, const DpLocation *location);

extern DpFilterNode *dp_filter_parse_element(DpFilterCompiler *c, const DpFilterPath *path,
											 const DpValue *spec, const DpLocation *location);

/* Whether the value is a document whose first field is an operator. */
extern bool dp_filter_is_operators(const DpValue *value);

/* Whether it is one of the fields of a database reference, which are no operators. */
extern bool dp_filter_is_reference_name(const char *name);

#endif /* DP_MQL_FILTER_COMPILE_H */
