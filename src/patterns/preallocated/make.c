/*
 * make.c
 *		The functions that create shapes: documents that dp_shape_read() accepts.
 *		They raise what that raises.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "patterns/preallocated/shape.h"

static void begin_shape(DpBuilder *b, const char *kind);
static void append_fill(FunctionCallInfo fcinfo, int argno, DpBuilder *b);
static Datum end_shape(DpBuilder *b);

/*
 * preallocated_grid(rows int[], accessible text[], fill anycompatible) -> bson
 */
DP_FUNCTION(dp_preallocated_grid);
Datum
dp_preallocated_grid(PG_FUNCTION_ARGS)
{
	DpBuilder b;

	begin_shape(&b, "grid");
	dp_builder_append_datum(&b, "rows", 4, PG_ARGISNULL(0) ? (Datum) 0 : PG_GETARG_DATUM(0),
							PG_ARGISNULL(0), INT4ARRAYOID);
	append_fill(fcinfo, 2, &b);
	if (!PG_ARGISNULL(1))
		dp_builder_append_datum(&b, "accessible", 10, PG_GETARG_DATUM(1), false, TEXTARRAYOID);
	return end_shape(&b);
}

/*
 * preallocated_pool(n int, fill anycompatible) -> bson
 */
DP_FUNCTION(dp_preallocated_pool);
Datum
dp_preallocated_pool(PG_FUNCTION_ARGS)
{
	DpBuilder b;

	begin_shape(&b, "pool");
	dp_builder_append_datum(&b, "n", 1, PG_ARGISNULL(0) ? (Datum) 0 : PG_GETARG_DATUM(0),
							PG_ARGISNULL(0), INT4OID);
	append_fill(fcinfo, 1, &b);
	return end_shape(&b);
}

/*
 * preallocated_clock(units text[], fill anycompatible) -> bson
 */
DP_FUNCTION(dp_preallocated_clock);
Datum
dp_preallocated_clock(PG_FUNCTION_ARGS)
{
	DpBuilder b;

	begin_shape(&b, "clock");
	dp_builder_append_datum(&b, "units", 5, PG_ARGISNULL(0) ? (Datum) 0 : PG_GETARG_DATUM(0),
							PG_ARGISNULL(0), TEXTARRAYOID);
	append_fill(fcinfo, 1, &b);
	return end_shape(&b);
}

/* The document and its kind. */
static void
begin_shape(DpBuilder *b, const char *kind)
{
	dp_builder_init(b, 0);
	dp_builder_begin_document(b);
	dp_builder_append_string(b, "kind", 4, kind, strlen(kind));
}

/* The value of free cells, any SQL value; 0 if not specified. */
static void
append_fill(FunctionCallInfo fcinfo, int argno, DpBuilder *b)
{
	if (PG_ARGISNULL(argno))
		dp_builder_append_int32(b, "fill", 4, 0);
	else
		dp_builder_append_datum(b, "fill", 4, PG_GETARG_DATUM(argno), false,
								get_fn_expr_argtype(fcinfo->flinfo, argno));
}

/* Checks the shape. */
static Datum
end_shape(DpBuilder *b)
{
	struct varlena *shape;

	dp_builder_end(b);
	shape = dp_builder_finish_bson(b);
	(void) dp_shape_read(DP_DOC_DATA(shape), DP_DOC_SIZE(shape));
	return PointerGetDatum(shape);
}
