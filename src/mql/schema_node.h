/*
 * schema_node.h
 *		The compiled form of a schema. For the files schema*.c only.
 */
#ifndef DP_MQL_SCHEMA_NODE_H
#define DP_MQL_SCHEMA_NODE_H

#include "common/hashfn.h"

#include "bson/names.h"
#include "mql/regex.h"
#include "mql/schema.h"
#include "mql/typeset.h"

/*
 * A name in two words: up to eight bytes from both ends.  Names of up to
 * sixteen bytes are equal if their words and lengths are.
 */
typedef struct DpSchemaWords
{
	uint64 front;
	uint64 back;
} DpSchemaWords;

/* A field name in a rule of an object. */
typedef struct DpSchemaName
{
	const char *name;
	uint32 len;
	DpSchemaWords words; /* of the name */
	bool required;
	DpSchema *schema; /* of properties, or NULL */
	bool is_property;
	int ndependents; /* names that must be there when this one is */
	int *dependents;
	DpSchema *dependency; /* what the object must be when this name is there, or NULL */
} DpSchemaName;

/*
 * A field of the last document: documents of a kind have their fields in one
 * order, so that the next one's are known without looking for the end of the
 * name, or for the name.
 */
#define SCHEMA_MEMOS 32

typedef struct DpSchemaMemo
{
	uint64 name[2]; /* the name and its NUL: up to 16 bytes */
	uint64 mask[2]; /* of the bytes that count; 0: nothing is known */
	uint32 len;
	int index; /* of the name among those of the rules, or -1 */
} DpSchemaMemo;

typedef struct DpSchemaPattern
{
	DpRegex *regex;
	DpSchema *schema;
} DpSchemaPattern;

typedef struct DpSchemaObject
{
	int nnames;
	int room;
	DpNames known;       /* while the schema is compiled: the same names */
	DpSchemaName *names; /* in the order of occurrence */
	uint32 mask;         /* of the table by which they are found; its size is a power of 2 */
	int *slots;          /* positions, by the hash of the name; -1: free */
	int nrequired;
	bool has_dependencies;
	int npatterns;
	DpSchemaPattern *patterns;
	bool closed;          /* no fields beyond those named */
	DpSchema *additional; /* what others must be, or NULL */
	int64 min_properties; /* -1: none */
	int64 max_properties;
	bool plain;          /* properties and required are all there is, for up to 64 names */
	DpSchemaMemo *memos; /* SCHEMA_MEMOS; NULL: none yet */
} DpSchemaObject;

typedef struct DpSchemaArray
{
	DpSchema *items; /* of each element, or NULL */
	int npositions;  /* or of the first elements, one each */
	DpSchema **positions;
	bool closed;          /* no elements beyond those */
	DpSchema *additional; /* what others must be, or NULL */
	bool unique;
	int64 min_items; /* -1: none */
	int64 max_items;
} DpSchemaArray;

typedef struct DpSchemaNumber
{
	DpValue minimum; /* type DP_TYPE_EOD: none */
	DpValue maximum;
	DpValue multiple;
	bool above; /* the minimum itself is excluded */
	bool below;
} DpSchemaNumber;

typedef struct DpSchemaString
{
	int64 min_length; /* in characters; -1: none */
	int64 max_length;
	DpRegex *regex;
	DpValue pattern; /* how it was written */
} DpSchemaString;

/* The elements of an array, to find those that are equal when the order of fields does not count */
typedef struct DpSchemaValue
{
	uint64 hash; /* 0 where they are few */
	DpValue value;
} DpSchemaValue;

typedef struct DpSchemaValues
{
	uint32 n;
	DpSchemaValue *values; /* in the order of their hashes; palloc'd */
} DpSchemaValues;

typedef struct DpSchemaLogic
{
	int nall;
	DpSchema **all;
	int nany;
	DpSchema **any;
	int none;
	DpSchema **one;
	DpSchema * not ;
	DpValue values;     /* enum: an array; type DP_TYPE_EOD: none */
	DpSchemaValues set; /* its elements */
} DpSchemaLogic;

struct DpSchema
{
	bool has_types;
	DpTypeSet types;
	DpElement type_rule;    /* type or bsonType, unparsed */
	DpSchemaNumber *number; /* each NULL when it has no rule */
	DpSchemaString *string;
	DpSchemaObject *object;
	DpSchemaArray *array;
	DpSchemaLogic *logic;
	bool only_types; /* there are no other rules */
};

static inline DpSchemaWords
dp_schema_name_words(const char *name, uint32 len)
{
	DpSchemaWords w = { 0, 0 };

	if (len >= 8)
	{
		memcpy(&w.front, name, 8);
		memcpy(&w.back, name + len - 8, 8);
	}
	else if (len >= 4)
	{
		uint32 front;
		uint32 back;

		memcpy(&front, name, 4);
		memcpy(&back, name + len - 4, 4);
		w.front = front;
		w.back = back;
	}
	else if (len > 0)
		w.front = (uint64) (uint8) name[0] << 16 | (uint64) (uint8) name[len / 2] << 8 |
				  (uint8) name[len - 1];
	return w;
}

static inline uint32
dp_schema_name_hash(const DpSchemaWords *w, const char *name, uint32 len)
{
	uint64 hash;

	/* long names may differ in the middle only */
	if (unlikely(len > 16))
		return hash_bytes((const unsigned char *) name, len);
	hash = (w->front ^ len) * UINT64CONST(0x9E3779B97F4A7C15) + w->back;

	hash *= UINT64CONST(0xD6E8FEB86659FD93);
	return (uint32) (hash >> 32) ^ (uint32) (hash >> 48);
}

/* The position of a name among those of an object's rules, or -1. */
static inline int
dp_schema_find_name(const DpSchemaObject *object, const char *name, uint32 len)
{
	DpSchemaWords words = dp_schema_name_words(name, len);
	uint32 slot = dp_schema_name_hash(&words, name, len) & object->mask;
	int i;

	while ((i = object->slots[slot]) >= 0)
	{
		const DpSchemaName *n = &object->names[i];

		if (n->words.front == words.front && n->words.back == words.back && n->len == len &&
			(len <= 16 || memcmp(n->name, name, len) == 0))
			return i;
		slot = (slot + 1) & object->mask;
	}
	return -1;
}

/* The elements of an array, and whether one, or no two of them, are equal in that way. */
extern void dp_schema_values(DpSchemaValues *set, const DpValue *array);
extern bool dp_schema_values_find(const DpSchemaValues *set, const DpValue *value);
extern bool dp_schema_values_unique(const DpSchemaValues *set);

/* Whether a number is a whole multiple of another one. */
extern bool dp_number_is_multiple(const DpValue *value, const DpValue *of);

#endif /* DP_MQL_SCHEMA_NODE_H */
