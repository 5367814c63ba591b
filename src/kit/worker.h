/*
 * worker.h
 *		Background workers that maintain databases: with shared_preload_libraries = 'docpatterns',
 *		a launcher and a worker for each database of docpatterns.maintain_databases.
 */
#ifndef DP_KIT_WORKER_H
#define DP_KIT_WORKER_H

#include "postgres.h"

/* Defines the settings; in the postmaster also asks for shared memory and the launcher. */
extern void dp_worker_init(void);

/*
 * The transaction leaves deferred work to a declaration of the table: its commit wakes the worker
 * of the database.  Without workers it does nothing.
 */
extern void dp_work_left(Oid relid);

#endif /* DP_KIT_WORKER_H */
