/*
 * versioning_read.c
 *		The document versioning pattern: which revision was valid, and what the
 *		document was then.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/diff.h"
#include "bson/reader.h"
#include "bson/validate.h"
#include "patterns/versioning.h"

static bool since_of(DpRevisionStore *s, const DpRevision *r, TimestampTz *since, bool *has_since);

/*
 * Rows above the revision are read until one has a whole document in front of
 * it; the differences in between lead from there down.
 */
DpVersionFound
dp_revisions_document(DpRevisionStore *s, const DpKey *key, int64 revision,
					 struct varlena *live, struct varlena **doc)
{
	struct varlena **deltas = NULL;
	int			n = 0;
	int			cap = 0;
	struct varlena *base = NULL;
	DpRevision	r;
	DpVersionFound found = DP_VERSION_FOUND;
	int64		expected = revision + 1;

	dp_revisions_begin(s, key, revision + 1);
	while (found == DP_VERSION_FOUND && base == NULL && dp_revisions_next(s, &r))
	{
		CHECK_FOR_INTERRUPTS();
		if (r.revision != expected++)
			found = DP_VERSION_UNKNOWN;
		else if (r.previous != NULL)
			base = (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(r.previous));
		else if (r.operation == DP_VERSION_INSERT)
			found = DP_VERSION_ABSENT;
		else if (r.delta == NULL)
			continue;			/* it is the same document */
		else
		{
			struct varlena *delta = (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(r.delta));

			if (VARSIZE_ANY_EXHDR(delta) == 0)
				found = DP_VERSION_UNKNOWN;
			if (n == cap)
			{
				cap = cap == 0 ? 32 : cap * 2;
				deltas = deltas == NULL ? palloc(cap * sizeof(*deltas)) : repalloc(deltas, cap * sizeof(*deltas));
			}
			deltas[n++] = delta;
		}
	}
	dp_revisions_end(s);
	if (found != DP_VERSION_FOUND)
		return found;
	if (base == NULL)
		base = live;
	if (base == NULL)
		return DP_VERSION_UNKNOWN;

	while (n > 0)
	{
		struct varlena *next;

		n--;
		next = dp_diff_apply(DP_DOC_DATA(deltas[n]), DP_DOC_SIZE(deltas[n]),
							 DP_DOC_DATA(base), DP_DOC_SIZE(base));
		pfree(deltas[n]);
		if (base != live)
			pfree(base);
		base = next;
	}
	if (deltas != NULL)
	{
		DpFault		fault;

		if (!dp_validate(DP_DOC_DATA(base), DP_DOC_SIZE(base), &fault))
			dp_corrupted(fault.what);
		pfree(deltas);
	}
	*doc = base;
	return DP_VERSION_FOUND;
}

/*
 * Stamps rise with the revisions.  The newest is looked at first, then those
 * before it in steps that double, and between two of them by halves.
 */
bool
dp_revisions_at(DpRevisionStore *s, const DpKey *key, TimestampTz at, DpRevision *r,
			   TimestampTz *since, bool *has_since, TimestampTz *until, bool *has_until, bool *newest)
{
	int64		low;			/* was valid, or is not there */
	int64		high;			/* came later */
	int64		step = 1;
	DpRevision	found;
	TimestampTz t = 0;
	bool		has;
	bool		is_low = false; /* low was valid: r is that one */

	*has_until = false;
	*newest = false;
	if (!dp_revisions_last(s, key, r))
		return false;
	if (since_of(s, r, &t, &has) && t <= at)
	{
		*newest = true;
		*since = t;
		*has_since = true;
		return true;
	}
	if (!has && TIMESTAMP_IS_NOEND(at))
	{
		*newest = true;			/* this transaction's own */
		*has_since = false;
		return true;
	}
	high = r->revision;
	*until = t;
	*has_until = has;

	for (;;)
	{
		low = high - step;
		if (low < 1 || !dp_revisions_find(s, key, low, &found))
			break;
		if (since_of(s, &found, &t, &has) && t <= at)
		{
			is_low = true;
			*r = found;
			*since = t;
			break;
		}
		high = low;
		*until = t;
		*has_until = has;
		step *= 2;
	}
	low = Max(low, 0);
	while (high - low > 1)
	{
		int64		middle = low + (high - low) / 2;

		CHECK_FOR_INTERRUPTS();
		if (!dp_revisions_find(s, key, middle, &found))
		{
			low = middle;
			is_low = false;
		}
		else if (since_of(s, &found, &t, &has) && t <= at)
		{
			low = middle;
			is_low = true;
			*r = found;
			*since = t;
		}
		else
		{
			high = middle;
			*until = t;
			*has_until = has;
		}
	}
	*has_since = true;
	return is_low;
}

/* Since when a revision is valid: false, and has false, where its transaction has not committed. */
static bool
since_of(DpRevisionStore *s, const DpRevision *r, TimestampTz *since, bool *has_since)
{
	*has_since = dp_revisions_since(s, r->change, since, NULL, NULL);
	return *has_since;
}
