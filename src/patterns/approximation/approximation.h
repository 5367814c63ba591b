/*
 * approximation.h
 *		The approximation pattern: counters that are not written for every event.
 *
 * Four forms:
 *
 *		step		one event in n is written, and counts n
 *		error		the same with a step that grows with the value, so that the
 *					standard error is at most that fraction of it
 *		threshold	a write that moves the field by less is put back; additions go
 *					in steps of the threshold
 *		slots		exact, but on rows aside that do not queue on each other; the
 *					field in the document and the slots are the total
 *
 * What is drawn is drawn once, before anything is read for writing or locked.
 * An event adds, on average, just what it counts, whatever step was chosen, as
 * long as the step does not depend on the draw: so the present value is read
 * without a lock, and may be old.
 *
 * approximation.c has the options and the triggers, draw.c says
 * how much an event writes and how far an estimate may be off,
 * calls.c has the functions that users call,
 * exact.c what concerns slots.
 */
#ifndef DP_PATTERNS_APPROXIMATION_APPROXIMATION_H
#define DP_PATTERNS_APPROXIMATION_APPROXIMATION_H

#include "commands/trigger.h"

#include "bson/amount.h"
#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/key.h"

typedef enum DpApproximationForm
{
	DP_APPROXIMATION_STEP,
	DP_APPROXIMATION_ERROR,
	DP_APPROXIMATION_THRESHOLD,
	DP_APPROXIMATION_SLOTS
} DpApproximationForm;

/* The largest step, error and number of slots that may be declared */
#define DP_APPROXIMATION_MAX_STEP INT64CONST(1000000000000)
#define DP_APPROXIMATION_MAX_ERROR 0.5
#define DP_APPROXIMATION_MAX_SLOTS 10000

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
	bool relative; /* it is a fraction */
	int slots;
	struct DpLookup *lookup; /* of the row, by its key; made when it is wanted */
	Oid side;                /* the table of slots, InvalidOid if it is missing */
} DpApproximation;

/* The pattern's view of a declaration. */
extern DpApproximation *dp_approximation(DpDecl *decl);

/*
 * The field of a document: false if it is absent or null.  Raises CHECK_VIOLATION if it is no
 * number.
 */
extern bool dp_approximation_field(const DpApproximation *a, struct varlena *doc, DpValue *value);

/* draw.c */

/* Whether the draw needs the present value. */
extern bool dp_approximation_needs_value(const DpApproximation *a);

/*
 * Draws: whether an event that counts amount is written at this value, and what
 * it then adds.  The average of what is added is the amount.
 */
extern bool dp_approximation_draw(const DpApproximation *a, const DpValue *amount, double value,
								  DpAmount *added);

/* Between which numbers the true count lies in 95 of 100 cases if the estimate is this. */
extern void
dp_approximation_bounds(const DpApproximation *a, double estimate, double *low, double *high);

/* docpatterns.approximation_seed: 0 for a random one */
extern int dp_approximation_seed;
extern void dp_approximation_seed_assign(int seed, void *extra);

/* calls.c */

/*
 * The document with an amount added to a field, which is made if it is not there.
 * Raises DATATYPE_MISMATCH for what is no number.
 */
extern struct varlena *
dp_approximation_plus_document(struct varlena *doc, const DpPath *path, const DpValue *amount);

/*
 * Adds to the field of the row, as its owner or as the current user.  Whether there was such a row.
 */
extern bool
dp_approximation_write(DpApproximation *a, const DpKey *key, const DpValue *amount, bool as_owner);

/* exact.c */

/* Adds to the slots of the row. */
extern void dp_approximation_slots_add(DpApproximation *a, const DpKey *key, const DpValue *amount,
									   bool restricted);

/* The triggers for rows that are gone or have another key, and for statements. */
extern void dp_approximation_slots_before(DpApproximation *a, TriggerData *trigdata);
extern void dp_approximation_slots_after(DpApproximation *a, TriggerData *trigdata);
extern void dp_approximation_slots_statement(DpApproximation *a, TriggerData *trigdata);

#endif /* DP_PATTERNS_APPROXIMATION_APPROXIMATION_H */
