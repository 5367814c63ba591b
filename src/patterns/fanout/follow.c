/*
 * follow.c
 *		The fan-out pattern: added and removed follows, and authors that cross the
 *		threshold.
 *
 * Follows are read after author and reader were locked, so that the result does
 * not depend on the order in which statements are handled.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "kit/derive/batch.h"
#include "patterns/fanout/fanout.h"

/* An author whose new state is passed to followers */
typedef struct Crossing
{
	DpFanout *f;
	DpDeriveBatch *batch;
	DpFanoutAuthor *author;
	DpFanoutStanding standing;
} Crossing;

static void follows_taken(DpFanout *f, DpDeriveBatch *batch, DpChanges *changes);
static void run_finish(DpDeriveBatch *batch, bool nested);
static void author_finish(DpFanout *f, DpDeriveBatch *batch, DpFanoutAuthor *author, bool nested);
static void author_top(DpFanout *f, DpDeriveBatch *batch, DpFanoutAuthor *author);
static void crossing_visit(void *arg, const DpValue *value);
static void stand_add(DpGroup *reader, DpFanoutAuthor *author, DpFanoutStanding standing);

void
dp_fanout_follows_changed(DpChanges *changes)
{
	List *fanouts = NIL;
	List *whole = NIL;
	DpDeriveBatch *batch;
	ListCell *lc;

	foreach(lc, dp_source_decls(dp_changes_table(changes)))
	{
		DpSourceDecl *used = lfirst(lc);
		DpFanout *f;

		if (used->is_main || strcmp(used->decl->pattern, "fanout") != 0 ||
			!dp_decl_maintained(used->decl))
			continue;
		f = dp_fanout(used->decl);
		if (f->follow_link_id != NULL && strcmp(f->follow_link_id, used->link_id) == 0 &&
			OidIsValid(f->derivation->target) && f->followers != NULL)
		{
			fanouts = lappend(fanouts, f);
			whole = lappend(whole, f->derivation);
		}
	}
	if (fanouts == NIL)
		return;
	batch = dp_derive_begin();
	foreach(lc, fanouts)
		follows_taken(lfirst(lc), batch, changes);
	run_finish(batch, dp_changes_pending(dp_changes_table(changes)));
	if (dp_changes_wholly(changes))
		(void) dp_derive_whole(whole, false, true);
}

/* Adds the changes of a statement on follows to the batch of one fan-out. */
static void
follows_taken(DpFanout *f, DpDeriveBatch *batch, DpChanges *changes)
{
	DpChange change;
	MemoryContext row =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns follow", ALLOCSET_DEFAULT_SIZES);

	dp_changes_rewind(changes);
	while (dp_changes_next(changes, &change))
	{
		MemoryContext old = MemoryContextSwitchTo(row);
		TupleTableSlot *slots[2] = { change.before, change.after };
		DpValue author[2];
		DpValue reader[2];
		bool has[2] = { false, false };
		int i;

		for (i = 0; i < 2; i++)
		{
			struct varlena *doc;

			if (slots[i] == NULL)
				continue;
			doc = dp_source_document(slots[i], f->followers->doc_column);
			has[i] = dp_fanout_name(f->followee, doc, &author[i]) &&
					 dp_fanout_name(f->follower, doc, &reader[i]);
		}
		if (!(has[0] && has[1] && dp_value_compare(&author[0], &author[1]) == 0 &&
			  dp_value_compare(&reader[0], &reader[1]) == 0))
		{
			for (i = 0; i < 2; i++)
			{
				DpFanoutAuthor *a;

				if (!has[i])
					continue;
				a = dp_fanout_author(dp_fanout_author_group(f, batch, &author[i]));
				a->delta += i == 1 ? 1 : -1;
				if (reader[i].type != DP_TYPE_ARRAY && reader[i].type != DP_TYPE_REGEX)
				{
					MemoryContextSwitchTo(dp_derive_memory(batch));
					a->readers =
						lappend(a->readers, dp_derive_group(batch, f->derivation, &reader[i]));
					MemoryContextSwitchTo(row);
				}
			}
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(row);
	}
	MemoryContextDelete(row);
}

/*
 * Called after all follows of the statement were added: locks their authors and readers and
 * corrects the walls.
 */
static void
run_finish(DpDeriveBatch *batch, bool nested)
{
	DpGroup **groups;
	DpGroup *group;
	int n = 0;
	int i;

	groups = MemoryContextAllocExtended(batch->context, sizeof(DpGroup *) * Max(batch->ngroups, 1),
										MCXT_ALLOC_HUGE);
	for (group = batch->groups; group != NULL; group = group->next)
		groups[n++] = group;
	if (n == 0)
	{
		(void) dp_derive_end(batch, false);
		return;
	}
	dp_derive_lock_groups(groups, n, ExclusiveLock);
	CommandCounterIncrement();
	SPI_connect();
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (dp_fanout_is_author(groups[i]))
			author_finish(dp_fanout(groups[i]->derivation->decl), batch,
						  dp_fanout_author(groups[i]), nested);
	}
	SPI_finish();
	(void) dp_derive_end(batch, false);
}

/*
 * Determines the state of an author. Inside another statement on follows that has not been handled
 * yet, the former number of follows is unknown: then informs all followers.
 */
static void
author_finish(DpFanout *f, DpDeriveBatch *batch, DpFanoutAuthor *author, bool nested)
{
	int64 moved = author->delta < 0 ? -author->delta : author->delta;
	int64 now = dp_fanout_count(f, &author->author, f->threshold + 1 + moved, true);
	bool celebrity = now > f->threshold;
	ListCell *lc;

	author->gathered = true;
	if (!celebrity)
		author_top(f, batch, author);
	foreach(lc, author->readers)
	{
		DpGroup *reader = lfirst(lc);
		bool follows = dp_fanout_follows(f, &reader->key, &author->author);

		stand_add(reader, author,
				  !follows    ? FANOUT_NONE
				  : celebrity ? FANOUT_MERGED
							  : FANOUT_FANNED);
		if (!follows && !dp_fanout_wall(reader)->unfollowed)
			dp_fanout_wall(reader)->unfollowed = !dp_fanout_follows_any(f, &reader->key);
	}
	if (nested || (now - author->delta > f->threshold) != celebrity)
	{
		Crossing crossing = { f, batch, author, celebrity ? FANOUT_MERGED : FANOUT_FANNED };

		(void) dp_fanout_followers(f, &author->author, 0, crossing_visit, &crossing);
	}
}

static void
crossing_visit(void *arg, const DpValue *value)
{
	Crossing *c = arg;

	stand_add(dp_derive_group(c->batch, c->f->derivation, value), c->author, c->standing);
}

/* Records the state of an author on a wall. */
static void
stand_add(DpGroup *reader, DpFanoutAuthor *author, DpFanoutStanding standing)
{
	MemoryContext old = MemoryContextSwitchTo(dp_derive_memory(reader->batch));
	DpFanoutWall *wall = dp_fanout_wall(reader);
	DpFanoutStand *s = palloc(sizeof(DpFanoutStand));

	s->author = author;
	s->standing = standing;
	wall->stands = lappend(wall->stands, s);
	MemoryContextSwitchTo(old);
}

/* Reads the first posts of an author for new followers, outside of other scans. */
static void
author_top(DpFanout *f, DpDeriveBatch *batch, DpFanoutAuthor *author)
{
	MemoryContext old;

	if (author->top != NULL)
		return;
	old = MemoryContextSwitchTo(batch->context);
	author->top = palloc0(sizeof(DpFanoutEntries));
	dp_fanout_top(f, &author->author, true, author->top);
	MemoryContextSwitchTo(old);
}
