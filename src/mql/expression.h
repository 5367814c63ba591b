/*
 * expression.h
 *		Expressions of the aggregation language, for $expr, computed fields and update
 *		pipelines.
 *
 * An expression is compiled once and evaluated for many documents:
 *
 *		DpExpr	   *e = dp_expr_compile(&spec, 0, "$expr");
 *		DpExprState state;
 *
 *		dp_expr_state_init(&state, &root);
 *		if (dp_expr_eval(e, &state, &result))
 *			...									the result is missing otherwise
 *
 * docs/expression.md describes the language.
 */
#ifndef DP_MQL_EXPRESSION_H
#define DP_MQL_EXPRESSION_H

#include "bson/names.h"

typedef struct DpExpr DpExpr;

/* Refuse what does not always give the same result for a document: $$NOW, $rand */
#define DP_EXPR_IMMUTABLE 0x01

/* A name that nothing in the expression defines is a variable of dp_expr_set_let(). */
#define DP_EXPR_LET 0x02

/* Of $redact: $$DESCEND, $$PRUNE and $$KEEP, and paths begin at state->current, not at the root. */
#define DP_EXPR_REDACT 0x04

/* Of a projection: a $project stage, which has no $slice: n, $elemMatch and positional operator. */
#define DP_EXPR_STAGE 0x08

/*
 * The state of an evaluation.  One state serves any number of expressions, one after the other;
 * nothing has to be freed.
 */
typedef struct DpExprState
{
	DpValue root;       /* $$ROOT: usually a document */
	DpValue current;    /* $$CURRENT in $redact */
	DpValue *variables; /* slots of $let, $map and so on; type DP_TYPE_EOD: missing */
	int nvariables;
	int64 now; /* $$NOW, in milliseconds since 1970 */
	bool now_known;
	DpFinder *shared; /* of the root's fields, where many expressions are evaluated; or NULL */
	DpFinder *finder; /* that, or one for an expression with many paths, or NULL */
} DpExprState;

/*
 * Compiles an expression in the current memory context.  The result points into
 * the bytes of spec, which must live as long.  where is what errors name as the
 * place of the expression ("$set.total"), or NULL; it is copied.  Raises
 * FEATURE_NOT_SUPPORTED, naming it, for an operator or a variable that is not
 * known or not allowed by the flags, and INVALID_PARAMETER_VALUE for arguments
 * that are wrong; the detail names the operator's path.
 */
extern DpExpr *dp_expr_compile(const DpValue *spec, int flags, const char *where);

/*
 * The variables of expressions that were compiled with DP_EXPR_LET, until the next call: a document
 * that is not copied, or NULL.  An undefined value of BSON is a variable whose value is missing.  A
 * name that is not there is an error when it is evaluated.  Set it before each evaluation:
 * expressions do not call SQL, so that no other one can come between.
 */
extern void dp_expr_set_let(const DpValue *let);

/*
 * The variables of a pipeline carry its collation, too, as their first field.  Returns whether they
 * do; and calls a function by that of the variables in argument argno, if they do.
 */
#define DP_LET_COLLATION "$collation"
extern bool dp_let_collation(struct varlena *let, DpValue *collation);
extern Datum dp_expr_call(FunctionCallInfo fcinfo, int argno, PGFunction function);

/* Raises INVALID_PARAMETER_VALUE if a user's variable cannot have this name. */
extern void dp_expr_check_variable(const char *name, uint32 namelen, const char *where);

/* Sets the document that field paths begin at.  Used again for the next one. */
extern void dp_expr_state_init(DpExprState *state, const DpValue *root);

static inline void
dp_expr_state_root(DpExprState *state, const DpValue *root)
{
	state->root = *root;
}

/*
 * The value of the expression.  Returns false if it is missing.  The result
 * points into the root, into the expression's spec, or into memory of the
 * current context, which is where everything is allocated on the way: call it
 * in a context that is reset from time to time.  Raises INVALID_PARAMETER_VALUE
 * and other errors of class 22 that name the operator and the offending type.
 */
extern bool dp_expr_eval(const DpExpr *e, DpExprState *state, DpValue *result);

/*
 * Whether a value counts as true: all but missing (DP_TYPE_EOD), null, undefined, false and numbers
 * equal to 0.
 */
extern bool dp_expr_is_true(const DpValue *v);

/*
 * Raises PROGRAM_LIMIT_EXCEEDED if a computed value has more than 100 levels; called before it is
 * returned to SQL.
 */
extern void dp_check_value_depth(const DpValue *v);

#endif /* DP_MQL_EXPRESSION_H */
