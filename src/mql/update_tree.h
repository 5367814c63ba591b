/*
 * update_tree.h
 *		Shared by the files of the update language: the tree of paths into which an update is
 *		compiled, the table of operators, and the state of an update while it is applied.
 */
#ifndef DP_MQL_UPDATE_TREE_H
#define DP_MQL_UPDATE_TREE_H

#include "nodes/pg_list.h"

#include "bson/builder.h"
#include "bson/edit.h"
#include "bson/names.h"
#include "bson/path.h"
#include "mql/error.h"
#include "mql/filter.h"
#include "mql/update.h"

typedef struct DpUpdateNode DpUpdateNode;
typedef struct DpUpdateOperator DpUpdateOperator;
typedef struct DpUpdateState DpUpdateState;
typedef struct DpUpdatePipeline DpUpdatePipeline;

typedef enum DpUpdateNodeKind
{
	UPDATE_EMPTY,    /* just made */
	UPDATE_FIELDS,   /* children are fields, positions and $ */
	UPDATE_ELEMENTS, /* children are $[] and $[identifier] */
	UPDATE_LEAF      /* an operator */
} DpUpdateNodeKind;

/* One of array_filters */
typedef struct DpUpdateArrayFilter
{
	const char *name; /* the identifier */
	uint32 namelen;
	DpFilter *filter;
	bool used;
} DpUpdateArrayFilter;

/* A part of a path, and what is done at it and below */
struct DpUpdateNode
{
	DpUpdateNodeKind kind;
	DpPathStep step; /* the part's name; a position if it is all digits */
	bool positional; /* the part is $ */
	char *path;      /* from the top to here, for errors and for $ */
	uint32 pathlen;
	uint32 parentlen;                  /* of path without this part and its dot */
	DpUpdateArrayFilter *array_filter; /* of $[identifier]; NULL for $[] */
	DpUpdateNode **children;           /* in the order in which they are applied */
	int nchildren;
	int maxchildren;
	bool has_positional;        /* one of the children is $ */
	const DpUpdateOperator *op; /* of a leaf: */
	DpValue operand;
	bool immutable;       /* the operand may not depend on the clock or chance */
	void *extra;          /* the compiled operand */
	DpUpdateNode *source; /* $rename: where the value comes from */
	DpValue moved;        /* $rename: the value, while the update is applied */
	bool is_moved;        /* there is one */
};

/* The effect of an operator if the path does not exist */
#define UPDATE_CREATES 0x01   /* puts something there, */
#define UPDATE_ON_INSERT 0x02 /* but in an upsert only */
#define UPDATE_LENIENT 0x04   /* does nothing where a path cannot lead on */
#define UPDATE_REMOVES 0x08   /* takes the field away */
#define UPDATE_MOVES 0x10     /* $rename */

/* Where an operator is applied: an element of the old document */
typedef struct DpUpdateLocation
{
	const uint8 *element; /* its type byte */
	DpValue value;
	int depth; /* containers around the value */
	bool in_array;
} DpUpdateLocation;

struct DpUpdateOperator
{
	const char *name;
	int flags;
	/* checks the operand, once; leaf->extra is for it */
	void (*compile)(DpUpdateNode *leaf, const DpLocation *location);
	/* the path exists */
	void (*apply)(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
	/*
	 * it does not exist: the value to put there, in bytes that live as long as the update is
	 * applied
	 */
	void (*create)(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);
};

/* An update, compiled */
struct DpUpdate
{
	MemoryContext context;      /* memory of the compiled form */
	DpUpdateNode *root;         /* operators */
	List *renames;              /* leaves of $rename */
	DpUpdatePipeline *pipeline; /* stages, or NULL */
	const DpValue *replacement; /* a whole document, or NULL */
	DpFilter *filter;           /* or NULL */
	bool immutable;             /* no part may depend on the clock or chance */
	bool touches_id;            /* the operators reach _id */
	bool positional;            /* some path has $: the filter is matched meanwhile */
	DpUpdateArrayFilter *array_filters;
	int narray_filters;
	DpNames array_names; /* their identifiers */
	List *merges;        /* of UpdateMerge: nodes with the same element */
};

/* An update while it is applied to one document */
struct DpUpdateState
{
	DpUpdate *update;
	DpValue doc;       /* the old document */
	const uint8 *done; /* its bytes up to here are written or left out */
	DpBuilder out;
	bool started;   /* there is something in out */
	bool insert;    /* an upsert makes a new document */
	uint8 *own;     /* doc's bytes, if they may be changed */
	bool changed;   /* some of them were */
	uint32 splices; /* changes so far, other than those in place */
};

/* update_compile.c */
extern void dp_update_leaf_error(const DpUpdateNode *leaf, const DpValue *found, const char *wanted)
	pg_attribute_noreturn();
extern DpUpdateNode *dp_update_merge(DpUpdate *update, DpUpdateNode *a, DpUpdateNode *b);
extern DpUpdateNode *dp_update_position(const DpUpdateNode *node, uint32 index);
extern int dp_update_order(const DpPathStep *a, const DpPathStep *b);
extern int dp_update_find_child(const DpUpdateNode *node, const DpPathStep *step, bool *found);
extern bool dp_update_step_index(const char *name, uint32 len, int32 *index);

extern DpUpdate *dp_update_of_fields(void);
extern void
dp_update_add_field(DpUpdate *update, const char *path, uint32 len, const DpValue *value);

/* update_apply.c: the operators of an update, and how they change what is there */
extern struct varlena *
dp_update_tree_apply(DpUpdate *update, const DpValue *doc, uint8 *own, bool insert, bool *changed);
extern void dp_update_put(DpUpdateState *s, const DpUpdateLocation *location, const DpValue *value);
extern void dp_update_remove(DpUpdateState *s, const DpUpdateLocation *location);
extern void dp_update_put_array(DpUpdateState *s, const DpUpdateLocation *location,
								const DpValue *values, uint32 n);
extern void
dp_update_append(DpUpdateState *s, const DpUpdateLocation *location, const DpValue *values, int n);
extern void
dp_update_truncate(DpUpdateState *s, const DpUpdateLocation *location, const uint8 *element);

/* update_ops.c, update_array.c: the operators, each table ended by one without a name */
extern const DpUpdateOperator dp_update_operators[];
extern const DpUpdateOperator dp_update_array_operators[];

/* update_pipeline.c */
extern DpUpdatePipeline *dp_update_pipeline_compile(const DpValue *stages, int flags);
/* Raises the errors of a stage; flags are those of dp_expr_compile(). */
extern void dp_update_stage_check(const DpValue *spec, int flags, const DpLocation *location);
extern void
dp_update_pipeline_apply(DpUpdatePipeline *pipeline, const DpValue *doc, DpValue *result);

#endif /* DP_MQL_UPDATE_TREE_H */
