/*
 * access.h
 *		The text of values for the operator ->>, and lists of paths as arguments.
 */
#ifndef DP_BSON_ACCESS_H
#define DP_BSON_ACCESS_H

#include "fmgr.h"

#include "bson/path.h"

/*
 * The text of a value for ->>, palloc'd, or NULL for null and undefined: strings and symbols plain,
 * numbers by their digits, dates in ISO 8601 in UTC, UUIDs and ObjectIds in their text form,
 * anything else as JSON.  Raises UNTRANSLATABLE_CHARACTER for a string with a NUL.
 */
extern text *dp_value_as_text(const DpValue *value);

/*
 * The paths of an argument of type text[] but for nulls, kept as long as the argument has the same
 * bytes.
 */
typedef struct DpPathSet
{
	MemoryContext mcxt;
	struct varlena *source;
	int n;
	DpPath **paths;
} DpPathSet;

extern const DpPathSet *dp_path_set(FunctionCallInfo fcinfo, int argument);

#endif /* DP_BSON_ACCESS_H */
