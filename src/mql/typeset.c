/*
 * typeset.c
 *		Sets of types of values.
 */
#include "postgres.h"

#include "mql/typeset.h"

static const uint8 all_types[] = { DP_TYPE_DOUBLE,     DP_TYPE_STRING,    DP_TYPE_DOCUMENT,
								   DP_TYPE_ARRAY,      DP_TYPE_BINARY,    DP_TYPE_UNDEFINED,
								   DP_TYPE_OBJECTID,   DP_TYPE_BOOL,      DP_TYPE_DATE,
								   DP_TYPE_NULL,       DP_TYPE_REGEX,     DP_TYPE_DBPOINTER,
								   DP_TYPE_CODE,       DP_TYPE_SYMBOL,    DP_TYPE_CODEWSCOPE,
								   DP_TYPE_INT32,      DP_TYPE_TIMESTAMP, DP_TYPE_INT64,
								   DP_TYPE_DECIMAL128, DP_TYPE_MAXKEY,    DP_TYPE_MINKEY };

static const struct
{
	const char *name;
	uint8 type;
} json_types[] = { { "object", DP_TYPE_DOCUMENT },
				   { "array", DP_TYPE_ARRAY },
				   { "string", DP_TYPE_STRING },
				   { "boolean", DP_TYPE_BOOL },
				   { "null", DP_TYPE_NULL } };

static bool
name_is(const char *name, uint32 len, const char *other)
{
	return strlen(other) == len && memcmp(name, other, len) == 0;
}

static void
add_numbers(DpTypeSet *set)
{
	dp_type_set_add(set, DP_TYPE_INT32);
	dp_type_set_add(set, DP_TYPE_INT64);
	dp_type_set_add(set, DP_TYPE_DOUBLE);
	dp_type_set_add(set, DP_TYPE_DECIMAL128);
}

bool
dp_type_set_add_name(DpTypeSet *set, const char *name, uint32 len)
{
	if (name_is(name, len, "number"))
	{
		add_numbers(set);
		return true;
	}
	for (int i = 0; i < lengthof(all_types); i++)
		if (name_is(name, len, dp_type_name(all_types[i])))
		{
			dp_type_set_add(set, all_types[i]);
			return true;
		}
	return false;
}

bool
dp_type_set_add_json_name(DpTypeSet *set, const char *name, uint32 len)
{
	if (name_is(name, len, "number"))
	{
		add_numbers(set);
		return true;
	}
	for (int i = 0; i < lengthof(json_types); i++)
		if (name_is(name, len, json_types[i].name))
		{
			dp_type_set_add(set, json_types[i].type);
			return true;
		}
	return false;
}

bool
dp_type_set_add_code(DpTypeSet *set, int64 code)
{
	/* MinKey has only the number -1 */
	code = code == -1 ? DP_TYPE_MINKEY : code == DP_TYPE_MINKEY ? DP_TYPE_EOD : code;
	for (int i = 0; i < lengthof(all_types); i++)
		if (all_types[i] == code)
		{
			dp_type_set_add(set, all_types[i]);
			return true;
		}
	return false;
}
