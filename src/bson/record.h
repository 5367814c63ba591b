/*
 * record.h
 *		Documents become rows.
 */
#ifndef DP_BSON_RECORD_H
#define DP_BSON_RECORD_H

#include "bson/layout.h"

/*
 * A row of the composite type, its columns taken from the fields of the
 * document that have their names; a column without a field is NULL.  Raises
 * the errors of dp_value_to_datum(), in the context of the field.
 */
extern Datum dp_value_to_row(const DpValue *document, Oid typid, int32 typmod);

#endif /* DP_BSON_RECORD_H */
