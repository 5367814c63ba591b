/*
 * documents.c
 *		Random numbers, random documents and random damage.
 */
#include "postgres.h"

#include "documents.h"

uint64 fuzz_state;

static void add_value(DpBuilder *b, const char *name, uint32 namelen, int depth);
static void add_fields(DpBuilder *b, int depth);

/* splitmix64 */
uint64
fuzz_random(void)
{
	uint64 z = (fuzz_state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* Names: ordinary ones, difficult ones, and all that the parser gives a meaning. */
static const char *const names[] = { "a",
									 "b",
									 "name",
									 "",
									 "0",
									 "1",
									 "10",
									 "a.b",
									 "a b",
									 "\"",
									 "\\",
									 "\n",
									 "\xC3\xA9",
									 "\xF0\x9F\x98\x80",
									 "a_very_long_name_that_does_not_fit_into_sixteen_bytes",
									 "$set",
									 "$",
									 "new",
									 "true",
									 "NaN",
									 "$oid",
									 "$symbol",
									 "$numberInt",
									 "$numberLong",
									 "$numberDouble",
									 "$numberDecimal",
									 "$binary",
									 "$uuid",
									 "$code",
									 "$scope",
									 "$timestamp",
									 "$regularExpression",
									 "$dbPointer",
									 "$date",
									 "$minKey",
									 "$maxKey",
									 "$undefined",
									 "$document",
									 "$array",
									 "$type",
									 "$regex",
									 "$options",
									 "$ref",
									 "$id",
									 "$db",
									 "base64",
									 "subType",
									 "t",
									 "i",
									 "pattern",
									 "options" };

static const char *const strings[] = { "",
									   "a",
									   "5",
									   "-1",
									   "1.5",
									   "NaN",
									   "Infinity",
									   "507f191e810c19729de860ea",
									   "AQID",
									   "AQ==",
									   "04",
									   "2018-12-11T12:00:00Z",
									   "im",
									   "mi",
									   "a\nb\tc\"d\\e",
									   "\xE2\x82\xAC\xF0\x9F\x98\x80",
									   "sixteen bytes...",
									   "exactly thirty-two bytes of text",
									   "a string of more than sixteen bytes \"quoted\"",
									   "\x01\x1F\x7F",
									   "507f191e-810c-1972-9de8-60ea507f191e",
									   "// no comment",
									   "/* nor this */" };

static const int64 integers[] = { 0,
								  1,
								  -1,
								  9,
								  10,
								  PG_INT32_MAX,
								  PG_INT32_MIN,
								  (int64) PG_INT32_MAX + 1,
								  (int64) PG_INT32_MIN - 1,
								  PG_INT64_MAX,
								  PG_INT64_MIN,
								  PG_INT64_MAX - 1,
								  INT64CONST(253402300799999),
								  INT64CONST(253402300800000),
								  INT64CONST(-62135596800001),
								  INT64CONST(-62167219200000),
								  INT64CONST(-62167219200001),
								  1544529600000 };

static const uint64 doubles[] = { 0,
								  UINT64CONST(0x8000000000000000),
								  UINT64CONST(0x3FF0000000000000),
								  UINT64CONST(0x7FF0000000000000),
								  UINT64CONST(0xFFF0000000000000),
								  UINT64CONST(0x7FF8000000000000),
								  UINT64CONST(0xFFF8000000000000),
								  UINT64CONST(0x7FF8000000000001),
								  UINT64CONST(0x0000000000000001),
								  UINT64CONST(0x7FEFFFFFFFFFFFFF),
								  UINT64CONST(0x4340000000000000),
								  UINT64CONST(0x3FB999999999999A) };

static const uint64 decimals[][2] = {
	{ 0, UINT64CONST(0x3040000000000000) },
	{ 1, UINT64CONST(0x3040000000000000) },
	{ 10000, UINT64CONST(0x303C000000000000) },
	{ 0, UINT64CONST(0x7800000000000000) },
	{ 0, UINT64CONST(0xF800000000000000) },
	{ 0, UINT64CONST(0x7C00000000000000) },
	{ 1, UINT64CONST(0x7C00000000000000) },
	{ 0, UINT64CONST(0xFC00000000000000) },
	{ 0, UINT64CONST(0x7E00000000000000) },
	{ UINT64CONST(0x378D8E63FFFFFFFF), UINT64CONST(0x5FFFED09BEAD87C0) },
	{ UINT64CONST(0x378D8E6400000000), UINT64CONST(0x3041ED09BEAD87C0) },
	{ 1, UINT64CONST(0x0000000000000000) },
	{ 1, UINT64CONST(0x6C10000000000000) },
	{ 0, UINT64CONST(0xB040000000000000) }
};

/* An integer at a limit, of any size, or small. */
static int64
some_integer(void)
{
	switch (fuzz_below(3))
	{
		case 0:
			return integers[fuzz_below(lengthof(integers))];
		case 1:
			return (int64) (fuzz_random() >> fuzz_below(64)) * (fuzz_below(2) ? 1 : -1);
		default:
			return (int64) fuzz_below(100);
	}
}

/* A string, sometimes with a NUL inside. */
static void
add_string(DpBuilder *b)
{
	const char *s = strings[fuzz_below(lengthof(strings))];
	const char *more = strings[fuzz_below(lengthof(strings))];
	uint32 ns = strlen(s);
	uint32 nmore = fuzz_below(3) ? 0 : strlen(more);
	uint32 nul = fuzz_below(20) ? 0 : 1;
	uint8 *p = dp_builder_reserve(b, 4 + ns + nul + nmore + 1);

	dp_put_int32(p, (int32) (ns + nul + nmore + 1));
	memcpy(p + 4, s, ns);
	p[4 + ns] = 0;
	memcpy(p + 4 + ns + nul, more, nmore);
	p[4 + ns + nul + nmore] = 0;
}

/* n random bytes. */
static void
add_bytes(DpBuilder *b, uint32 n)
{
	uint8 *p = dp_builder_reserve(b, n);

	for (uint32 i = 0; i < n; i++)
		p[i] = (uint8) fuzz_random();
}

/* A string that ends with a NUL. */
static void
add_cstring(DpBuilder *b)
{
	const char *s = strings[fuzz_below(lengthof(strings))];

	dp_builder_append_bytes(b, s, strlen(s) + 1);
}

/*
 * A field with a random value of any type.
 */
static void
add_value(DpBuilder *b, const char *name, uint32 namelen, int depth)
{
	static const uint8 types[] = {
		DP_TYPE_DOUBLE,    DP_TYPE_STRING,    DP_TYPE_STRING, DP_TYPE_DOCUMENT,   DP_TYPE_DOCUMENT,
		DP_TYPE_DOCUMENT,  DP_TYPE_ARRAY,     DP_TYPE_ARRAY,  DP_TYPE_BINARY,     DP_TYPE_UNDEFINED,
		DP_TYPE_OBJECTID,  DP_TYPE_BOOL,      DP_TYPE_DATE,   DP_TYPE_NULL,       DP_TYPE_REGEX,
		DP_TYPE_DBPOINTER, DP_TYPE_CODE,      DP_TYPE_SYMBOL, DP_TYPE_CODEWSCOPE, DP_TYPE_INT32,
		DP_TYPE_INT32,     DP_TYPE_TIMESTAMP, DP_TYPE_INT64,  DP_TYPE_DECIMAL128, DP_TYPE_MAXKEY,
		DP_TYPE_MINKEY
	};
	uint8 type = types[fuzz_below(lengthof(types))];
	uint32 start;
	uint32 n;
	double d;
	uint64 bits;

	if (depth >= DP_MAX_DEPTH - 1 &&
		(type == DP_TYPE_DOCUMENT || type == DP_TYPE_ARRAY || type == DP_TYPE_CODEWSCOPE))
		type = DP_TYPE_STRING;
	dp_builder_begin_element(b, type, name, namelen);
	switch (type)
	{
		case DP_TYPE_DOUBLE:
			bits = fuzz_below(2) ? doubles[fuzz_below(lengthof(doubles))] : fuzz_random();
			memcpy(&d, &bits, sizeof(d));
			dp_put_double(dp_builder_reserve(b, 8), d);
			break;
		case DP_TYPE_STRING:
		case DP_TYPE_CODE:
		case DP_TYPE_SYMBOL:
			add_string(b);
			break;
		case DP_TYPE_DOCUMENT:
			dp_builder_begin_document(b);
			add_fields(b, depth + 1);
			dp_builder_end(b);
			break;
		case DP_TYPE_ARRAY:
			if (fuzz_below(4))
				dp_builder_begin_array(b);
			else
				dp_builder_begin_document(b); /* an array with names of its own */
			add_fields(b, depth + 1);
			dp_builder_end(b);
			break;
		case DP_TYPE_BINARY:
			n = fuzz_below(2) ? 16 : fuzz_below(20);
			if (fuzz_below(4) == 0)
			{
				uint8 *p = dp_builder_reserve(b, 9);

				dp_put_int32(p, (int32) n + 4);
				p[4] = DP_BINARY_OLD;
				dp_put_int32(p + 5, (int32) n);
			}
			else
			{
				uint8 *p = dp_builder_reserve(b, 5);

				dp_put_int32(p, (int32) n);
				do
					p[4] = fuzz_below(2) ? fuzz_below(8) : fuzz_below(256);
				while (p[4] == DP_BINARY_OLD);
			}
			add_bytes(b, n);
			break;
		case DP_TYPE_OBJECTID:
			add_bytes(b, DP_OBJECTID_SIZE);
			break;
		case DP_TYPE_BOOL:
			*dp_builder_reserve(b, 1) = fuzz_below(2);
			break;
		case DP_TYPE_DATE:
		case DP_TYPE_INT64:
		case DP_TYPE_TIMESTAMP:
			dp_put_int64(dp_builder_reserve(b, 8), some_integer());
			break;
		case DP_TYPE_INT32:
			dp_put_int32(dp_builder_reserve(b, 4), (int32) some_integer());
			break;
		case DP_TYPE_REGEX:
			add_cstring(b);
			add_cstring(b);
			break;
		case DP_TYPE_DBPOINTER:
			add_string(b);
			add_bytes(b, DP_OBJECTID_SIZE);
			break;
		case DP_TYPE_CODEWSCOPE:
			start = b->len;
			dp_builder_reserve(b, 4);
			add_string(b);
			dp_builder_begin_document(b);
			add_fields(b, depth + 1);
			dp_builder_end(b);
			dp_put_int32(b->buf + start, (int32) (b->len - start));
			break;
		case DP_TYPE_DECIMAL128:
			n = fuzz_below(lengthof(decimals));
			if (fuzz_below(3) == 0)
				add_bytes(b, DP_DECIMAL128_SIZE);
			else
			{
				uint8 *p = dp_builder_reserve(b, DP_DECIMAL128_SIZE);

				dp_put_int64(p, (int64) decimals[n][0]);
				dp_put_int64(p + 8, (int64) decimals[n][1]);
			}
			break;
		default:
			break;
	}
}

/* Fields for the container that is open, which is at the depth. */
static void
add_fields(DpBuilder *b, int depth)
{
	int n = fuzz_below(depth == 1 ? 8 : depth < 4 ? 4 : 2);

	/* now and then as deep as it goes */
	if (depth > 1 && n == 0 && fuzz_below(10) == 0)
		n = 1;
	for (int i = 0; i < n; i++)
	{
		const char *name = names[fuzz_below(lengthof(names))];

		add_value(b, name, strlen(name), depth);
	}
	if (fuzz_below(200) == 0)
	{
		for (int i = 0; i < 120; i++)
			dp_builder_append_null(b, "n", 1);
	}
}

/* A document, now and then as deep as it may be. */
void
fuzz_document(DpBuilder *b)
{
	dp_builder_init(b, 0);
	dp_builder_begin_document(b);
	if (fuzz_below(500) == 0)
	{
		/* a chain as deep as it may be */
		int depth = 1;
		int wanted = DP_MAX_DEPTH - (int) fuzz_below(3);

		while (depth < wanted)
		{
			const char *name = names[fuzz_below(lengthof(names))];

			if (fuzz_below(2))
				dp_builder_begin_document_field(b, name, strlen(name));
			else
				dp_builder_begin_array_field(b, name, strlen(name));
			depth++;
		}
		while (depth-- > 1)
			dp_builder_end(b);
	}
	else
		add_fields(b, 1);
	dp_builder_end(b);
}

/*
 * One to four changes: bits, bytes, lengths, pieces cut out, moved or doubled.
 */
void
fuzz_damage_bytes(uint8 *bytes, Size *n, Size cap)
{
	int changes = 1 + fuzz_below(4);

	while (changes-- > 0)
	{
		Size at = *n > 0 ? fuzz_below(*n) : 0;
		Size from = *n > 0 ? fuzz_below(*n) : 0;
		Size len = *n > 0 ? 1 + fuzz_below(Min(*n - Max(at, from), 16)) : 0;

		switch (fuzz_below(*n > 0 ? 9 : 1))
		{
			case 0:
				if (*n < cap)
				{
					memmove(bytes + at + 1, bytes + at, *n - at);
					bytes[at] = (uint8) fuzz_random();
					(*n)++;
				}
				break;
			case 1:
				bytes[at] ^= 1 << fuzz_below(8);
				break;
			case 2:
				bytes[at] = (uint8) fuzz_random();
				break;
			case 3:
				bytes[at] = fuzz_below(2) ? 0 : 0xFF;
				break;
			case 4:
				if (*n - at >= 4)
					dp_put_int32(bytes + at,
								 (int32) ((uint32) dp_get_int32(bytes + at) + fuzz_below(9) - 4));
				break;
			case 5:
				memmove(bytes + at, bytes + at + len, *n - at - len);
				*n -= len;
				break;
			case 6:
				memmove(bytes + at, bytes + from, len);
				break;
			case 7:
				if (*n + len <= cap)
				{
					memmove(bytes + at + len, bytes + at, *n - at);
					*n += len;
				}
				break;
			default:
				if (fuzz_below(4) == 0)
					*n = at;
				else
					bytes[at] = (uint8) (1 + fuzz_below(20));
				break;
		}
		/* half of the time the outer length is right again, so that what is inside is looked at */
		if (*n >= 4 && fuzz_below(2))
			dp_put_int32(bytes, (int32) *n);
	}
}

static const char *const tokens[] = { "{",
									  "}",
									  "[",
									  "]",
									  "(",
									  ")",
									  ":",
									  ",",
									  "\"",
									  "'",
									  "\\",
									  "/",
									  "//",
									  "/*",
									  "*/",
									  "\n",
									  " ",
									  "-",
									  "+",
									  ".",
									  "e",
									  "E",
									  "0",
									  "1",
									  "9999999999",
									  "1e400",
									  "-0",
									  "\\u0000",
									  "\\ud800",
									  "\\udc00",
									  "\\x41",
									  "\\u{41}",
									  "null",
									  "true",
									  "false",
									  "new ",
									  "undefined",
									  "NaN",
									  "Infinity",
									  "MinKey",
									  "ObjectId(",
									  "ISODate(",
									  "Date()",
									  "NumberLong(",
									  "Decimal(",
									  "UUID(",
									  "BinData(",
									  "Timestamp(",
									  "Code(",
									  "RegExp(",
									  "DBRef(",
									  "DBPointer(",
									  "$oid",
									  "$document",
									  "$array",
									  "$date",
									  "$numberDecimal",
									  "$binary",
									  "$code",
									  "$scope",
									  "$type",
									  "{\"$document\": {",
									  "[[[[[[[[[[[[[[[[",
									  "{a:{a:{a:{a:{a:{a:",
									  "\xC2\xA0",
									  "\xEF\xBB\xBF",
									  "\xE2\x82\xAC" };

static const char *const texts[] = {
	"{a: 1, 'b': 2, \"c\": 3, 4: 5, $set: {a: 1}, /* c */ d: [1, 2,], // c\n }",
	"{_id: ObjectID(\"507f191e810c19729de860ea\"), b: new ObjectId('507f191e810c19729de860ea')}",
	"{t: ISODATE(\"2018-12-11T12:00:00.00Z\"), u: new Date(5), v: Date(\"2018-12-11\"), w: new Date(\"+010000-01-01T00:00:00+01:30\")}",
	"{n: [NumberInt(5), NumberLong(\"5\"), Long(5), Int32(5), Double(5), NumberDouble('1.5'), NumberDecimal(\"1.50\"), Decimal(100.00), Decimal128('NaN')]}",
	"{u: UUID(\"507f191e-810c-1972-9de8-60ea507f191e\"), b: BinData(0, \"AQID\"), h: HexData(5, '00ff'), m: MD5('507f191e810c19729de860ea507f191e')}",
	"{t: [Timestamp(1, 2), Timestamp({t: 1, i: 2})], r: [/a\\/[/]/im, RegExp('a', 'i'), RegExp('a')]}",
	"{k: [MinKey, MaxKey, MinKey(), undefined, Infinity, -Infinity, NaN, null, true, false]}",
	"{c: [Code('x'), Code('x', {a: 1}), Symbol('s'), DBPointer('a', ObjectId('507f191e810c19729de860ea')), DBRef('a', 1, 'b')]}",
	"{b: [Binary.createFromBase64('AQID', 0), Binary(Buffer.from('010203', 'hex'), 5), Binary.createFromHexString('0102')]}",
	"{a: {\"$oid\": \"507f191e810c19729de860ea\"}, b: {\"$numberInt\": \"5\"}, c: {\"$numberLong\": \"-5\"}, d: {\"$numberDouble\": \"NaN(0xfff8000000000000)\"}}",
	"{a: {\"$numberDecimal\": \"1E+6144\"}, b: {\"$binary\": {\"base64\": \"AQID\", \"subType\": \"02\"}}, c: {\"$binary\": \"AQID\", \"$type\": \"05\"}, d: {\"$type\": \"05\", \"$binary\": \"\"}}",
	"{a: {\"$uuid\": \"507f191e-810c-1972-9de8-60ea507f191e\"}, b: {\"$code\": \"x\", \"$scope\": {}}, c: {\"$scope\": {}, \"$code\": \"x\"}, d: {\"$code\": \"y\"}}",
	"{a: {\"$timestamp\": {\"t\": 4294967295, \"i\": 0}}, b: {\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}, c: {\"$symbol\": \"s\"}}",
	"{a: {\"$dbPointer\": {\"$ref\": \"a\", \"$id\": {\"$oid\": \"507f191e810c19729de860ea\"}}}, b: {\"$date\": \"2018-12-11T12:00:00Z\"}, c: {\"$date\": {\"$numberLong\": \"-1\"}}, d: {\"$date\": 5}}",
	"{a: {\"$minKey\": 1}, b: {\"$maxKey\": 1}, c: {\"$undefined\": true}, d: {\"$document\": {\"$oid\": 1}}, e: {\"$array\": {\"$document\": {\"x\": 1}}}}",
	"{n: [0, -0, 1, -1, 2147483648, 9223372036854775807, -9223372036854775808, 9223372036854775808, 1.0, 1e3, .5, 5., -0.0, 1e-300, 123456789012345678901234567890]}",
	"{s: [\"\\u0000\\u00e9\\ud83d\\ude00\\n\\t\\\"\\\\\\/\", 'it\\'s', \"a long string that is more than sixteen bytes\", \"\xE2\x82\xAC\"]}"
};

/* The texts of a file, one a line */
static char *corpus[2000];
static uint32 ncorpus;

/* One of the texts above, which is constant. */
const char *
fuzz_text(void)
{
	uint32 n = fuzz_below(lengthof(texts) + ncorpus);

	return n < lengthof(texts) ? texts[n] : corpus[n - lengthof(texts)];
}

void
fuzz_read_texts(const char *name)
{
	FILE *file = fopen(name, "r");
	char line[4096];

	if (file == NULL)
	{
		perror(name);
		exit(2);
	}
	while (ncorpus < lengthof(corpus) && fgets(line, sizeof(line), file) != NULL)
	{
		line[strcspn(line, "\n")] = '\0';
		corpus[ncorpus++] = strdup(line);
	}
	fclose(file);
}

/*
 * One to four changes: bytes, and whole words put in, cut out or doubled.
 */
void
fuzz_damage_text(char *text, Size *n, Size cap)
{
	int changes = 1 + fuzz_below(4);

	while (changes-- > 0)
	{
		Size at = *n > 0 ? fuzz_below(*n) : 0;
		const char *token = tokens[fuzz_below(lengthof(tokens))];
		Size len = strlen(token);
		Size from = *n > 0 ? fuzz_below(*n) : 0;

		switch (fuzz_below(*n > 0 ? 6 : 1))
		{
			case 0:
			case 1:
				if (*n + len <= cap)
				{
					memmove(text + at + len, text + at, *n - at);
					memcpy(text + at, token, len);
					*n += len;
				}
				break;
			case 2:
				text[at] = (char) (fuzz_below(8) ? 0x20 + fuzz_below(0x5F) : fuzz_random());
				break;
			case 3:
				len = 1 + fuzz_below(Min(*n - at, 16));
				memmove(text + at, text + at + len, *n - at - len);
				*n -= len;
				break;
			case 4:
				len = 1 + fuzz_below(Min(*n - from, 64));
				if (*n + len <= cap)
				{
					char piece[64];

					memcpy(piece, text + from, len);
					memmove(text + at + len, text + at, *n - at);
					memcpy(text + at, piece, len);
					*n += len;
				}
				break;
			default:
				if (fuzz_below(4) == 0)
					*n = at;
				break;
		}
	}
}
