/*
 * accumulate_node.h
 *		Shared by the files of accumulators: the compiled form and the state of a group.
 *
 * Fields are computed from slots: one sum serves the $sum and the $avg of an expression.  A group
 * has each slot twice: the added and removed rows (delta), and the resulting group (whole).
 */
#ifndef DP_MQL_ACCUMULATE_NODE_H
#define DP_MQL_ACCUMULATE_NODE_H

#include "bson/builder.h"
#include "bson/exactsum.h"
#include "bson/names.h"
#include "mql/accumulate.h"
#include "mql/expression.h"
#include "mql/sort_key.h"

/* The greatest n of a $topN and so on, and cap */
#define DP_ACCUMULATE_MAX_N 10000

typedef enum DpSlotKind
{
	DP_SLOT_ROWS, /* the number of rows */
	DP_SLOT_SUM,
	DP_SLOT_DEVIATION,
	DP_SLOT_LIST, /* the first n in an order */
	DP_SLOT_MEDIAN,
	DP_SLOT_SERIES /* with arrival: values as they came, the best one, or a set */
} DpSlotKind;

typedef struct DpSlot
{
	DpSlotKind kind;
	int expr;  /* whose value is taken; -1: none */
	int order; /* lists that do not go by value: which order; -1: the row's key */
	bool by_value;
	bool descending;   /* the greatest comes first */
	bool distinct;     /* equal values are one element */
	bool skip_null;    /* null, undefined and missing values do not count */
	bool skip_missing; /* missing ones do not */
	bool elements;     /* values must be arrays, whose elements count */
	bool objects;      /* values must be documents, which are merged */
	int n;             /* so many elements */
	int cap;           /* the most elements that are kept */
	bool count;        /* sums: the number of numbers is needed */
	int visible;       /* the field that shows the rows, the sum or the list; -1: none */
	Size offset;       /* of its state among those of a group */
} DpSlot;

typedef enum DpShow
{
	DP_SHOW_ROWS,
	DP_SHOW_TOTAL,
	DP_SHOW_AVERAGE,
	DP_SHOW_DEVIATION_POP,
	DP_SHOW_DEVIATION_SAMP,
	DP_SHOW_FIRST, /* the first element of a list, or null */
	DP_SHOW_LIST,
	DP_SHOW_LIST_REVERSED,
	DP_SHOW_MERGED,
	DP_SHOW_MEDIAN,
	DP_SHOW_PERCENTILES
} DpShow;

typedef struct DpField
{
	const char *name;
	uint32 namelen;
	DpShow show;
	int slot;
	double *percentiles; /* each from 0 to 1 */
	int npercentiles;
	bool continuous; /* between two numbers a value in proportion */
} DpField;

/* An expression that is a field of the document */
typedef struct DpPlain
{
	const char *name;
	uint32 len;
	int expr;
} DpPlain;

struct DpAccumulators
{
	MemoryContext context;
	int nfields;
	DpField *fields;
	DpNames names; /* of the fields */
	int nslots;
	DpSlot *slots;
	Size states_size; /* of the states of all slots */

	/* Expressions, each evaluated once for a row */
	int nexprs;
	DpExpr **exprs;
	DpValue *specs;
	DpValue *values;
	bool *known;

	/* Those that are fields are found together, in one walk */
	int nplain;
	DpPlain plain[DP_NAMES_FEW];

	/* Orders of rows, and their keys for a row */
	int norders;
	DpSortSpec **orders;
	DpValue *order_specs;
	StringInfoData *keys;
	bool *keys_known;
	StringInfoData key; /* the key with the row's own behind it */
	bool need_key;

	const char *state; /* NULL: none */
	uint32 statelen;
	const char *name;
	uint32 namelen;
	uint32 fingerprint; /* of the fields and the order: states of others are not ours */
	bool keep_rows;
	bool arrival;
	bool window;
	bool varies; /* an n is computed */
};

/* A value of a series; short ones have no memory of their own. */
typedef struct DpSeriesItem
{
	int64 row; /* the number of its row in the group */
	uint32 len;
	uint8 type;
	union
	{
		uint8 bytes[16];
		uint8 *data;
	};
} DpSeriesItem;

/* Values, of which the first and the last ones can be taken away */
typedef struct DpSeries
{
	DpSeriesItem *items;
	int64 first;
	int64 n;
	int64 room;
	Size bytes; /* of long values */
	Size limit; /* of bytes, after which documents are merged */
} DpSeries;

/* An element of a list, or a candidate */
typedef struct DpCandidate
{
	const char *key; /* lists that do not go by value */
	uint32 keylen;
	uint32 prefix; /* bytes of the key that an index knows */
	DpValue value;
	int64 count; /* rows; of the last element of a list by value at least so many */
	bool mixed;  /* distinct lists: not all of them have these bytes */
} DpCandidate;

typedef struct DpList
{
	DpCandidate **elements; /* the best first; each is a chunk with its bytes */
	int n;
	int room;
	bool trimmed; /* there are more, worse than the last */
} DpList;

typedef struct DpNumbers
{
	double *d;
	int64 n;
	int64 room;
} DpNumbers;

typedef struct DpSlotState
{
	int64 n;        /* rows; numbers of deviations and medians */
	bool search;    /* in whole: has to be searched for */
	bool searching; /* rows were found */
	union
	{
		DpExactSum sum;
		struct
		{
			int64 special; /* NaNs and infinities among the numbers */
			DpBigSum total;
			DpBigSum squares;
		} deviation;
		struct
		{
			DpList in; /* in whole: the list */
			DpList out;
		};
		struct
		{
			DpNumbers in;
			DpNumbers out;
			double value; /* in whole, if there are numbers */
			int64 seen;   /* while it is searched for */
		} median;
		DpSeries series;
	};
} DpSlotState;

struct DpAccumulation
{
	const DpAccumulators *acc;
	MemoryContext context;
	DpSlotState *delta; /* see dp_state_of() */
	DpSlotState *whole;
	bool is_whole;    /* whole is up to date */
	DpValue *results; /* of fields, valid if is_shown */
	uint8 (*rooms)[DP_SUM_RESULT_SIZE];
	struct varlena **built; /* arrays */
	bool is_shown;
	StringInfoData packed; /* the stored state */
	int64 nin;             /* rows that came, with arrival */
	int64 nout;            /* rows that left */
};

/* The state of a slot: states are only as long as their kinds need. */
static inline DpSlotState *
dp_state_of(const DpAccumulators *acc, const DpSlotState *states, int slot)
{
	return (DpSlotState *) ((char *) states + acc->slots[slot].offset);
}

/* ---------------------------------------------------------------- accumulate_list.c */

extern void dp_list_reset(DpList *list);

/* Inserts an element; beyond cap, the worst is dropped. */
extern void
dp_list_add(DpAccumulation *g, const DpSlot *slot, DpList *list, const DpCandidate *c, int cap);
extern void
dp_list_merge(DpAccumulation *g, const DpSlot *slot, DpList *list, const DpList *other, int cap);

/* Takes one away.  Returns false if it is not there. */
extern bool dp_list_take(const DpSlot *slot, DpList *list, const DpCandidate *c);

/* Rows of the list, or elements of one whose elements are distinct. */
extern int64 dp_list_size(const DpSlot *slot, const DpList *list);

/* True if the added elements are the removed ones. */
extern bool dp_list_cancels(const DpSlot *slot, const DpList *in, const DpList *out);

/* The list with the added and without the removed elements.  Returns false if rows must be read. */
extern bool dp_list_apply(DpAccumulation *g, const DpSlot *slot, DpList *list, const DpList *in,
						  const DpList *out);

/* Cuts the list off at the slot's n. */
extern void dp_list_truncate(const DpSlot *slot, DpList *list);

/*
 * Whether a row that comes after c in an index can still belong to the list: its first n are not
 * better than all.
 */
extern bool dp_list_wants(const DpSlot *slot, const DpList *list, const DpCandidate *c);

/* ---------------------------------------------------------------- accumulate_series.c */

extern void dp_series_reset(DpSeries *q);
extern void
dp_series_add(DpAccumulation *g, const DpSlot *slot, DpSeries *q, const DpValue *v, int64 row);

/* Takes the values of a row away, if they are there; rows leave in the order in which they came. */
extern void dp_series_take(DpSeries *q, int64 row);

/* The i-th value, which belongs to the series. */
extern DpValue dp_series_value(const DpSeries *q, int64 i);

/* The array of values, or the document that documents merge to: a bson_value. */
extern struct varlena *dp_series_array(const DpSlot *slot, DpSeries *q);
extern struct varlena *dp_series_merged(const DpSeries *q);

/* ---------------------------------------------------------------- accumulate_state.c */

extern void dp_slot_init(DpAccumulation *g, const DpSlot *slot, DpSlotState *s);
extern void dp_slot_reset(const DpSlot *slot, DpSlotState *s);
extern void
dp_slot_add(DpAccumulation *g, const DpSlot *slot, DpSlotState *s, const DpSlotState *other);

/* A target document's fields and state; the type of missing ones is DP_TYPE_EOD. */
extern void
dp_state_find(const DpAccumulators *acc, const DpValue *target, DpValue *fields, DpValue *state);

/* Reads the slots of a document into s, which are reset.  Returns false if they are not there. */
extern bool dp_state_read(DpAccumulation *g, const DpValue *target, DpSlotState *s);

/* Writes g->packed, empty if no state is needed. */
extern void dp_state_write(DpAccumulation *g);

/* The values of all fields, g->results. */
extern void dp_accumulation_show(DpAccumulation *g);

/* Appends the fields of a group with arrival, from what came. */
extern void dp_accumulation_show_arrived(DpAccumulation *g, DpBuilder *b);

#endif /* DP_MQL_ACCUMULATE_NODE_H */
