/*
 * objectid.c
 *		The type objectid: twelve bytes, of which the first four are seconds
 *		since 1970, big-endian, so that the order of the bytes is that of time.
 */
#include "postgres.h"

#include <time.h>

#include "common/hashfn.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/sortsupport.h"
#include "utils/timestamp.h"

#include "bson/objectid.h"

/*
 * objectid_in(cstring) -> objectid: 24 hexadecimal digits.  Raises
 * INVALID_TEXT_REPRESENTATION.
 */
DP_FUNCTION(dp_objectid_in);
Datum
dp_objectid_in(PG_FUNCTION_ARGS)
{
	char *s = PG_GETARG_CSTRING(0);
	uint8 *result = palloc(DP_OBJECTID_SIZE);

	if (strlen(s) != 2 * DP_OBJECTID_SIZE ||
		strspn(s, "0123456789abcdefABCDEF") != 2 * DP_OBJECTID_SIZE)
		dp_ereturn(fcinfo->context, (Datum) 0,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s: \"%s\"", "objectid", s),
					errdetail("An objectid must have 24 hexadecimal digits.")));
	(void) hex_decode(s, 2 * DP_OBJECTID_SIZE, (char *) result);
	PG_RETURN_POINTER(result);
}

/*
 * objectid_out(objectid) -> cstring: 24 hexadecimal digits, lower case.
 */
DP_FUNCTION(dp_objectid_out);
Datum
dp_objectid_out(PG_FUNCTION_ARGS)
{
	char *result = palloc(2 * DP_OBJECTID_SIZE + 1);

	(void) hex_encode((char *) PG_GETARG_POINTER(0), DP_OBJECTID_SIZE, result);
	result[2 * DP_OBJECTID_SIZE] = '\0';
	PG_RETURN_CSTRING(result);
}

/*
 * objectid_recv(internal) -> objectid: the twelve bytes.
 */
DP_FUNCTION(dp_objectid_recv);
Datum
dp_objectid_recv(PG_FUNCTION_ARGS)
{
	StringInfo buf = (StringInfo) PG_GETARG_POINTER(0);
	uint8 *result = palloc(DP_OBJECTID_SIZE);

	pq_copymsgbytes(buf, (char *) result, DP_OBJECTID_SIZE);
	PG_RETURN_POINTER(result);
}

/*
 * objectid_send(objectid) -> bytea: the twelve bytes.
 */
DP_FUNCTION(dp_objectid_send);
Datum
dp_objectid_send(PG_FUNCTION_ARGS)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendbytes(&buf, PG_GETARG_POINTER(0), DP_OBJECTID_SIZE);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* The order of two object ids. */
static inline int
objectid_compare(Datum a, Datum b)
{
	return memcmp(DatumGetPointer(a), DatumGetPointer(b), DP_OBJECTID_SIZE);
}

/* The function of an operator: symbol(a, b) is "a op b". */
#define COMPARISON(symbol, op)                                                                     \
	DP_FUNCTION(symbol);                                                                           \
	Datum symbol(PG_FUNCTION_ARGS)                                                                 \
	{                                                                                              \
		PG_RETURN_BOOL(objectid_compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) op 0);             \
	}

COMPARISON(dp_objectid_lt, <)
COMPARISON(dp_objectid_le, <=)
COMPARISON(dp_objectid_eq, ==)
COMPARISON(dp_objectid_ne, !=)
COMPARISON(dp_objectid_ge, >=)
COMPARISON(dp_objectid_gt, >)

/*
 * objectid_cmp(objectid, objectid) -> int4
 */
DP_FUNCTION(dp_objectid_cmp);
Datum
dp_objectid_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(objectid_compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

/*
 * objectid_smaller(objectid, objectid) -> objectid, for min(): the lesser one.
 */
DP_FUNCTION(dp_objectid_smaller);
Datum
dp_objectid_smaller(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(objectid_compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) <= 0
						? PG_GETARG_DATUM(0)
						: PG_GETARG_DATUM(1));
}

/*
 * objectid_larger(objectid, objectid) -> objectid, for max(): the greater one.
 */
DP_FUNCTION(dp_objectid_larger);
Datum
dp_objectid_larger(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(objectid_compare(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) >= 0
						? PG_GETARG_DATUM(0)
						: PG_GETARG_DATUM(1));
}

/* Compares two object ids while sorting. */
static int
sort_compare(Datum x, Datum y, SortSupport ssup)
{
	return objectid_compare(x, y);
}

/*
 * objectid_sortsupport(internal).  There are no abbreviated keys: ids that one
 * process made in one second begin with the same nine bytes.
 */
DP_FUNCTION(dp_objectid_sortsupport);
Datum
dp_objectid_sortsupport(PG_FUNCTION_ARGS)
{
	((SortSupport) PG_GETARG_POINTER(0))->comparator = sort_compare;
	PG_RETURN_VOID();
}

/*
 * objectid_hash(objectid) -> int4
 */
DP_FUNCTION(dp_objectid_hash);
Datum
dp_objectid_hash(PG_FUNCTION_ARGS)
{
	return hash_any((unsigned char *) PG_GETARG_POINTER(0), DP_OBJECTID_SIZE);
}

/*
 * objectid_hash_extended(objectid, seed int8) -> int8
 */
DP_FUNCTION(dp_objectid_hash_extended);
Datum
dp_objectid_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_any_extended((unsigned char *) PG_GETARG_POINTER(0), DP_OBJECTID_SIZE,
							 (uint64) PG_GETARG_INT64(1));
}

/* Random bytes from the system.  Raises INTERNAL_ERROR if it has none. */
static void
random_bytes(void *buf, size_t n)
{
	if (!pg_strong_random(buf, n))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
}

/*
 * The five random bytes belong to the process, so they are drawn again after a
 * fork; the counter begins anywhere.
 */
void
dp_objectid_generate(uint8 result[DP_OBJECTID_SIZE])
{
	static int owner = 0; /* the process that drew the bytes */
	static uint8 process[5];
	static uint32 counter;
	uint32 seconds = (uint32) time(NULL);

	if (unlikely(owner != MyProcPid))
	{
		random_bytes(process, sizeof(process));
		random_bytes(&counter, sizeof(counter));
		owner = MyProcPid;
	}
	counter++;
	for (int i = 0; i < 4; i++)
		result[i] = (uint8) (seconds >> (24 - 8 * i));
	memcpy(result + 4, process, sizeof(process));
	for (int i = 0; i < 3; i++)
		result[9 + i] = (uint8) (counter >> (16 - 8 * i));
}

/*
 * objectid() -> objectid: a new one.
 */
DP_FUNCTION(dp_objectid);
Datum
dp_objectid(PG_FUNCTION_ARGS)
{
	uint8 *result = palloc(DP_OBJECTID_SIZE);

	dp_objectid_generate(result);
	PG_RETURN_POINTER(result);
}

/*
 * objectid(timestamptz) -> objectid: the smallest one of that second.  Raises
 * DATETIME_VALUE_OUT_OF_RANGE if the seconds since 1970 do not fit 32 bits.
 */
DP_FUNCTION(dp_objectid_from_timestamp);
Datum
dp_objectid_from_timestamp(PG_FUNCTION_ARGS)
{
	TimestampTz t = PG_GETARG_TIMESTAMPTZ(0);
	int64 seconds = t / USECS_PER_SEC;
	uint8 *result = palloc0(DP_OBJECTID_SIZE);

	if (t % USECS_PER_SEC < 0)
		seconds--;
	seconds += (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
	if (TIMESTAMP_NOT_FINITE(t) || seconds < 0 || seconds > (int64) PG_UINT32_MAX)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("timestamp out of range for an objectid"),
						errdetail("The range of an objectid is 1970-01-01 to 2106-02-07.")));
	for (int i = 0; i < 4; i++)
		result[i] = (uint8) (seconds >> (24 - 8 * i));
	PG_RETURN_POINTER(result);
}

/*
 * objectid_timestamp(objectid) -> timestamptz: its seconds, which are unsigned.
 */
DP_FUNCTION(dp_objectid_timestamp);
Datum
dp_objectid_timestamp(PG_FUNCTION_ARGS)
{
	uint8 *id = (uint8 *) PG_GETARG_POINTER(0);
	int64 seconds = 0;

	for (int i = 0; i < 4; i++)
		seconds = seconds << 8 | id[i];
	seconds -= (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
	PG_RETURN_TIMESTAMPTZ(seconds * USECS_PER_SEC);
}
