/*
 * expression_node.h
 *		Shared by the files of the expression language: the compiled form, the tables of
 *		operators and helpers for operators.
 *
 * An expression is a tree of nodes.  Each node has a function that computes its value.  Operators
 * are rows of tables, one table per family; the compiler looks the name up, compiles the arguments
 * as the row specifies, and calls the row's compile function if it has one.
 */
#ifndef DP_MQL_EXPRESSION_NODE_H
#define DP_MQL_EXPRESSION_NODE_H

#include "bson/builder.h"
#include "bson/path.h"
#include "mql/error.h"
#include "mql/expression.h"

typedef struct DpNode DpNode;
typedef struct DpOperator DpOperator;

/* The value of a node; false: missing. */
typedef bool (*DpNodeEval)(const DpNode *node, DpExprState *state, DpValue *result);

/* A place in the specification, for errors: a name, or a position if name is NULL. */
typedef struct DpWhere
{
	const struct DpWhere *parent;
	const char *name;
	uint32 namelen;
	uint32 position;
} DpWhere;

/* A variable that can be seen from where the compiler is. */
typedef struct DpScope
{
	const struct DpScope *parent;
	uint32 name; /* its position among the compiler's names */
	int slot;
	int hidden; /* the slot of a variable of that name further out, or -1 */
} DpScope;

typedef struct DpCompiler
{
	int flags;
	const DpWhere *where;
	const DpScope *scope;
	DpNames names;  /* of variables */
	int *slots;     /* its meaning for the node, or -1 */
	int nvariables; /* slots given out */
	int npaths;
} DpCompiler;

struct DpNode
{
	DpNodeEval eval;
	const DpOperator *op; /* NULL: a literal, a path, an array or an object */
	const DpWhere *where;
	int nargs;
	DpNode **args; /* NULL for a named argument that is not given */
	DpValue value; /* literals; type DP_TYPE_EOD: missing */
	int slot;      /* the first of the operator's variables */
	void *extra;   /* what the operator prepared */
};

/*
 * A row of a table of operators.
 *
 * The arguments are a list of min to max expressions (max -1: any number), where a single one need
 * not be in an array; or, if names is given, the fields of a document, in the order of names, with
 * optional ones marked by a leading question mark: "input ?chars", args in the same order; or
 * either, if names and max are given; or compile reads them.
 */
struct DpOperator
{
	const char *name; /* with its dollar */
	DpNodeEval eval;
	int min;
	int max;
	const char *names;
	int which; /* distinguishes operators with the same function */
	void (*prepare)(DpCompiler *c, DpNode *node); /* after the arguments are compiled */
	DpNode *(*compile)(DpCompiler *c, const DpOperator *op, const DpValue *spec);
};

/* The number of characters of a string. */
extern uint32 dp_count_chars(const char *s, uint32 len);

/* The tables end with a row without a name. */
extern const DpOperator dp_operators_logic[];
extern const DpOperator dp_operators_arith[];
extern const DpOperator dp_operators_math[];
extern const DpOperator dp_operators_string[];
extern const DpOperator dp_operators_regex[];
extern const DpOperator dp_operators_array[];
extern const DpOperator dp_operators_sequence[];
extern const DpOperator dp_operators_set[];
extern const DpOperator dp_operators_object[];
extern const DpOperator dp_operators_convert[];
extern const DpOperator dp_operators_date[];
extern const DpOperator dp_operators_calendar[];
extern const DpOperator dp_operators_dateformat[];
extern const DpOperator dp_operators_accumulate[];

/* ---------------------------------------------------------------- compiling */

extern DpNode *dp_compile(DpCompiler *c, const DpValue *spec);

/* The same, with the place in the specification noted. */
extern DpNode *dp_compile_field(DpCompiler *c, const DpElement *element);
extern DpNode *dp_compile_position(DpCompiler *c, const DpValue *value, uint32 position);

/*
 * The fields of a document of arguments in the order of names, as in DpOperator; what is not given
 * has the name NULL: DP_MOST_NAMED elements.  what is the operator, for errors.  Their number.
 */
extern int dp_compile_arguments(DpCompiler *c, const char *what, const char *names,
								const DpValue *spec, DpElement *elements);

/* Whether it is a document of arguments, and not of an operator. */
extern bool dp_is_arguments(const DpValue *spec);

/* An operator's node with such arguments, compiled. */
extern DpNode *
dp_compile_named(DpCompiler *c, const DpOperator *op, const char *names, const DpValue *spec);

extern DpNode *dp_node_make(DpCompiler *c, DpNodeEval eval, const DpOperator *op, int nargs);
extern DpNode *dp_node_literal(DpCompiler *c, const DpValue *value);
extern bool dp_node_is_literal(const DpNode *node, DpValue *value);

/* A variable that is seen while c->scope points to it: its slot is new.  Checks the name. */
extern void dp_scope_open(DpCompiler *c, DpScope *scope, const char *name, uint32 namelen);

/* Ends the scopes that were opened since c->scope was saved. */
extern void dp_scopes_close(DpCompiler *c, const DpScope *saved);

/* Raise an error about the specification; the detail is c->where. */
extern void dp_compile_error(DpCompiler *c, const char *fmt, ...) pg_attribute_printf(2, 3)
	pg_attribute_noreturn();
extern void dp_compile_unsupported(DpCompiler *c, const char *fmt, ...) pg_attribute_printf(2, 3)
	pg_attribute_noreturn();

/* ---------------------------------------------------------------- evaluating */

/*
 * The value of an argument; false and type DP_TYPE_EOD if it is missing or was
 * not given.
 */
static inline bool
dp_arg(const DpNode *node, int i, DpExprState *state, DpValue *v)
{
	const DpNode *arg = node->args[i];

	if (arg != NULL && arg->eval(arg, state, v))
		return true;
	v->type = DP_TYPE_EOD;
	v->len = 0;
	return false;
}

/* A value, or an argument, that has to be a whole number and fit an int32. */
extern int32 dp_int_operand(const DpNode *node, const DpValue *v, const char *what);
extern int32 dp_int_arg(const DpNode *node, int i, DpExprState *state, const char *what);

/* Whether a value that dp_arg() gave is missing, null or undefined. */
static inline bool
dp_is_nullish(const DpValue *v)
{
	return v->type == DP_TYPE_NULL || v->type == DP_TYPE_EOD || v->type == DP_TYPE_UNDEFINED;
}

/* Results: each returns true, so that an operator can end with it. */
extern bool dp_result_null(DpValue *result);
extern bool dp_result_bool(DpValue *result, bool b);
extern bool dp_result_int32(DpValue *result, int32 i);
extern bool dp_result_int64(DpValue *result, int64 i);
extern bool dp_result_double(DpValue *result, double d);
extern bool dp_result_date(DpValue *result, int64 ms);
extern bool dp_result_string(DpValue *result, const char *s, uint32 len);

/* An int32 if it fits, else an int64. */
extern bool dp_result_integer(DpValue *result, int64 i);

/* A builder for a result, which is refused before it takes more memory than a result may have */
extern void dp_result_builder(DpBuilder *b, Size expected);

/* Does the same for other results, before they grow. */
extern void dp_result_check_size(Size len);

/* The array or document that the builder holds, which must be closed. */
extern bool dp_result_built(DpValue *result, const DpBuilder *b, uint8 type);

/* A string as a value, in memory of the current context: room for len bytes at the result. */
extern char *dp_result_string_room(DpValue *result, uint32 len);

/*
 * Raises an error with the given SQLSTATE that begins with the operator's name: "$add " and the
 * text. The detail contains the path of the operator.
 */
extern void dp_node_error(const DpNode *node, int sqlerrcode, const char *fmt, ...)
	pg_attribute_printf(3, 4) pg_attribute_noreturn();

/* The same for an argument of a wrong type: "$add needs a number, not string". */
extern void dp_node_type_error(const DpNode *node, const char *expected, const DpValue *v)
	pg_attribute_noreturn();

/* The name of a value's type, "missing" for none. */
extern const char *dp_operand_type(const DpValue *v);

/* A whole number from a number that is one, whatever its type.  Returns false if it is not. */
extern bool dp_value_to_int64(const DpValue *v, int64 *i);

/* Elements of an array as an array of values (palloc'd); their number. */
extern int dp_array_values(const DpValue *array, DpValue **values);

/*
 * A memory context for the rounds of a loop, so that what each round leaves
 * behind does not add up: made in the 32nd round, or when that is much.
 */
typedef struct DpLoop
{
	MemoryContext rounds;
	MemoryContext outside;
	Size before; /* bytes there when the loop began */
	int n;
} DpLoop;

extern void dp_loop_begin(DpLoop *loop);
extern void dp_loop_round(DpLoop *loop); /* before each round */
extern void dp_loop_end(DpLoop *loop);

/* ---------------------------------------------------------------- numbers */

/* Sums, products and so on, as MongoDB promotes them: see expression_number.c. */
extern double dp_number_to_double(const DpValue *v);
extern void dp_double_to_decimal(double d, uint8 out[DP_DECIMAL128_SIZE]);
extern void dp_number_to_decimal(const DpValue *v, uint8 out[DP_DECIMAL128_SIZE]);
extern bool dp_decimal_is_nan(const uint8 *d);
extern bool dp_decimal_is_finite(const uint8 *d);
extern bool dp_decimal_is_whole(const uint8 *d); /* NaN, or written without an exponent */
extern int dp_decimal_exponent(const uint8 *d);  /* of a finite one */
extern int dp_decimal_sign(const uint8 *d);      /* of NaN: 0 */

typedef enum DpDecimalOp
{
	DP_DECIMAL_ADD,
	DP_DECIMAL_SUBTRACT,
	DP_DECIMAL_MULTIPLY,
	DP_DECIMAL_DIVIDE, /* by 0: infinity or NaN */
	DP_DECIMAL_MODULO  /* truncates; by 0: NaN */
} DpDecimalOp;

extern void
dp_decimal_combine(DpDecimalOp op, const uint8 *a, const uint8 *b, uint8 out[DP_DECIMAL128_SIZE]);

typedef enum DpRounding
{
	DP_ROUND_HALF_EVEN,
	DP_ROUND_TRUNCATE,
	DP_ROUND_FLOOR,
	DP_ROUND_CEILING
} DpRounding;

/* Rounds a number to so many digits after the point (before it, if negative); the type stays. */
extern bool dp_result_rounded(DpValue *result, const DpValue *v, DpRounding rounding, int place);
extern bool dp_result_decimal(DpValue *result, const uint8 *d);

/* A running sum as $add and $sum make it. */
typedef struct DpSum
{
	uint8 type; /* INT32, INT64, DOUBLE or DECIMAL128 */
	int64 i;
	double d;
	double rest; /* what d lost by rounding */
	uint8 decimal[DP_DECIMAL128_SIZE];
} DpSum;

extern void dp_sum_init(DpSum *sum);
extern void dp_sum_add(DpSum *sum, const DpValue *v);
extern bool dp_result_sum(DpValue *result, const DpSum *sum);

/* ---------------------------------------------------------------- shared between families */

/* The text of a number, bool, date and so on, as $toString and $concat see it; palloc'd. */
extern char *dp_value_as_string(const DpValue *v, uint32 *len);

#endif /* DP_MQL_EXPRESSION_NODE_H */
