/*
 * filter_node.h
 *		The compiled form of a filter. For the files filter*.c and for src/index, which reads
 *		filters without running them.
 */
#ifndef DP_MQL_FILTER_NODE_H
#define DP_MQL_FILTER_NODE_H

#include "bson/path.h"
#include "mql/expression.h"
#include "mql/filter.h"
#include "mql/regex.h"
#include "mql/schema.h"
#include "mql/typeset.h"

typedef enum DpFilterOp
{
	/* of a whole document */
	FILTER_TRUE,
	FILTER_FALSE,
	FILTER_AND,
	FILTER_OR,
	FILTER_NOR, /* also $not: of one */
	FILTER_SCHEMA,
	FILTER_EXPR,

	/* conditions on the value at a path */
	FILTER_EQ,
	FILTER_LT,
	FILTER_LTE,
	FILTER_GT,
	FILTER_GTE,
	FILTER_IN,
	FILTER_REGEX,
	FILTER_EXISTS,
	FILTER_TYPE,
	FILTER_MOD,
	FILTER_BITS_ALL_SET,
	FILTER_BITS_ANY_SET,
	FILTER_BITS_ALL_CLEAR,
	FILTER_BITS_ANY_CLEAR,

	/* the same, on arrays */
	FILTER_SIZE,
	FILTER_ELEM_OBJECT,
	FILTER_ELEM_VALUE
} DpFilterOp;

#define FILTER_FIRST_CONDITION FILTER_EQ

/* A field or a path, shared by the conditions that are put on it. */
typedef struct DpFilterPath
{
	DpPath *path;     /* no steps: the value itself */
	DpPath *first;    /* its first step */
	const char *name; /* unparsed */
	uint32 namelen;
	bool alone; /* inside $elemMatch of a value: elements of arrays are not tried */
} DpFilterPath;

typedef struct DpFilterNumber
{
	bool is_integer; /* i is its value */
	bool is_double;  /* d is its value, exactly, and not NaN */
	int64 i;
	double d;
} DpFilterNumber;

typedef struct DpFilterIn
{
	DpValue *values; /* in order, each once */
	DpRegex **regexes;
	DpValue *regex_values; /* what they were in the filter */
	int nvalues;
	unsigned int nregexes : 31;
	unsigned int has_null : 1;
} DpFilterIn;

typedef struct DpFilterBits
{
	uint32 *positions;
	int npositions;
	uint64 mask; /* of the positions below 64 */
	bool beyond; /* there are others */
} DpFilterBits;

/* At most 64 bytes: palloc() rounds up to a power of two, and a filter may have 100,000 nodes. */
typedef struct DpFilterNode
{
	DpFilterOp op;
	const DpFilterPath *path; /* of a condition */
	DpValue value;            /* the operand */
	union
	{
		struct
		{
			struct DpFilterNode **nodes;
			int n;
		} children;            /* AND, OR, NOR, ELEM_... */
		DpFilterNumber number; /* EQ to GTE */
		DpFilterIn in;
		struct
		{
			DpRegex *regex;
			const char *pattern;
			const char *options;
			uint32 len;
			uint32 optlen;
		} regex;
		DpTypeSet types;
		struct
		{
			int64 divisor;
			int64 remainder;
		} mod;
		DpFilterBits bits;
		int64 size;
		DpSchema *schema;
		struct
		{
			DpExpr *compiled;
			MemoryContext scratch; /* emptied after each evaluation */
		} expr;
	} u;
} DpFilterNode;

StaticAssertDecl(sizeof(DpFilterNode) <= 64, "a node is larger than 64 bytes");

struct DpFilter
{
	DpFilterNode *root;
	int mode;
	bool has_expr;
	int misses;             /* documents to be read without trying a slice first */
	const char *identifier; /* NAMED: its identifier */
	uint32 idlen;
};

/* True if a value satisfies a condition on it; NULL represents a missing field. */
extern bool dp_filter_test(const DpFilterNode *node, const DpValue *value);

/* True if an element of an array satisfies the argument of $elemMatch. */
extern bool dp_filter_test_element(const DpFilterNode *node, const DpValue *element);

#endif /* DP_MQL_FILTER_NODE_H */
