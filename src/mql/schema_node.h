/*
 * schema_node.h
 *		What a schema is compiled into.  For the files schema*.c only.
 */
#ifndef DP_MQL_SCHEMA_NODE_H
#define DP_MQL_SCHEMA_NODE_H

#include "mql/regex.h"
#include "mql/schema.h"
#include "mql/typeset.h"

/* A name of a field that some rule of an object speaks of. */
typedef struct SchemaName
{
	const char *name;
	uint32		len;
	bool		required;
	DpSchema   *schema;			/* of properties, or NULL */
	bool		is_property;
	int			ndependents;	/* names that must be there when this one is */
	int		   *dependents;
	DpSchema   *dependency;		/* what the object must be when this name is there, or NULL */
} SchemaName;

typedef struct SchemaPattern
{
	DpRegex    *regex;
	DpSchema   *schema;
} SchemaPattern;

typedef struct SchemaObject
{
	int			nnames;
	int			room;
	SchemaName *names;			/* in the order in which they were met */
	int		   *sorted;			/* the same by length and bytes */
	int			nrequired;
	bool		has_dependencies;
	int			npatterns;
	SchemaPattern *patterns;
	bool		closed;			/* no fields beyond those named */
	DpSchema   *additional;		/* what others must be, or NULL */
	int64		min_properties; /* -1: none */
	int64		max_properties;
} SchemaObject;

typedef struct SchemaArray
{
	DpSchema   *items;			/* of each element, or NULL */
	int			npositions;		/* or of the first elements, one each */
	DpSchema  **positions;
	bool		closed;			/* no elements beyond those */
	DpSchema   *additional;		/* what others must be, or NULL */
	bool		unique;
	int64		min_items;		/* -1: none */
	int64		max_items;
} SchemaArray;

typedef struct SchemaNumber
{
	DpValue		minimum;		/* type DP_TYPE_EOD: none */
	DpValue		maximum;
	DpValue		multiple;
	bool		above;			/* the minimum itself is excluded */
	bool		below;
} SchemaNumber;

typedef struct SchemaString
{
	int64		min_length;		/* in characters; -1: none */
	int64		max_length;
	DpRegex    *regex;
	DpValue		pattern;		/* how it was written */
} SchemaString;

typedef struct SchemaLogic
{
	int			nall;
	DpSchema  **all;
	int			nany;
	DpSchema  **any;
	int			none;
	DpSchema  **one;
	DpSchema   *not;
	DpValue		values;			/* enum: an array; type DP_TYPE_EOD: none */
} SchemaLogic;

struct DpSchema
{
	bool		has_types;
	DpTypeSet	types;
	DpElement	type_rule;		/* type or bsonType, as it was written */
	SchemaNumber *number;		/* each NULL when it has no rule */
	SchemaString *string;
	SchemaObject *object;
	SchemaArray *array;
	SchemaLogic *logic;
};

/* The position of a name among those of an object's rules, or -1.  guess is tried first. */
extern int	dp_schema_find_name(const SchemaObject *object, const char *name, uint32 len, int guess);

/* Whether two values are equal when the order of fields does not count, and a hash for that. */
extern bool dp_value_equal_unordered(const DpValue *a, const DpValue *b);
extern uint64 dp_value_hash_unordered(const DpValue *value);

/* Whether no two elements of an array are equal in that way. */
extern bool dp_array_is_unique(const DpValue *array);

/* Whether a number is a whole multiple of another one. */
extern bool dp_number_is_multiple(const DpValue *value, const DpValue *of);

#endif							/* DP_MQL_SCHEMA_NODE_H */
