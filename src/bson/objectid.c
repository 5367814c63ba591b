/*
 * objectid.c
 *		The type objectid: twelve bytes, of which the first four are seconds
 *		since 1970, big-endian.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "utils/builtins.h"

#include "bson/layout.h"

/*
 * objectid_in(cstring) -> objectid: 24 hexadecimal digits.  Raises
 * INVALID_TEXT_REPRESENTATION.
 */
DP_FUNCTION(dp_objectid_in);
Datum
dp_objectid_in(PG_FUNCTION_ARGS)
{
	char	   *s = PG_GETARG_CSTRING(0);
	uint8	   *result = palloc(DP_OBJECTID_SIZE);

	if (strlen(s) != 2 * DP_OBJECTID_SIZE ||
		strspn(s, "0123456789abcdefABCDEF") != 2 * DP_OBJECTID_SIZE)
		dp_ereturn(fcinfo->context, (Datum) 0,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s: \"%s\"", "objectid", s),
					errdetail("An objectid is written as 24 hexadecimal digits.")));
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
	char	   *result = palloc(2 * DP_OBJECTID_SIZE + 1);

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
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	uint8	   *result = palloc(DP_OBJECTID_SIZE);

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
