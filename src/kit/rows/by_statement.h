/*
 * by_statement.h
 *		The document of one row, read and written by a statement: for calls that
 *		go by the rights of the user, or where triggers are to see a statement.
 *
 * write.h does the same without a statement, as the owner.
 */
#ifndef DP_KIT_ROWS_BY_STATEMENT_H
#define DP_KIT_ROWS_BY_STATEMENT_H

#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/sql/run.h"

/*
 * Reads the document of the row with this key, inside SPI_connect(), by a
 * statement that is kept with the declaration under the id; locking stands
 * behind it (" FOR UPDATE", or nothing), and flags are those of dp_run().
 * Returns false if there is no such row.  *doc is the document, in SPI's
 * memory, or NULL for a null.
 */
extern bool dp_row_read(DpDecl *decl, const void *id, const DpKey *key, const char *locking,
						int flags, struct varlena **doc);

/*
 * Whether a row of this key is there although a statement that locks has not
 * found one: it was deleted and inserted again while it was waited for, and the
 * statement is to be run again.  False where that might not find it, either: in
 * transactions with one snapshot for all their statements, and for users whom
 * row security concerns.  flags are those of the statement.
 */
extern bool dp_row_again(DpDecl *decl, const DpKey *key, int flags);

/*
 * The statement that writes the document of a row, kept under the id, and its
 * parameters: values has room for INDEX_MAX_KEYS + 1.
 */
extern SPIPlanPtr dp_row_plan_write(DpDecl *decl, const void *id, const DpKey *key,
									struct varlena *doc, Datum *values);

/*
 * Writes the document of a row with the rights of the user.  Raises
 * TRIGGERED_DATA_CHANGE_VIOLATION when no row was written (dp_write_refused).
 */
extern void dp_row_write(DpDecl *decl, const void *id, const DpKey *key, struct varlena *doc);

/* Raises NO_DATA_FOUND: the table has no document with this key. */
extern void dp_row_missing(DpDecl *decl, const DpKey *key) pg_attribute_noreturn();

#endif /* DP_KIT_ROWS_BY_STATEMENT_H */
