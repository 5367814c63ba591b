/*
 * calls.h
 *		What the calls for collections share: their arguments, and the statements that the session
 *		keeps (statement.c).
 */
#ifndef DP_COLLECTION_CALLS_H
#define DP_COLLECTION_CALLS_H

#include "nodes/params.h"
#include "tcop/dest.h"

#include "mql/collection_calls.h"

/* The first row of a statement, of up to three columns */
typedef struct DpFirstRow
{
	DestReceiver methods;
	MemoryContext context; /* of the values */
	bool received;
	Datum values[3];
	bool nulls[3]; /* all, if there is no row */
} DpFirstRow;

/*
 * An argument of the types bson, bson_value, json or jsonb, or text in Extended JSON, as a
 * bson_value; DATATYPE_MISMATCH for others.
 */
extern struct varlena *dp_call_value(Datum argument, Oid type);

/* An argument of type bson; NULL if it is null. */
extern struct varlena *dp_call_document(FunctionCallInfo fcinfo, int n);

/* {} */
extern struct varlena *dp_call_no_fields(void);

/* The parameters of a call's statements. */
extern ParamListInfo dp_call_params(const DpCall *call);

extern void dp_call_set(ParamListInfo params, DpCallParam n, Datum value);

/* Runs a statement that reads, with the active snapshot. */
extern void dp_call_read(const char *sql, ParamListInfo params, DestReceiver *dest);

/* Runs a statement that writes or locks, with a new snapshot; returns the number of rows. */
extern uint64 dp_call_write(const char *sql, ParamListInfo params, DestReceiver *dest);

/* Receives the first row, in the current memory context. */
extern void dp_first_row_init(DpFirstRow *row);

#endif /* DP_COLLECTION_CALLS_H */
