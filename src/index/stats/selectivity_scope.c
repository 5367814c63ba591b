/*
 * selectivity_scope.c
 *		Matches paths in filters, arguments and documents with the paths in statistics, seen
 *		from the document of a row or from one of the documents in an array; and containment.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"

#include "index/stats/selectivity_path.h"

double
dp_scope_unknown(const DpEstimator *estimator)
{
	double least = 0.5 / Max(estimator->documents, 1.0);

	/* a path that is not there is rarer than those that are */
	return estimator->stats->complete ? least : Max(estimator->stats->lowest / 2, least);
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *) a;
	double y = *(const double *) b;

	return (x > y) - (x < y);
}

/*
 * Conditions that people put together often have to do with each other, so
 * beyond the most selective each counts less than it would by itself: its
 * square root, its fourth root and so on.
 */
double
dp_combine(double *probabilities, int n)
{
	double result = 1.0;
	double exponent = 1.0;

	qsort(probabilities, n, sizeof(double), compare_doubles);
	for (int i = 0; i < n; i++)
	{
		result *= pow(Min(Max(probabilities[i], 0.0), 1.0), exponent);
		exponent /= 2;
	}
	return result;
}

/* ---------------------------------------------------------------- paths */

void
dp_scope_lookup(const DpEstimator *estimator, const DpScope *scope, const DpPath *path,
				DpKnown *known)
{
	uint32 len = scope->keylen;

	known->path = scope->base;
	known->near = scope->base;
	known->position = 1.0;
	known->positional = false;
	if (len > DP_KEY_MAX)
		len = 0;
	if (len > 0)
		memcpy(known->key, scope->key, len);
	for (int i = 0; i < path->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];
		const DpPathStats *next = NULL;

		if (len + step->namelen + 1 > DP_KEY_MAX)
		{
			known->path = NULL;
			break;
		}
		memcpy(known->key + len, step->name, step->namelen);
		known->key[len + step->namelen] = '\0';
		if (estimator->stats != NULL)
			next = dp_stats_find(estimator->stats, known->key, len + step->namelen + 1);
		if (next == NULL && step->is_index && known->path != NULL && known->path->arrays > 0)
		{
			/* a position in an array; the last one counts from the end */
			int64 position = step->index < 0 ? -(int64) step->index - 1 : step->index;

			known->position *= dp_path_longer(known->path, position);
			if (known->path->reached > 0)
				known->position *= known->path->arrays / known->path->reached;
			known->positional = true;
			continue;
		}
		len += step->namelen + 1;
		known->path = next;
		if (next != NULL)
			known->near = next;
	}
	known->keylen = len;
}

double
dp_scope_any(const DpScope *scope, const DpKnown *known, const DpShare *share)
{
	const DpPathStats *path = known->path;
	double result;

	switch (scope->kind)
	{
		case DP_SCOPE_ELEMENT:
			return path->elements > 0 ? Min(share->items / path->elements, 1.0) : 0;
		case DP_SCOPE_CONTAINER:
		{
			double each = scope->base->documents > 0 ? path->items / scope->base->documents : 0;
			double part = path->items > 0 ? Min(share->items / path->items, 1.0) : 0;

			if (known->positional)
				return known->position * part;
			return each <= 1.0 ? each * part : 1.0 - pow(1.0 - part, each);
		}
		default:
			result = dp_path_any(path, share);
			if (known->positional)
			{
				/* one of the items only */
				double part = path->items > 0 ? Min(share->items / path->items, 1.0) : 0;

				result = Min(result, path->item_docs * known->position * part);
			}
			return result;
	}
}

double
dp_scope_scale(const DpScope *scope, const DpKnown *known, double documents)
{
	const DpPathStats *path = known->path;

	if (scope->kind == DP_SCOPE_DOCUMENT)
		return documents * known->position;
	if (path->reached <= 0)
		return 0;
	/* as many of the values as of the documents that have any */
	documents /= path->reached;
	if (scope->kind == DP_SCOPE_CONTAINER)
		documents *=
			scope->base->documents > 0 ? Min(path->values / scope->base->documents, 1.0) : 0;
	return Min(documents, 1.0);
}

double
dp_scope_exists(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known)
{
	if (known->path == NULL)
		return dp_scope_unknown(estimator);
	return scope->kind == DP_SCOPE_ELEMENT ? 1.0
										   : dp_scope_scale(scope, known, known->path->reached);
}

double
dp_scope_null(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known)
{
	const DpPathStats *path = known->path;

	if (scope->kind == DP_SCOPE_DOCUMENT && !known->positional)
	{
		if (path != NULL)
			return path->nullish;
		return 1.0 - (known->near != NULL ? known->near->barren : 0) - dp_scope_unknown(estimator);
	}
	if (path == NULL)
		return 1.0;
	if (scope->kind == DP_SCOPE_ELEMENT)
		return dp_scope_scale(scope, known, path->types[DP_TYPE_NULL]);
	return 1.0 - dp_scope_scale(scope, known, path->reached - path->types[DP_TYPE_NULL]);
}

/* ---------------------------------------------------------------- containment */

double
dp_estimate_direct_equal(const DpEstimator *estimator, const DpKnown *known, const DpValue *value)
{
	const DpPathStats *path = known->path;
	int type = dp_stats_type_number(value->type);
	DpShare share;
	double result;

	if (path == NULL)
		return dp_scope_unknown(estimator);
	if (value->type == DP_TYPE_NULL || value->type == DP_TYPE_UNDEFINED)
		return known->positional ? path->types[type] * known->position : path->direct_types[type];
	if (dp_type_is_container(value->type))
	{
		DpScope scope = { DP_SCOPE_DOCUMENT, NULL, known->key, known->keylen };

		result = known->positional ? path->types[type] * known->position : path->direct_types[type];
		if (value->type == DP_TYPE_ARRAY)
			result *= dp_path_length(path, dp_document_count(value->data, value->len));
		return Min(result, dp_estimate_contains(estimator, &scope, value));
	}
	share = dp_path_share_equal(estimator, path, value);
	if (known->positional)
		return path->items > 0
				   ? path->item_docs * known->position * Min(share.items / path->items, 1.0)
				   : 0;
	if (!path->multiple && path->item_docs > 0)
		return share.docs * path->scalar / path->item_docs;
	return path->items > 0 ? path->scalar * Min(share.items / path->items, 1.0) : 0;
}

/* Containment at a path. */
static double
contains_value(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known,
			   const DpValue *value)
{
	const DpPathStats *path = known->path;
	DpShare share;

	if (path == NULL)
		return dp_scope_unknown(estimator);
	switch (value->type)
	{
		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
		{
			DpScope inner = { scope->kind, scope->base, known->key, known->keylen };
			DpIter iter;
			DpValue element;
			double result;

			if (value->type == DP_TYPE_DOCUMENT)
			{
				result = dp_scope_scale(scope, known, path->types[DP_TYPE_DOCUMENT]);
				return Min(result, dp_estimate_contains(estimator, &inner, value));
			}
			result = dp_scope_scale(scope, known, path->arrays);
			inner.kind = DP_SCOPE_CONTAINER;
			inner.base = path;
			dp_iter_init_value(&iter, value);
			while (dp_iter_next_value(&iter, &element))
			{
				double each;

				if (element.type == DP_TYPE_DOCUMENT)
				{
					DpScope outer = { DP_SCOPE_DOCUMENT, path, known->key, known->keylen };
					double any = dp_estimate_contains(estimator, &outer, &element);

					/* not more than have its fields in any elements; as many if it has one */
					each = dp_estimate_contains(estimator, &inner, &element);
					each = dp_path_any_element(path, each * Min(path->documents /
																	Max(path->elements, 1e-9),
																1.0));
					each = dp_document_count(element.data, element.len) == 1 ? any : Min(each, any);
				}
				else if (element.type == DP_TYPE_ARRAY || element.type == DP_TYPE_NULL ||
						 element.type == DP_TYPE_UNDEFINED)
					each = path->types[dp_stats_type_number(element.type)];
				else
				{
					share = dp_path_share_equal(estimator, path, &element);
					each = dp_path_any(path, &share);
				}
				if (path->arrays > 0)
					result *= Min(each / path->arrays, 1.0);
			}
			return result;
		}
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
			return dp_scope_scale(scope, known, path->types[dp_stats_type_number(value->type)]);
		default:
			if (scope->kind == DP_SCOPE_DOCUMENT && scope->base == NULL)
				return dp_estimate_direct_equal(estimator, known, value);
			share = dp_path_share_equal(estimator, path, value);
			return dp_scope_any(scope, known, &share);
	}
}

double
dp_estimate_contains(const DpEstimator *estimator, const DpScope *scope, const DpValue *document)
{
	double each[DP_COMBINE_MAX];
	int n = 0;
	DpIter iter;
	DpElement field;
	DpKnown known;

	check_stack_depth();
	if (document->type == DP_TYPE_ARRAY)
	{
		known.path = dp_stats_find(estimator->stats, scope->key, scope->keylen);
		known.position = 1.0;
		known.positional = false;
		memcpy(known.key, scope->key, scope->keylen);
		known.keylen = scope->keylen;
		return contains_value(estimator, scope, &known, document);
	}
	dp_iter_init_value(&iter, document);
	while (dp_iter_next(&iter, &field))
	{
		DpPath *path = dp_path_of_name(field.name, field.namelen);

		/* a name is a name here, also when it is a number */
		path->steps[0].is_index = false;
		dp_scope_lookup(estimator, scope, path, &known);
		dp_combine_add(each, &n, contains_value(estimator, scope, &known, &field.value));
		pfree(path);
	}
	return dp_combine(each, n);
}
