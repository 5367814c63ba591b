/*
 * bucket_shim.c
 *		The functions of a PostgreSQL server that packing and reading buckets call,
 *		beside those of shim.c. Numerics are the fuzzer's own; what only SQL types
 *		need ends the program.
 */
#include "shim.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "types/bucket/builder.h"

static DpTypes types = { .bson = 100001, .bson_value = 100002, .objectid = 100003 };

static void unexpected(const char *function) pg_attribute_noreturn();

static void
unexpected(const char *function)
{
	printf("FAILED: %s was called\n", function);
	abort();
}

const DpTypes *
dp_types(void)
{
	return &types;
}

/* Contexts: there is one memory, which the driver resets. */

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size min, Size initial,
							  Size max)
{
	static int context;

	return (MemoryContext) &context;
}

void
MemoryContextDelete(MemoryContext context)
{
}

void
MemoryContextReset(MemoryContext context)
{
}

bool
pg_verify_mbstr(int encoding, const char *mbstr, int len, bool noError)
{
	return true; /* the writer names columns by any bytes */
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return palloc0(size);
}

/* Newer minor versions have these behind palloc_array() and its like. */
void *palloc_mul(Size a, Size b);
void *palloc0_mul(Size a, Size b);
void *repalloc_mul(void *p, Size a, Size b);

void *
palloc_mul(Size a, Size b)
{
	return palloc(a * b);
}

void *
palloc0_mul(Size a, Size b)
{
	return palloc0(a * b);
}

void *
repalloc_mul(void *p, Size a, Size b)
{
	return repalloc(p, a * b);
}

int
errdetail_internal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fuzz_detail, sizeof(fuzz_detail), fmt, ap);
	va_end(ap);
	return 0;
}

/* Types */

Oid
getBaseType(Oid typid)
{
	return typid;
}

char *
format_type_be(Oid type_oid)
{
	return pstrdup("some type");
}

text *
cstring_to_text_with_len(const char *s, int len)
{
	text *t = palloc(len + VARHDRSZ);

	SET_VARSIZE(t, len + VARHDRSZ);
	memcpy(VARDATA(t), s, len);
	return t;
}

/* A numeric that was made of an integer and a scale */
typedef struct MadeNumeric
{
	int32 vl_len_;
	int scale;
	int64 value;
} MadeNumeric;

Numeric
int64_div_fast_to_numeric(int64 value, int scale)
{
	MadeNumeric *n = palloc(sizeof(MadeNumeric));

	SET_VARSIZE(n, sizeof(MadeNumeric));
	n->value = value;
	n->scale = scale;
	return (Numeric) n;
}

Numeric
int64_to_numeric(int64 value)
{
	return int64_div_fast_to_numeric(value, 0);
}

/*
 * Only numerics that are no decimals, and those made above, are written: the text does not matter,
 * but tells them apart.
 */
Datum
numeric_out(PG_FUNCTION_ARGS)
{
	struct varlena *v = (struct varlena *) PG_GETARG_POINTER(0);
	MadeNumeric *n = (MadeNumeric *) v;

	if (VARSIZE_ANY(v) == sizeof(MadeNumeric))
		PG_RETURN_CSTRING(psprintf("%s" INT64_FORMAT ".%d", n->value < 0 ? "-" : "",
								   n->value < 0 ? -n->value : n->value, n->scale));
	PG_RETURN_CSTRING(pstrdup("NaN"));
}

Datum
numeric_in(PG_FUNCTION_ARGS)
{
	return PointerGetDatum(int64_to_numeric(0));
}

Datum
DirectFunctionCall1Coll(PGFunction func, Oid collation, Datum arg1)
{
	LOCAL_FCINFO(fcinfo, 1);

	InitFunctionCallInfoData(*fcinfo, NULL, 1, collation, NULL, NULL);
	fcinfo->args[0].value = arg1;
	fcinfo->args[0].isnull = false;
	return func(fcinfo);
}

Datum
DirectFunctionCall3Coll(PGFunction func, Oid collation, Datum arg1, Datum arg2, Datum arg3)
{
	return DirectFunctionCall1Coll(func, collation, arg1);
}

char *
psprintf(const char *fmt, ...)
{
	char buf[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	return pstrdup(buf);
}

/* What is not reached */

#define UNEXPECTED(result, name, args)                                                             \
	result name args                                                                               \
	{                                                                                              \
		unexpected(#name);                                                                         \
	}

UNEXPECTED(struct varlena *, detoast_attr, (struct varlena * attr))
UNEXPECTED(struct varlena *, detoast_attr_slice,
		   (struct varlena * attr, int32 offset, int32 length))
UNEXPECTED(Size, toast_raw_datum_size, (Datum value))
UNEXPECTED(void, fmgr_info, (Oid function, FmgrInfo *finfo))
UNEXPECTED(void, fmgr_info_cxt, (Oid function, FmgrInfo *finfo, MemoryContext mcxt))
UNEXPECTED(void, getTypeInputInfo, (Oid type, Oid *input, Oid *ioparam))
UNEXPECTED(void, getTypeOutputInfo, (Oid type, Oid *output, bool *isvarlena))
UNEXPECTED(char *, dp_portable_output, (FmgrInfo * output, Datum d))
UNEXPECTED(Datum, dp_portable_input, (FmgrInfo * input, char *text, Oid ioparam, int32 typmod))
UNEXPECTED(Datum, dp_value_to_datum, (const DpValue *v, Oid typid, int32 typmod, bool *isnull))
UNEXPECTED(void, dp_converter_init, (DpConverter * c, Oid typid, MemoryContext mcxt))
UNEXPECTED(struct varlena *, dp_converter_value, (DpConverter * c, Datum d))
