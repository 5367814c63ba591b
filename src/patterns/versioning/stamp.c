/*
 * stamp.c
 *		The document versioning pattern: the time from which a transaction's
 *		writes are valid.
 *
 * A transaction gets a number, its change, when it writes the first revision, and
 * its stamp when it commits, after deferred triggers and notes (so SET CONSTRAINTS
 * cannot make it earlier).  All tables get the same stamp.  A writer of a document
 * waits for earlier writers, so stamps of a document are in the order of its
 * revisions.
 *
 * The clock may be set back, or stand still.  A stamp that would not be later than
 * the latest committed one is moved after it, if the difference is as small as
 * between clocks of one machine; else each document is compared when it changes,
 * so that a few stamps far in the future move no others.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "kit/side/side.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "kit/sql/run.h"
#include "kit/statement.h"
#include "patterns/versioning/versioning.h"

/* Stamps that are so much later than the clock are left to themselves. */
#define CLOCK_TOLERANCE USECS_PER_SEC

/* A change of this transaction that is to be stamped */
typedef struct Change
{
	DpState state;
	Oid target;
	char *name;  /* of the declaration */
	Oid changes; /* its table */
	Oid who;
	int64 number;
	DpKey key;         /* of a document, in TopTransactionContext */
	bool behind;       /* the clock is: floor is kept */
	TimestampTz floor; /* the stamp must be later */
} Change;

static Change *change_of(DpVersioning *v, Oid who, const DpKey *key);
static DpVersioning *versioning_of(Change *c);
static void stamp_all(void);

static DpStates pending = { .outlives = true, .before_commit = stamp_all }; /* of Change */

/*
 * Registered when the library is loaded: callbacks before commit run in reverse order, so that
 * other writes, such as those of notes, come before the stamps.
 */
void
dp_versioning_init(void)
{
	dp_states_hear(&pending);
}

int64
dp_versioning_change(DpVersioning *v, const DpKey *key)
{
	return change_of(v, dp_acting_user(), key)->number;
}

bool
dp_versioning_clock_behind(DpVersioning *v, const DpKey *key)
{
	return change_of(v, dp_acting_user(), key)->behind;
}

void
dp_versioning_later_than(DpVersioning *v, const DpKey *key, TimestampTz since)
{
	Change *c = change_of(v, dp_acting_user(), key);

	c->floor = Max(c->floor, since);
}

bool
dp_versioning_pending(DpVersioning *v, int64 change, Oid *who)
{
	ListCell *lc;

	foreach(lc, pending.list)
	{
		Change *c = lfirst(lc);

		if (c->changes == v->changes && c->number == change)
		{
			*who = c->who;
			return true;
		}
	}
	return false;
}

/*
 * Returns the change of a table and a user in this transaction, created if missing for a document.
 * If Citus distributes the table by key, documents have changes of their own, because a split of
 * the shard separates them.
 */
static Change *
change_of(DpVersioning *v, Oid who, const DpKey *key)
{
	ListCell *lc;
	Change *c;
	Relation rel;
	TimestampTz latest;
	int64 number;
	bool behind;
	MemoryContext old;

	for_each_from(lc, pending.list, v->change_nkeys > 0 ? Max(list_length(pending.list) - 1, 0) : 0)
	{
		c = lfirst(lc);
		if (c->changes == v->changes && c->who == who &&
			(v->change_nkeys == 0 || dp_key_identical(v->decl, &c->key, key)))
			return c;
	}
	rel = table_open(v->changes, RowExclusiveLock);
	number = nextval_internal(dp_identity_sequence(rel, v->change_columns[0]), false);
	table_close(rel, NoLock);
	behind = dp_revisions_latest(v, &latest) && latest > GetCurrentTimestamp() + CLOCK_TOLERANCE;
	c = dp_state_begin(&pending, sizeof(Change));
	c->changes = v->changes;
	c->target = v->decl->target;
	c->name = MemoryContextStrdup(TopTransactionContext, v->decl->name);
	c->who = who;
	c->number = number;
	old = MemoryContextSwitchTo(TopTransactionContext);
	dp_key_copy(v->decl, key, &c->key);
	MemoryContextSwitchTo(old);
	c->behind = behind;
	c->floor = DT_NOBEGIN;
	return c;
}

/*
 * Returns the present declaration of a change; NULL if it was disabled, or its table dropped.
 * (Checks no privileges: any user may commit.)
 */
static DpVersioning *
versioning_of(Change *c)
{
	ListCell *lc;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(c->target)) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(c->changes)))
		return NULL;
	foreach(lc, dp_decls(c->target))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, "versioning") == 0 && strcmp(decl->name, c->name) == 0)
		{
			DpVersioning *v = dp_versioning(decl);

			dp_versioning_require(v);
			return v->changes == c->changes ? v : NULL;
		}
	}
	return NULL;
}

/*
 * Writes the rows of all changes, with one stamp.
 */
static void
stamp_all(void)
{
	TimestampTz stamp = GetCurrentTimestamp();
	FullTransactionId transaction;
	ListCell *lc;

	if (pending.list == NIL)
		return;
	transaction = GetTopFullTransactionId();
	foreach(lc, pending.list)
	{
		Change *c = lfirst(lc);
		DpVersioning *v = versioning_of(c);
		TimestampTz latest;

		if (v == NULL)
			continue;
		if (c->behind)
			stamp = c->floor >= stamp ? c->floor + 1 : stamp;
		else if (dp_revisions_latest(v, &latest) && latest >= stamp)
			stamp = latest + 1;
	}
	foreach(lc, pending.list)
	{
		Change *c = lfirst(lc);
		DpVersioning *v = versioning_of(c);

		if (v != NULL)
		{
			DpActor self;

			/*
			 * an index on the table may call functions of its owner, who may differ from the
			 * session's user
			 */
			dp_owner_begin(v->decl->owner, &self);
			dp_revisions_add_change(v, c->number, &c->key, stamp, GetUserNameFromId(c->who, true),
									transaction);
			dp_owner_end(&self);
		}
	}
	pending.list = NIL;
}
