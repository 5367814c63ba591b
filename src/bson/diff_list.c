/*
 * diff_list.c
 *		The paths at which two documents differ.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/builder.h"
#include "bson/diff.h"
#include "bson/diff_align.h"

/* Where the walk is: the names on the way down, one for each container */
typedef struct Walk
{
	DpDiffVisit visit;
	void *arg;
	bool stopped;
	int depth;
	int cap;
	const char **names;
	uint32 *lens;
} Walk;

static void walk_values(Walk *walk, const DpValue *before, const DpValue *after);
static void walk_documents(Walk *walk, const DpValue *before, const DpValue *after);
static void walk_arrays(Walk *walk, const DpValue *before, const DpValue *after);
static void members_of(const DpValue *container, DpMembers *members);
static int32 *reversed(const int32 *match, uint32 n, uint32 nfrom);
static void
down(Walk *walk, const char *name, uint32 namelen, const DpValue *before, const DpValue *after);
static void down_position(Walk *walk, uint32 position, const DpValue *before, const DpValue *after);
static void tell(Walk *walk, const DpValue *before, const DpValue *after);

void
dp_diff_each(const uint8 *from, uint32 fromsize, const uint8 *to, uint32 tosize, DpDiffVisit visit,
			 void *arg)
{
	DpValue before = { from, fromsize, DP_TYPE_DOCUMENT };
	DpValue after = { to, tosize, DP_TYPE_DOCUMENT };
	Walk walk = { .visit = visit, .arg = arg, .cap = 8 };

	walk.names = palloc(walk.cap * sizeof(char *));
	walk.lens = palloc(walk.cap * sizeof(uint32));
	walk_values(&walk, &before, &after);
	pfree(walk.names);
	pfree(walk.lens);
}

/*
 * Two values at the same path, of which one may be missing.
 */
static void
walk_values(Walk *walk, const DpValue *before, const DpValue *after)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (before && after)
	{
		if (dp_value_identical(before, after))
			return;
		if (before->type == DP_TYPE_DOCUMENT && after->type == DP_TYPE_DOCUMENT)
		{
			walk_documents(walk, before, after);
			return;
		}
		if (before->type == DP_TYPE_ARRAY && after->type == DP_TYPE_ARRAY &&
			dp_array_is_plain(before) && dp_array_is_plain(after))
		{
			walk_arrays(walk, before, after);
			return;
		}
	}
	tell(walk, before, after);
}

/* Changed or removed members in the old order, then new ones. */
static void
walk_documents(Walk *walk, const DpValue *before, const DpValue *after)
{
	DpMembers a;
	DpMembers b;
	int32 *match;
	int32 *to;
	bool found = false;

	members_of(before, &a);
	members_of(after, &b);
	match = dp_members_align(&a, &b, false, false);
	to = reversed(match, b.n, a.n);
	for (uint32 i = 0; i < a.n && !walk->stopped; i++)
	{
		const DpElement *e = &a.elements[i];
		const DpValue *now = to[i] >= 0 ? &b.elements[to[i]].value : NULL;

		if (now && dp_value_identical(&e->value, now))
			continue;
		found = true;
		down(walk, e->name, e->namelen, &e->value, now);
	}
	for (uint32 j = 0; j < b.n && !walk->stopped; j++)
	{
		const DpElement *e = &b.elements[j];

		if (match[j] >= 0)
			continue;
		found = true;
		down(walk, e->name, e->namelen, NULL, &e->value);
	}
	if (!found)
		tell(walk, before, after); /* the same members in another order */
	pfree(a.elements);
	pfree(b.elements);
	pfree(match);
	pfree(to);
}

/* Elements in order; removed elements come before inserted ones at the same position. */
static void
walk_arrays(Walk *walk, const DpValue *before, const DpValue *after)
{
	DpMembers a;
	DpMembers b;
	int32 *match;
	uint32 i = 0;

	members_of(before, &a);
	members_of(after, &b);
	match = dp_members_align(&a, &b, true, true);
	for (uint32 j = 0; j <= b.n && !walk->stopped; j++)
	{
		if (j == b.n || match[j] >= 0)
		{
			uint32 end = j == b.n ? a.n : match[j];

			for (; i < end && !walk->stopped; i++)
				down_position(walk, i, &a.elements[i].value, NULL);
		}
		if (j == b.n || walk->stopped)
			break;
		if (match[j] < 0)
			down_position(walk, j, NULL, &b.elements[j].value);
		else
		{
			if (!dp_value_identical(&a.elements[i].value, &b.elements[j].value))
				down_position(walk, j, &a.elements[i].value, &b.elements[j].value);
			i++;
		}
	}
	pfree(a.elements);
	pfree(b.elements);
	pfree(match);
}

static void
members_of(const DpValue *container, DpMembers *members)
{
	DpIter iter;

	dp_iter_init_value(&iter, container);
	dp_members_read(&iter, members);
}

/* The result of dp_members_align() from the other side: palloc'd. */
static int32 *
reversed(const int32 *match, uint32 n, uint32 nfrom)
{
	int32 *result = palloc_extended(Max((Size) nfrom, 1) * sizeof(int32), MCXT_ALLOC_HUGE);

	for (uint32 i = 0; i < nfrom; i++)
		result[i] = -1;
	for (uint32 j = 0; j < n; j++)
		if (match[j] >= 0)
			result[match[j]] = j;
	return result;
}

/* The values at a path one longer. */
static void
down(Walk *walk, const char *name, uint32 namelen, const DpValue *before, const DpValue *after)
{
	if (walk->depth == walk->cap)
	{
		walk->cap *= 2;
		walk->names = repalloc(walk->names, walk->cap * sizeof(char *));
		walk->lens = repalloc(walk->lens, walk->cap * sizeof(uint32));
	}
	walk->names[walk->depth] = name;
	walk->lens[walk->depth] = namelen;
	walk->depth++;
	walk_values(walk, before, after);
	walk->depth--;
}

static void
down_position(Walk *walk, uint32 position, const DpValue *before, const DpValue *after)
{
	char digits[12];
	uint32 len = dp_index_name(position, digits);

	down(walk, digits, len, before, after);
}

static void
tell(Walk *walk, const DpValue *before, const DpValue *after)
{
	DpPath *path = dp_path_of_names(walk->depth, walk->names, walk->lens);

	if (!walk->visit(path, before, after, walk->arg))
		walk->stopped = true;
	pfree(path);
}
