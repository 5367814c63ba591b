/*
 * maintain.h
 *		Deferred work that is due: how it is found and done, for all patterns.
 *
 * A pattern that defers work has two SQL functions, which run as the owner of the table in a
 * security-restricted operation:
 *
 *		_<pattern>_due(regclass, text) -> (what text, since timestamptz, amount bigint)
 *			a row for each kind of work that is due: since when, and how much.  Should read a few
 *			rows of an index.
 *		_<pattern>_maintain(regclass, text, int) -> bigint
 *			does about so many rows of it, the oldest first, and returns how many; 0 if nothing is
 *			due or all of it is locked.
 *
 * The second runs in a subtransaction with a short lock_timeout.  Where it meets a lock of another
 * transaction, it is called again for fewer rows, and what is locked is left to a later run.
 */
#ifndef DP_KIT_MAINTAIN_H
#define DP_KIT_MAINTAIN_H

#include "postgres.h"

#include "utils/timestamp.h"

typedef struct DpMaintainRun
{
	Oid rel;              /* InvalidOid: all tables that the current user owns */
	const char *name;     /* NULL: all declarations */
	bool patient;         /* leaves out what failed a short time ago */
	TimestampTz until;    /* no transaction starts later */
	int64 most;           /* rows of all transactions */
	int batch;            /* rows of one */
	void (*commit)(void); /* NULL: all is one transaction */
	bool (*stop)(void);   /* true: ends early; may be NULL */
} DpMaintainRun;

/*
 * Does what is due, in rounds of one batch for each declaration, the oldest work first.  Errors of
 * a declaration become warnings and rows of docpatterns.maintenance.  Called in a transaction, in a
 * memory context that survives run->commit.  Returns the number of rows.
 */
extern int64 dp_maintain_run(const DpMaintainRun *run);

/*
 * So much before the start of the statement, the same in all time zones: days have 24 hours.  SQL
 * calls it _pattern_cutoff().
 */
extern TimestampTz dp_cutoff(const Interval *after);

#endif /* DP_KIT_MAINTAIN_H */
