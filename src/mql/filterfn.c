/*
 * filterfn.c
 *		The SQL functions of filters.
 */
#include "postgres.h"

#include "mql/filter.h"
#include "mql/spec.h"

/*
 * bson_match(doc, filter), doc @@ filter: whether the document matches.
 */
DP_FUNCTION(dp_bson_match);
Datum
dp_bson_match(PG_FUNCTION_ARGS)
{
	DpFilter *filter = dp_spec_arg(fcinfo, 1, dp_filter_compile_spec, NULL);

	PG_RETURN_BOOL(dp_filter_match_datum(filter, PG_GETARG_DATUM(0)));
}
