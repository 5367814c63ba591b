/*
 * filter_compile.h
 *		What the two halves of the filters' compiler share.  For the files
 *		filter_compile.c and filter_operand.c only.
 */
#ifndef DP_MQL_FILTER_COMPILE_H
#define DP_MQL_FILTER_COMPILE_H

#include "mql/filter_node.h"

typedef struct FilterCompiler
{
	int flags; /* DpFilterFlags */
	int mode;
	bool inside;            /* of $elemMatch: not the whole document */
	const char *identifier; /* NAMED: what the filter calls its value */
	uint32 idlen;
} FilterCompiler;

/* Nodes that all must hold, or one of which must, as they are read. */
typedef struct FilterNodes
{
	FilterNode **nodes;
	int n;
	int room;
	FilterNode *spare_nodes; /* made some at a time: a filter may have 100,000 */
	int nspare_nodes;
	FilterPath *spare_paths;
	int nspare_paths;
} FilterNodes;

extern FilterNode *dp_filter_add_node(FilterNodes *nodes, FilterOp op, const FilterPath *path);
extern void dp_filter_add(FilterNodes *nodes, FilterNode *node);
extern FilterNode *dp_filter_make_tree(FilterOp op, FilterNodes *nodes);

/*
 * Adds what is asked of a path: operators, or a value that it must equal, or a
 * pattern.
 */
extern void dp_filter_parse_predicate(FilterCompiler *c, FilterNodes *nodes, const FilterPath *path,
									  const DpValue *spec, const DpPlace *place);

extern FilterNode *dp_filter_parse_element(FilterCompiler *c, const FilterPath *path,
										   const DpValue *spec, const DpPlace *place);

/* Whether the value is a document whose first field is an operator. */
extern bool dp_filter_is_operators(const DpValue *value);

/* Whether it is one of the fields of a database reference, which are no operators. */
extern bool dp_filter_is_reference_name(const char *name);

#endif /* DP_MQL_FILTER_COMPILE_H */
