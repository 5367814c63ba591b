/*
 * percentile.c
 *		Percentiles of numbers.
 */
#include "postgres.h"

#include <math.h>

#include "bson/path.h"
#include "mql/expression_node.h"
#include "mql/percentile.h"

bool
dp_percentile_method(const DpValue *method, bool *continuous)
{
	const char *name = method->type == DP_TYPE_STRING ? DP_STRING_DATA(method) : "";

	*continuous = strcmp(name, "continuous") == 0;
	return *continuous || strcmp(name, "approximate") == 0 || strcmp(name, "discrete") == 0;
}

int
dp_percentile_points(const DpValue *array, double **points)
{
	DpIter iter;
	DpValue v;
	int n = 0;

	if (array->type != DP_TYPE_ARRAY)
		return 0;
	*points = palloc(sizeof(double) * dp_array_count(array->data, array->len));
	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &v))
	{
		double p = dp_type_is_number(v.type) ? dp_number_to_double(&v) : -1;

		if (!(p >= 0 && p <= 1))
			return 0;
		(*points)[n++] = p;
	}
	return n;
}

static int
double_order(const void *a, const void *b)
{
	double x = *(const double *) a;
	double y = *(const double *) b;

	return (x > y) - (x < y);
}

void
dp_percentile_sort(double *numbers, int64 n)
{
	if (n > 1)
		qsort(numbers, n, sizeof(double), double_order);
}

double
dp_percentile(const double *sorted, int64 n, double point, bool continuous)
{
	double place = point * (double) (n - 1);
	int64 at = (int64) floor(place);

	if (!continuous)
		return sorted[Max((int64) ceil(point * (double) n) - 1, 0)];
	if ((double) at == place || sorted[at] == sorted[at + 1])
		return sorted[at];
	return sorted[at] + (sorted[at + 1] - sorted[at]) * (place - (double) at);
}

void
dp_percentiles_append(DpBuilder *b, const double *sorted, int64 n, const double *points,
					  int npoints, bool continuous)
{
	dp_builder_begin_array(b);
	for (int i = 0; i < npoints; i++)
	{
		if (n == 0)
			dp_builder_append_null(b, NULL, 0);
		else
			dp_builder_append_double(b, NULL, 0, dp_percentile(sorted, n, points[i], continuous));
	}
	dp_builder_end(b);
}
