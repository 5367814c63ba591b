/*
 * by_statement.h
 *		Reads and writes the document of one row by a statement, for calls that use the user's
 *		privileges or must fire statement-level triggers.
 *
 * write.h does the same without a statement, as the owner.
 */
#ifndef DP_KIT_ROWS_BY_STATEMENT_H
#define DP_KIT_ROWS_BY_STATEMENT_H

#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/sql/run.h"

/*
 * Reads the document of the row with this key, inside SPI_connect().  locking is appended to the
 * statement (" FOR UPDATE", or nothing), flags are those of dp_run().  Returns false if there is no
 * such row.  Sets *doc to the document, in SPI's memory, or to NULL for a null.
 */
extern bool
dp_row_read(DpDecl *decl, const DpKey *key, const char *locking, int flags, struct varlena **doc);

/* The same without the document: locks the row, or looks for it. */
extern bool dp_row_lock(DpDecl *decl, const DpKey *key, const char *locking, int flags);

/*
 * A locking SELECT returns no row if the row was deleted and reinserted while it waited.  Returns
 * true if a row with this key exists now and the statement should be repeated; always false at
 * REPEATABLE READ or above and for users subject to row security.  flags are those of the
 * statement.
 */
extern bool dp_row_again(DpDecl *decl, const DpKey *key, int flags);

/*
 * The statement that writes the document of a row with those flags, and its parameters: values has
 * room for INDEX_MAX_KEYS + 1.
 */
extern SPIPlanPtr
dp_row_plan_write(DpDecl *decl, const DpKey *key, struct varlena *doc, int flags, Datum *values);

/*
 * Writes the document of a row with the user's privileges.  Raises TRIGGERED_DATA_CHANGE_VIOLATION
 * if no row was written (dp_write_refused).
 */
extern void dp_row_write(DpDecl *decl, const DpKey *key, struct varlena *doc);

/* Raises NO_DATA_FOUND: the table has no document with this key. */
extern void dp_row_missing(DpDecl *decl, const DpKey *key) pg_attribute_noreturn();

#endif /* DP_KIT_ROWS_BY_STATEMENT_H */
