/*
 * key.c
 *		Keys of rows: the values of a primary key, of any types.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "kit/key.h"

static Datum key_convert(DpDecl *decl, const DpKeyColumn *column, Datum value, Oid type);
static bool
value_convert(const DpValue *value, const DpKeyColumn *column, Datum *result, bool *isnull);
static bool is_same_value(const DpValue *value, Datum converted, Oid type, Oid base);
static Datum key_column(DpDecl *decl, int i, HeapTuple tuple, AttrNumber attnum, TupleDesc desc);
static bool is_integer(Oid type);
static bool is_one_value(DpDecl *decl, Oid type);
static void key_wrong_type(DpDecl *decl, const DpKeyColumn *column, Datum value, Oid type)
	pg_attribute_noreturn();
static char *truncated(char *text);

void
dp_key_of_tuple(DpDecl *decl, HeapTuple tuple, TupleDesc desc, DpKey *key)
{
	int i;

	key->n = decl->nkeys;
	for (i = 0; i < decl->nkeys; i++)
		key->values[i] = key_column(decl, i, tuple, decl->keys[i].attnum, desc);
}

void
dp_key_of_row(DpDecl *decl, Relation rel, HeapTuple tuple, DpKey *key)
{
	int i;

	key->n = decl->nkeys;
	for (i = 0; i < decl->nkeys; i++)
		key->values[i] = key_column(decl, i, tuple,
									RelationGetRelid(rel) == decl->relid
										? decl->keys[i].attnum
										: get_attnum(RelationGetRelid(rel), decl->keys[i].name),
									RelationGetDescr(rel));
}

static Datum
key_column(DpDecl *decl, int i, HeapTuple tuple, AttrNumber attnum, TupleDesc desc)
{
	bool isnull;
	Datum value = heap_getattr(tuple, attnum, desc, &isnull);

	if (isnull)
		ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
						errmsg("null value in column \"%s\" of the primary key of table \"%s\"",
							   decl->keys[i].name, dp_relation_name(decl->relid))));
	return value;
}

void
dp_key_of_argument(DpDecl *decl, FunctionCallInfo fcinfo, int argno, DpKey *key)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the key must not be null")));
	dp_key_of_datum(decl, PG_GETARG_DATUM(argno), get_fn_expr_argtype(fcinfo->flinfo, argno), key);
}

void
dp_key_of_datum(DpDecl *decl, Datum value, Oid type, DpKey *key)
{
	key->n = decl->nkeys;

	if ((type == RECORDOID || type_is_rowtype(type)) && !is_one_value(decl, type))
	{
		HeapTupleHeader header = DatumGetHeapTupleHeader(value);
		TupleDesc desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
												HeapTupleHeaderGetTypMod(header));
		HeapTupleData tuple;
		int i;

		if (desc->natts != decl->nkeys)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("key has %d values, but the primary key of table \"%s\" has %d columns",
							desc->natts, dp_relation_name(decl->target), decl->nkeys)));
		tuple.t_len = HeapTupleHeaderGetDatumLength(header);
		ItemPointerSetInvalid(&tuple.t_self);
		tuple.t_tableOid = InvalidOid;
		tuple.t_data = header;
		for (i = 0; i < decl->nkeys; i++)
		{
			bool isnull;
			Datum part = heap_getattr(&tuple, i + 1, desc, &isnull);

			if (isnull)
				ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
								errmsg("the key must not be null")));
			key->values[i] =
				key_convert(decl, &decl->keys[i], part, TupleDescAttr(desc, i)->atttypid);
		}
		ReleaseTupleDesc(desc);
		return;
	}

	if (decl->nkeys != 1)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("the primary key of table \"%s\" has %d columns",
							   dp_relation_name(decl->target), decl->nkeys),
						errhint("Pass the key as ROW(...).")));
	key->values[0] = key_convert(decl, &decl->keys[0], value, type);
}

bool
dp_key_of_value(DpDecl *decl, const DpValue *value, DpKey *key)
{
	DpIter iter = { NULL, NULL };
	DpValue part;
	int i;

	key->n = decl->nkeys;
	if (decl->nkeys > 1)
	{
		if (value->type != DP_TYPE_ARRAY)
			return false;
		dp_iter_init_value(&iter, value);
	}
	for (i = 0; i < decl->nkeys; i++)
	{
		if (decl->nkeys == 1)
			part = *value;
		else if (!dp_iter_next_value(&iter, &part))
			return false;
		if (!dp_key_column_of_value(&decl->keys[i], &part, &key->values[i]))
			return false;
	}
	return true;
}

bool
dp_key_column_of_value(const DpKeyColumn *column, const DpValue *value, Datum *result)
{
	Oid base;
	bool isnull;

	if (column->type == dp_types()->bson_value)
	{
		*result = PointerGetDatum(dp_value_to_varlena(value));
		return true;
	}
	/* a link of another kind refers to no row: not an error here */
	base = getBaseType(column->type);
	if (value->type == DP_TYPE_NULL || value->type == DP_TYPE_UNDEFINED ||
		(base == INT2OID || base == INT4OID || base == INT8OID || base == NUMERICOID ||
		 base == FLOAT4OID || base == FLOAT8OID) != dp_type_is_number(value->type) ||
		!value_convert(value, column, result, &isnull))
		return false;
	return !isnull && is_same_value(value, *result, column->type, base);
}

bool
dp_key_identical(DpDecl *decl, const DpKey *a, const DpKey *b)
{
	int i;

	for (i = 0; i < decl->nkeys; i++)
	{
		int16 typlen;
		bool typbyval;

		get_typlenbyval(decl->keys[i].type, &typlen, &typbyval);
		if (!datum_image_eq(a->values[i], b->values[i], typbyval, typlen))
			return false;
	}
	return true;
}

struct varlena *
dp_key_to_value(DpDecl *decl, const DpKey *key)
{
	DpBuilder b;
	int i;

	if (decl->nkeys == 1)
		return dp_datum_to_value(key->values[0], decl->keys[0].type);

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (i = 0; i < decl->nkeys; i++)
		dp_builder_append_datum(&b, NULL, 0, key->values[i], false, decl->keys[i].type);
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

char *
dp_key_to_text(DpDecl *decl, const DpKey *key)
{
	DpValue value = dp_value_of_varlena(dp_key_to_value(decl, key));
	StringInfoData buf;

	initStringInfo(&buf);
	dp_value_to_text(&buf, &value, DP_TEXT_RELAXED, -1);
	return truncated(buf.data);
}

static char *
truncated(char *text)
{
	int size = strlen(text);
	int len = pg_mbcliplen(text, size, 100);

	return len < size ? psprintf("%.*s...", len, text) : text;
}

void
dp_key_copy(DpDecl *decl, const DpKey *from, DpKey *to)
{
	int i;

	to->n = from->n;
	for (i = 0; i < decl->nkeys; i++)
	{
		int16 typlen;
		bool typbyval;

		get_typlenbyval(decl->keys[i].type, &typlen, &typbyval);
		to->values[i] = datumCopy(from->values[i], typbyval, typlen);
	}
}

/* Converts a BSON value to the key column's type; false if that is impossible. */
static bool
value_convert(const DpValue *value, const DpKeyColumn *column, Datum *result, bool *isnull)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile bool converted = true;

	/* the input function of a user-defined type may do anything, so its errors are not caught */
	if (column->type >= FirstNormalObjectId && column->type != dp_types()->objectid)
	{
		*result = dp_value_to_datum(value, column->type, column->typmod, isnull);
		return true;
	}
	PG_TRY();
	{
		*result = dp_value_to_datum(value, column->type, column->typmod, isnull);
	}
	PG_CATCH();
	{
		/* converting to a built-in type holds no resources but memory */
		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		MemoryContextSwitchTo(caller);
		FlushErrorState();
		converted = false;
	}
	PG_END_TRY();
	return converted;
}

/*
 * True if a value of the key's type equals the BSON value that it was converted from: 1.25 does not
 * equal the numeric(3, 1) 1.3, and a char(2) drops trailing blanks.
 */
static bool
is_same_value(const DpValue *value, Datum converted, Oid type, Oid base)
{
	DpValue back;

	if ((base == INT4OID || base == INT8OID) &&
		(value->type == DP_TYPE_INT32 || value->type == DP_TYPE_INT64))
		return true;
	back = dp_value_of_varlena(dp_datum_to_value(converted, type));
	return dp_value_compare(value, &back) == 0;
}

/* Converts a SQL value to the key column's type. */
static Datum
key_convert(DpDecl *decl, const DpKeyColumn *column, Datum value, Oid type)
{
	Oid target = column->type;
	Oid cast;
	CoercionPathType path;

	if (type == target)
		return value;
	if (target == dp_types()->bson_value)
		return PointerGetDatum(dp_datum_to_value(value, type));
	/* implicit casts lose nothing; otherwise only casts between integers, which check the range */
	path = find_coercion_pathway(target, type,
								 is_integer(target) && is_integer(type) ? COERCION_ASSIGNMENT
																		: COERCION_IMPLICIT,
								 &cast);
	switch (path)
	{
		case COERCION_PATH_RELABELTYPE:
			return value;
		case COERCION_PATH_FUNC:
			if (get_func_nargs(cast) == 1)
				return OidFunctionCall1(cast, value);
			if (get_func_nargs(cast) == 2)
				return OidFunctionCall2(cast, value, Int32GetDatum(column->typmod));
			return OidFunctionCall3(cast, value, Int32GetDatum(column->typmod),
									BoolGetDatum(false));
		default:
			type = getBaseType(type);
			if (type == TEXTOID || type == VARCHAROID || type == UNKNOWNOID)
				return dp_datum_of_text(value, type, target, column->typmod);
			key_wrong_type(decl, column, value, type);
	}
	return (Datum) 0; /* not reached */
}

/* True for an integer type or a domain over one. */
static bool
is_integer(Oid type)
{
	Oid base = getBaseType(type);

	return base == INT2OID || base == INT4OID || base == INT8OID;
}

/* True if a row of the type is the value of the only key column, not a row of the key columns. */
static bool
is_one_value(DpDecl *decl, Oid type)
{
	return decl->nkeys == 1 && getBaseType(type) == getBaseType(decl->keys[0].type);
}

/* Raises WRONG_OBJECT_TYPE. */
static void
key_wrong_type(DpDecl *decl, const DpKeyColumn *column, Datum value, Oid type)
{
	Oid output;
	bool varlena;

	getTypeOutputInfo(type, &output, &varlena);
	ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
					errmsg("key has type %s, but column \"%s\" of table \"%s\" has type %s",
						   format_type_be(type), column->name, dp_relation_name(decl->target),
						   format_type_be(column->type)),
					errdetail("The key is %s.", truncated(OidOutputFunctionCall(output, value)))));
}
