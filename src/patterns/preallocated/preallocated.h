/*
 * preallocated.h
 *		The preallocated pattern: documents are created with slots to claim.
 *
 * Holders of slots are stored in one of two ways:
 *
 *	slots		a row of a side table for each slot that is or was taken; the
 *				document keeps its empty cells, and <table>_whole shows them
 *				filled.  The row's primary key makes two holders impossible;
 *				claims of different slots only share the lock that keeps the
 *				document from being deleted.
 *	document	the cells of the document, which is locked; their expiries are
 *				in <field>_until.
 *
 * shape.c has the shapes, preallocated.c the options and the triggers, claims.c the
 * table of claims, calls.c the functions that users call, whole.c whole documents;
 * ranges.c converts cells into ranges.
 */
#ifndef DP_PATTERNS_PREALLOCATED_PREALLOCATED_H
#define DP_PATTERNS_PREALLOCATED_PREALLOCATED_H

#include "datatype/timestamp.h"

#include "kit/declaration.h"
#include "kit/key.h"
#include "patterns/preallocated/shape.h"

/* The longest holder, in bytes */
#define DP_HOLDER_MAX_SIZE 1024

typedef struct DpPreallocated
{
	DpDecl *decl;
	char *field_text;
	DpPath *field;
	DpPath *accessible; /* a field next to the array */
	DpPath *until;      /* a field next to the array, with store => 'document' */
	DpPath *available;  /* NULL: not declared */
	DpShape *shape;
	bool in_document;        /* store => 'document' */
	char *link_id;           /* NULL unless there is a table of claims */
	Oid side;                /* that table, InvalidOid until it is found */
	struct DpLookup *lookup; /* of rows, by their keys; created when first used */
} DpPreallocated;

/* preallocated.c */

/* The pattern's view of a declaration. */
extern DpPreallocated *dp_preallocated(DpDecl *decl);

/*
 * The field of a document, or an empty one where it has none.  False if it can
 * have none: see dp_shape_empty().
 */
extern bool
dp_preallocated_field(DpPreallocated *p, struct varlena *doc, DpValue *field, const char **why);

/* The document with this field, and with the number of free cells if that is declared. */
extern struct varlena *
dp_preallocated_put(DpPreallocated *p, struct varlena *doc, const DpValue *field, int available);

/* The cells of a document.  Raises CHECK_VIOLATION if it has not the shape. */
extern DpCells *dp_preallocated_cells(DpPreallocated *p, struct varlena *doc, const DpKey *key);

/* Whether doc may have been read before cells of old were taken. */
extern bool dp_preallocated_old_copy(DpPreallocated *p, struct varlena *old, struct varlena *doc);

/* Raises CHECK_VIOLATION; key may be NULL. */
extern void dp_preallocated_refuse(DpPreallocated *p, const DpKey *key, const char *what,
								   const char *detail) pg_attribute_noreturn();

/* Returns the expiry of a document's slot (store => 'document'); DT_NOEND: none. */
extern TimestampTz dp_preallocated_until(DpPreallocated *p, struct varlena *doc, const char *slot);

/* Returns an error in the expiries of a document, or NULL. */
extern const char *
dp_preallocated_until_wrong(DpPreallocated *p, struct varlena *doc, DpCells *cells);

/* Frees the cells of a document whose holds have expired; how many. */
extern int
dp_preallocated_expire(DpPreallocated *p, struct varlena *doc, DpCells *cells, TimestampTz now);

/*
 * Writes a new document to a row, as the pattern. change() returns it, or NULL for no write; it is
 * called again, with the row locked, after a concurrent write. Returns false without such a row.
 */
typedef struct varlena *(*DpPreallocatedChange)(DpPreallocated *p, struct varlena *doc,
												const DpKey *key, void *arg);
extern bool dp_preallocated_write(DpPreallocated *p, const DpKey *key, LockTupleMode mode,
								  DpPreallocatedChange change, void *arg);

/* Gives a document the shape: taken cells become claims. Returns whether it was written. */
extern bool dp_preallocated_repair_row(DpPreallocated *p, const DpKey *key);

/* claims.c: the table of claims.  All are called inside SPI_connect(). */

/* The holder of a slot */
typedef struct DpClaim
{
	char *slot;
	DpValue holder;
	TimestampTz until; /* DT_NOEND: for good */
} DpClaim;

/*
 * The claims of a key that have not expired, by slot.  In the state that the
 * calling statement sees, or the latest.  The key is the one under which they are stored now:
 * dp_moves_stored().
 */
extern int
dp_claims_read(DpPreallocated *p, const DpKey *key, bool latest, TimestampTz now, DpClaim **claims);

/* Writes holders into their cells. */
extern void dp_claims_show(DpCells *cells, const DpClaim *claims, int n);

/*
 * Takes slots, which are sorted: all or none. The caller has locked the document. At REPEATABLE
 * READ and above, raises T_R_SERIALIZATION_FAILURE if the state of a slot has changed since the
 * snapshot.
 */
extern bool dp_claims_take(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
						   const DpValue *holder, TimestampTz until, TimestampTz now);

/*
 * Prolongs holds to until, or ends them: all, or none if one of them is not this holder's any more.
 */
extern bool dp_claims_prolong(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
							  const DpValue *holder, bool for_good, TimestampTz until);
extern bool dp_claims_release(DpPreallocated *p, const DpKey *key, const char *const *slots, int n,
							  const DpValue *holder);

/*
 * Turns taken cells of a document into claims. Raises CHECK_VIOLATION for a slot with another
 * holder.
 */
extern void dp_claims_adopt(DpPreallocated *p, const DpKey *key, const DpCells *cells);

/* Flag of a move: the document has taken cells, which have not become claims yet */
#define DP_CLAIMS_TAKEN 0x01

/* The claims follow their documents. */
extern const struct DpSideMethods dp_claims_side;

#endif /* DP_PATTERNS_PREALLOCATED_PREALLOCATED_H */
