/*
 * approximation.h
 *		The approximation pattern: counters that are not written for every event.
 *
 * Four forms:
 *
 *	step		one event in n is written and counts n
 *	error		a step that grows with the value: the standard error is at most
 *				that fraction of it
 *	threshold	an UPDATE that changes the field by less is undone; additions use
 *				the threshold as step
 *	slots		exact: events are added to shards, rows of a side table; the total
 *				is the field plus the shards
 *
 * The draw is made once, before anything is locked or read for writing.  On
 * average an event adds what it counts, for any step that does not depend on the
 * draw.  So the value that determines the step is read without a lock.
 *
 * approximation.c has the triggers, draw.c the draw and the bounds of an estimate,
 * calls.c the functions that users call, exact.c the shards.
 */
#ifndef DP_PATTERNS_APPROXIMATION_APPROXIMATION_H
#define DP_PATTERNS_APPROXIMATION_APPROXIMATION_H

#include "bson/amount.h"
#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/key.h"

typedef enum DpApproximationForm
{
	DP_APPROXIMATION_STEP,
	DP_APPROXIMATION_ERROR,
	DP_APPROXIMATION_THRESHOLD,
	DP_APPROXIMATION_SHARDS
} DpApproximationForm;

/* The largest step, error and number of shards that may be declared */
#define DP_APPROXIMATION_MAX_STEP INT64CONST(1000000000000)
#define DP_APPROXIMATION_MAX_ERROR 0.5
#define DP_APPROXIMATION_MAX_SHARDS 10000

typedef struct DpApproximation
{
	DpDecl *decl;
	DpApproximationForm form;
	char *field_text;
	DpPath *field;
	int64 step;
	double variance;  /* of the error form: 2 * error * error */
	double threshold; /* absolute, or a fraction of the value */
	Numeric threshold_exact;
	bool relative; /* threshold is a fraction */
	int shards;
	struct DpLookup *lookup; /* of the row, by its key; created when first used */
	Oid side;                /* the table of shards, InvalidOid if missing */
	bool verified;           /* it has the columns of one */
} DpApproximation;

/* Returns the options of a declaration. */
extern DpApproximation *dp_approximation(DpDecl *decl);

/*
 * Returns the field of a document, false if it is absent or null. Raises CHECK_VIOLATION if it is
 * not a number.
 */
extern bool dp_approximation_field(const DpApproximation *a, struct varlena *doc, DpValue *value);

/* draw.c */

/* Returns whether the draw needs the present value. */
extern bool dp_approximation_needs_value(const DpApproximation *a);

/*
 * Draws: returns whether an event that counts amount is written at this value, and sets what it
 * then adds. The average of what is added is the amount.
 */
extern bool dp_approximation_draw(const DpApproximation *a, const DpValue *amount, double value,
								  DpAmount *added);

/* Sets the bounds that contain the true count in 95 of 100 cases, given the estimate. */
extern void
dp_approximation_bounds(const DpApproximation *a, double estimate, double *low, double *high);

/* Defines the setting docpatterns.approximation_seed. */
extern void dp_approximation_init(void);

/* calls.c */

/*
 * Returns the document with an amount added to a field, which is created if absent. Raises
 * DATATYPE_MISMATCH for a value that is not a number.
 */
extern struct varlena *
dp_approximation_plus_document(struct varlena *doc, const DpPath *path, const DpValue *amount);

/*
 * Adds to the field of the row, as its owner or as the current user. Returns false without such a
 * row.
 */
extern bool
dp_approximation_write(DpApproximation *a, const DpKey *key, const DpValue *amount, bool as_owner);

/* exact.c */

/* Returns the table of shards. Raises OBJECT_NOT_IN_PREREQUISITE_STATE: dp_side_find(). */
extern Oid dp_approximation_shards_table(DpApproximation *a);

/* Adds to the shards of the row. */
extern void dp_approximation_shards_add(DpApproximation *a, const DpKey *key, const DpValue *amount,
										bool restricted);

#endif /* DP_PATTERNS_APPROXIMATION_APPROXIMATION_H */
