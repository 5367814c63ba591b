/*
 * read.c
 *		The document versioning pattern: finds the revision valid at a time, and
 *		its document.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/diff.h"
#include "bson/reader.h"
#include "bson/validate.h"
#include "patterns/versioning/versioning.h"

static bool since_of(DpRevisionStore *s, const DpRevision *r, TimestampTz *since, bool *has_since);

/*
 * Rows above the revision are read until one has a whole document in front of
 * it; the differences in between lead from there down.
 */
DpVersionFound
dp_revisions_document(DpRevisionStore *s, const DpKey *key, int64 revision, struct varlena *live,
					  bool bare, struct varlena **doc)
{
	struct varlena **deltas = NULL;
	List **kept = NULL; /* of the revisions that they belong to */
	List *own;
	int n = 0;
	int cap = 0;
	struct varlena *base = NULL;
	DpRevision r;
	DpVersionFound found = DP_VERSION_FOUND;
	int64 expected = revision + 1;
	bool newest = true;

	dp_revisions_begin(s, key, revision, expected + DP_VERSION_DISTANCE - 1);
	if (!dp_revisions_next(s, &r) || r.revision != revision)
		return DP_VERSION_UNKNOWN;
	own = dp_revision_kept(&r);
	while (found == DP_VERSION_FOUND && base == NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!dp_revisions_next(s, &r))
		{
			/* the newest, or a chain that is longer than those that are written now */
			if ((expected - revision - 1) % DP_VERSION_DISTANCE != 0 || expected == revision + 1)
				break;
			dp_revisions_begin(s, key, expected, expected + DP_VERSION_DISTANCE - 1);
			if (!dp_revisions_next(s, &r))
				break;
		}
		newest = false;
		if (r.revision != expected++)
			found = DP_VERSION_UNKNOWN;
		else if (r.previous != NULL)
			base = (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(r.previous));
		else if (r.operation == DP_VERSION_INSERT)
			found = DP_VERSION_ABSENT;
		else if (r.delta == NULL)
			continue; /* it is the same document */
		else
		{
			struct varlena *delta =
				(struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(r.delta));

			if (VARSIZE_ANY_EXHDR(delta) == 0)
				found = DP_VERSION_UNKNOWN;
			if (n == cap)
			{
				cap = cap == 0 ? 32 : cap * 2;
				deltas = deltas == NULL ? palloc(cap * sizeof(*deltas))
										: repalloc(deltas, cap * sizeof(*deltas));
				kept = kept == NULL ? palloc(cap * sizeof(*kept))
									: repalloc(kept, cap * sizeof(*kept));
			}
			kept[n] = dp_revision_kept(&r);
			deltas[n++] = delta;
		}
	}
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
		next = dp_versioning_bare(kept[n], base);
		if (next != base && base != live)
			pfree(base);
		base = next;
		next = dp_diff_apply(DP_DOC_DATA(deltas[n]), DP_DOC_SIZE(deltas[n]), DP_DOC_DATA(base),
							 DP_DOC_SIZE(base));
		pfree(deltas[n]);
		if (base != live)
			pfree(base);
		base = next;
	}
	if (deltas != NULL)
	{
		DpFault fault;

		if (!dp_validate(DP_DOC_DATA(base), DP_DOC_SIZE(base), &fault))
			dp_corrupted(fault.what);
		pfree(deltas);
		pfree(kept);
	}
	*doc = newest && !bare ? live : dp_versioning_bare(own, base);
	return DP_VERSION_FOUND;
}

/* Revisions before the newest that are looked at one by one */
#define NEAR 4

/*
 * Stamps rise with the revisions.  The newest are looked at first.  Of those
 * before them the one is guessed that is as far between the oldest and these as
 * the time is, or, every other time, that in the middle.
 */
bool
dp_revisions_at(DpRevisionStore *s, const DpKey *key, int64 newest_number, TimestampTz at,
				DpRevision *r, TimestampTz *since, bool *has_since, TimestampTz *until,
				bool *has_until, bool *newest)
{
	int64 low;  /* was valid */
	int64 high; /* from a later change */
	TimestampTz low_time;
	TimestampTz high_time = 0;
	DpRevision found;
	TimestampTz t = 0;
	bool has;
	bool halve = false;

	*has_until = false;
	*newest = false;
	*has_since = true;
	if (newest_number > 0)
	{
		dp_revisions_begin(s, key, newest_number - NEAR, newest_number);
		if (!dp_revisions_before(s, r))
			newest_number = 0;
	}
	if (newest_number <= 0 && !dp_revisions_last(s, key, r))
		return false;
	if (since_of(s, r, &t, &has) && t <= at)
	{
		*newest = true;
		*since = t;
		return true;
	}
	if (!has && TIMESTAMP_IS_NOEND(at))
	{
		*newest = true; /* this transaction's own */
		*has_since = false;
		return true;
	}

	/* those just before are read on the way */
	high = r->revision;
	for (int i = 0;; i++)
	{
		*until = high_time = t;
		*has_until = has;
		if (i == NEAR || !dp_revisions_before(s, &found))
			break;
		if (since_of(s, &found, &t, &has) && t <= at)
		{
			*r = found;
			*since = t;
			return true;
		}
		high = found.revision;
	}

	/* the oldest */
	if (!dp_revisions_find(s, key, 1, &found))
	{
		dp_revisions_begin(s, key, PG_INT64_MIN, high);
		if (!dp_revisions_next(s, &found))
			return false;
	}
	if (!since_of(s, &found, &t, &has) || t > at)
		return false;
	*r = found;
	*since = low_time = t;
	low = found.revision;
	while (high - low > 1)
	{
		int64 middle = low + (high - low) / 2;

		CHECK_FOR_INTERRUPTS();
		if (!halve && *has_until && high_time > low_time)
		{
			double part =
				((double) at - (double) low_time) / ((double) high_time - (double) low_time);

			middle = low + (int64) (part * (double) (high - low));
			middle = Max(Min(middle, high - 1), low + 1);
		}
		halve = !halve;
		if (!dp_revisions_find(s, key, middle, &found))
			return false; /* one is missing: pattern_check() reports it */
		if (since_of(s, &found, &t, &has) && t <= at)
		{
			low = middle;
			low_time = t;
			*r = found;
			*since = t;
		}
		else
		{
			high = middle;
			*until = high_time = t;
			*has_until = has;
		}
	}
	return true;
}

/* Since when a revision is valid: false, and has false, where its transaction has not committed. */
static bool
since_of(DpRevisionStore *s, const DpRevision *r, TimestampTz *since, bool *has_since)
{
	*has_since = dp_revisions_since(s, r->change, since, NULL, NULL);
	return *has_since;
}
