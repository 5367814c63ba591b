/*
 * text_word.c
 *		Values that are words or calls: true, MinKey, ObjectId("..").
 *
 * The arguments of a call are ordinary values; they are written as an array,
 * which the value then replaces.
 */
#include "postgres.h"

#include <math.h>

#include "bson/reader.h"
#include "bson/text_parse.h"

typedef enum Word
{
	WORD_TRUE,
	WORD_FALSE,
	WORD_NULL,
	WORD_UNDEFINED,
	WORD_NAN,
	WORD_INFINITY,
	WORD_NEW,
	WORD_MINKEY,
	WORD_MAXKEY,
	/* calls from here on */
	WORD_OBJECTID,
	WORD_DATE,
	WORD_INT32,
	WORD_INT64,
	WORD_DOUBLE,
	WORD_DECIMAL,
	WORD_UUID,
	WORD_BINDATA,
	WORD_BASE64,
	WORD_HEXDATA,
	WORD_HEXSTRING,
	WORD_BUFFER,
	WORD_BINARY,
	WORD_MD5,
	WORD_TIMESTAMP,
	WORD_REGEX,
	WORD_CODE,
	WORD_SYMBOL,
	WORD_DBPOINTER,
	WORD_DBREF
} Word;

/* The spellings, and for calls how many arguments they take and what these are, for messages. */
static const struct
{
	const char *name;
	Word word;
	int8 min;
	int8 max;
	const char *usage;
} words[] = {
	{ "true", WORD_TRUE },
	{ "false", WORD_FALSE },
	{ "null", WORD_NULL },
	{ "undefined", WORD_UNDEFINED },
	{ "NaN", WORD_NAN },
	{ "Infinity", WORD_INFINITY },
	{ "new", WORD_NEW },
	{ "MinKey", WORD_MINKEY },
	{ "MaxKey", WORD_MAXKEY },
#define OID_USAGE "24 hexadecimal digits in quotes"
	{ "ObjectId", WORD_OBJECTID, 1, 1, OID_USAGE },
	{ "ObjectID", WORD_OBJECTID, 1, 1, OID_USAGE },
	{ "ObjectId.createFromHexString", WORD_OBJECTID, 1, 1, OID_USAGE },
#define DATE_USAGE "a date as in \"2018-12-11T12:00:00Z\" or milliseconds"
	{ "ISODate", WORD_DATE, 1, 1, DATE_USAGE },
	{ "ISODATE", WORD_DATE, 1, 1, DATE_USAGE },
	{ "Date", WORD_DATE, 1, 1, DATE_USAGE },
#define INT32_USAGE "a whole number of 32 bits"
	{ "NumberInt", WORD_INT32, 1, 1, INT32_USAGE },
	{ "Int32", WORD_INT32, 1, 1, INT32_USAGE },
#define INT64_USAGE "a whole number of 64 bits"
	{ "NumberLong", WORD_INT64, 1, 1, INT64_USAGE },
	{ "Long", WORD_INT64, 1, 1, INT64_USAGE },
	{ "Int64", WORD_INT64, 1, 1, INT64_USAGE },
	{ "Long.fromString", WORD_INT64, 1, 1, INT64_USAGE },
	{ "Long.fromNumber", WORD_INT64, 1, 1, INT64_USAGE },
#define DOUBLE_USAGE "a number"
	{ "NumberDouble", WORD_DOUBLE, 1, 1, DOUBLE_USAGE },
	{ "Double", WORD_DOUBLE, 1, 1, DOUBLE_USAGE },
#define DECIMAL_USAGE "a number of at most 34 digits"
	{ "NumberDecimal", WORD_DECIMAL, 1, 1, DECIMAL_USAGE },
	{ "Decimal128", WORD_DECIMAL, 1, 1, DECIMAL_USAGE },
	{ "Decimal", WORD_DECIMAL, 1, 1, DECIMAL_USAGE },
	{ "Decimal128.fromString", WORD_DECIMAL, 1, 1, DECIMAL_USAGE },
	{ "UUID", WORD_UUID, 1, 1, "32 hexadecimal digits in quotes, with or without hyphens" },
	{ "BinData", WORD_BINDATA, 2, 2, "a subtype and base64 in quotes" },
	{ "Binary.createFromBase64", WORD_BASE64, 1, 2, "base64 in quotes and a subtype" },
	{ "HexData", WORD_HEXDATA, 2, 2, "a subtype and hexadecimal digits in quotes" },
	{ "Binary.createFromHexString", WORD_HEXSTRING, 1, 2,
	  "hexadecimal digits in quotes and a subtype" },
	{ "Buffer.from", WORD_BUFFER, 2, 2, "a string and \"hex\" or \"base64\"" },
	{ "Binary", WORD_BINARY, 1, 2, "Buffer.from(..) and a subtype" },
	{ "MD5", WORD_MD5, 1, 1, "32 hexadecimal digits in quotes" },
	{ "Timestamp", WORD_TIMESTAMP, 1, 2, "seconds and a number, or {t: seconds, i: number}" },
#define REGEX_USAGE "a pattern in quotes and options from \"ilmsux\""
	{ "RegExp", WORD_REGEX, 1, 2, REGEX_USAGE },
	{ "BSONRegExp", WORD_REGEX, 1, 2, REGEX_USAGE },
	{ "Code", WORD_CODE, 1, 2, "a string and a document" },
	{ "Symbol", WORD_SYMBOL, 1, 1, "a string" },
	{ "BSONSymbol", WORD_SYMBOL, 1, 1, "a string" },
	{ "DBPointer", WORD_DBPOINTER, 2, 2, "the name of a collection and an ObjectId" },
	{ "DBRef", WORD_DBREF, 2, 3, "the name of a collection, an id and the name of a database" },
};

static int find_word(DpParser *p, const char **end);
static int put_word(DpParser *p, Word word);
static int parse_call(DpParser *p, int which, const char *where);
static bool parse_decimal(DpParser *p);
static int convert_call(DpParser *p, uint32 start, Word word, const DpValue *args, int count);
static int convert_number(DpParser *p, uint32 start, Word word, const DpValue *v);
static int convert_binary(DpParser *p, uint32 start, Word word, const DpValue *args, int count);
static int convert_dbref(DpParser *p, uint32 start, const DpValue *args, int count);

/*
 * The value that the word at the cursor spells.  The caller has made room.
 */
int
dp_parser_word(DpParser *p)
{
	const char *where = p->cur;
	const char *s = where;
	const char *end;
	int which;

	/* the three words that are everywhere */
	if (s[0] == 't' && s[1] == 'r' && s[2] == 'u' && s[3] == 'e' && !dp_is_name(s[4]))
	{
		p->cur = s + 4;
		p->b.buf[p->b.len++] = 1;
		return DP_TYPE_BOOL;
	}
	if (s[0] == 'n' && s[1] == 'u' && s[2] == 'l' && s[3] == 'l' && !dp_is_name(s[4]))
	{
		p->cur = s + 4;
		return DP_TYPE_NULL;
	}
	if (s[0] == 'f' && s[1] == 'a' && s[2] == 'l' && s[3] == 's' && s[4] == 'e' &&
		!dp_is_name(s[5]))
	{
		p->cur = s + 5;
		p->b.buf[p->b.len++] = 0;
		return DP_TYPE_BOOL;
	}

	which = find_word(p, &end);
	if (which >= 0 && words[which].word == WORD_NEW)
	{
		p->cur = end;
		dp_parser_skip_blanks(p);
		which = find_word(p, &end);
		if (which >= 0 && words[which].word < WORD_MINKEY)
			which = -1;
	}
	if (which < 0)
	{
		int len = (int) Min(end - p->cur, 40);

		if (len == 0 || p->cur > where)
		{
			dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
						   "\"new\" is not followed by a call such as ObjectId(\"..\")");
			return -1;
		}

		/* not within a character */
		while (((uint8) p->cur[len] & 0xC0) == 0x80)
			len++;
		dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, p->cur,
					   p->start != where || strcmp(p->type, "bson_value") == 0
						   ? "Write strings in quotes."
						   : "Write a document as in {name: \"Ann\"}.",
					   "\"%.*s\" is not a value", len, p->cur);
		return -1;
	}
	p->cur = end;
	if (words[which].word < WORD_MINKEY)
		return put_word(p, words[which].word);
	dp_parser_skip_blanks(p);
	if (words[which].word < WORD_OBJECTID)
	{
		if (*p->cur == '(')
		{
			p->cur++;
			dp_parser_skip_blanks(p);
			if (*p->cur != ')')
			{
				dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
							   "%s takes no argument", words[which].name);
				return -1;
			}
			p->cur++;
		}
		return words[which].word == WORD_MINKEY ? DP_TYPE_MINKEY : DP_TYPE_MAXKEY;
	}
	return parse_call(p, which, where);
}

/*
 * Looks up the word at the cursor and stores its end.  Returns its place in
 * words, or -1.
 */
static int
find_word(DpParser *p, const char **end)
{
	const char *s = p->cur;

	while (dp_is_name(*s) || (*s == '.' && s > p->cur))
		s++;
	*end = s;
	for (int i = 0; i < lengthof(words); i++)
	{
		if (strncmp(words[i].name, p->cur, s - p->cur) == 0 && words[i].name[s - p->cur] == '\0')
			return s > p->cur ? i : -1;
	}
	return -1;
}

/*
 * Writes the value of a word that is no call.
 */
static int
put_word(DpParser *p, Word word)
{
	uint8 *out = p->b.buf + p->b.len;
	double d;

	switch (word)
	{
		case WORD_UNDEFINED:
			return DP_TYPE_UNDEFINED;
		case WORD_NAN:
			(void) dp_text_to_double("NaN", 3, &d);
			break;
		case WORD_INFINITY:
			d = INFINITY;
			break;
		default:
			/* true, false and null have been dealt with */
			return DP_TYPE_NULL;
	}
	dp_put_double(out, d);
	p->b.len += 8;
	return DP_TYPE_DOUBLE;
}

/*
 * The call whose name has just been read.
 */
static int
parse_call(DpParser *p, int which, const char *where)
{
	const Word word = words[which].word;
	const uint32 start = p->b.len;
	const char *hint = NULL;
	DpIter iter;
	DpValue args[3];
	int count;
	int type = -1;

	if (*p->cur != '(')
	{
		dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, p->cur, NULL,
					   "%s is not followed by a parenthesis", words[which].name);
		return -1;
	}
	if (word == WORD_DECIMAL)
	{
		if (parse_decimal(p))
			return DP_TYPE_DECIMAL128;
	}
	if (!dp_parser_elements(p, ')', &count))
		return -1;
	if (count == 0)
	{
		if (word == WORD_OBJECTID)
			hint = "Input gives the same value each time. To make a new id, call objectid().";
		else if (word == WORD_DATE)
			hint = "Input gives the same value each time. For the present time, use now().";
		else if (word == WORD_UUID)
			hint =
				"Input gives the same value each time. To make a new one, call gen_random_uuid().";
	}
	else if (word == WORD_DATE)
		hint = "Write the date as in ISODate(\"2018-12-11T12:00:00Z\").";
	if (count >= words[which].min && count <= words[which].max)
	{
		dp_iter_init(&iter, p->b.buf + start, p->b.len - start);
		for (int i = 0; i < count; i++)
			(void) dp_iter_next_value(&iter, &args[i]);
		type = convert_call(p, start, word, args, count);
	}
	if (type < 0)
		dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, hint, "%s takes %s",
					   words[which].name, words[which].usage);
	return type;
}

/*
 * The decimal between the parentheses at the cursor, if it is not quoted: its digits are kept
 * unchanged, including trailing zeros.  Returns false without an effect if there is none.
 */
static bool
parse_decimal(DpParser *p)
{
	const char *open = p->cur;
	const char *s;

	p->cur++;
	dp_parser_skip_blanks(p);
	s = p->cur;
	while (dp_is_name(*s) || *s == '.' || *s == '+' || *s == '-')
		s++;
	if (s > p->cur && dp_text_to_decimal(p->cur, s - p->cur, p->b.buf + p->b.len))
	{
		p->cur = s;
		dp_parser_skip_blanks(p);
		if (*p->cur == ')')
		{
			p->cur++;
			p->b.len += DP_DECIMAL128_SIZE;
			p->height = 0;
			return true;
		}
	}
	p->cur = open;
	return false;
}

/*
 * Replaces the arguments of a call, which were written from start on, by its value.  Returns -1 if
 * they are invalid.
 */
static int
convert_call(DpParser *p, uint32 start, Word word, const DpValue *args, int count)
{
	const DpValue *second = count > 1 ? &args[1] : NULL;

	switch (word)
	{
		case WORD_OBJECTID:
			return dp_put_objectid(p, start, &args[0]);
		case WORD_DATE:
			return dp_put_date(p, start, &args[0]);
		case WORD_INT32:
		case WORD_INT64:
		case WORD_DOUBLE:
			return convert_number(p, start, word, &args[0]);
		case WORD_DECIMAL:
			return dp_put_decimal(p, start, &args[0]);
		case WORD_UUID:
			return dp_put_uuid(p, start, &args[0]);
		case WORD_BINDATA:
		case WORD_BASE64:
		case WORD_HEXDATA:
		case WORD_HEXSTRING:
		case WORD_BUFFER:
		case WORD_BINARY:
		case WORD_MD5:
			return convert_binary(p, start, word, args, count);
		case WORD_TIMESTAMP:
			if (second == NULL)
			{
				DpValue t, i;

				if (args[0].type != DP_TYPE_DOCUMENT ||
					dp_document_count(args[0].data, args[0].len) != 2 ||
					!dp_document_find(args[0].data, args[0].len, "t", 1, &t) ||
					!dp_document_find(args[0].data, args[0].len, "i", 1, &i))
					return -1;
				return dp_put_timestamp(p, start, &t, &i);
			}
			return dp_put_timestamp(p, start, &args[0], second);
		case WORD_REGEX:
			return dp_put_regex(p, start, &args[0], second, true);
		case WORD_CODE:
			return dp_put_code(p, start, &args[0], second);
		case WORD_SYMBOL:
			return dp_put_string(p, start, DP_TYPE_SYMBOL, &args[0]);
		case WORD_DBPOINTER:
			return dp_put_dbpointer(p, start, &args[0], second);
		case WORD_DBREF:
			return convert_dbref(p, start, args, count);
		default:
			return -1;
	}
}

/*
 * NumberInt, NumberLong, NumberDouble: from a string or a number.
 */
static int
convert_number(DpParser *p, uint32 start, Word word, const DpValue *v)
{
	uint8 out[8];
	int64 i;
	double d;

	if (word == WORD_DOUBLE)
	{
		if (v->type == DP_TYPE_DOUBLE)
			d = dp_get_double(v->data);
		else if (v->type == DP_TYPE_STRING)
		{
			if (!dp_text_to_double(DP_STRING_DATA(v), DP_STRING_LEN(v), &d))
				return -1;
		}
		else if (dp_number_of_value(v, &i))
			d = (double) i;
		else
			return -1;
		dp_put_double(out, d);
		dp_parser_replace(p, start, out, 8);
		return DP_TYPE_DOUBLE;
	}
	if (v->type == DP_TYPE_STRING)
	{
		if (!dp_text_to_int64(DP_STRING_DATA(v), DP_STRING_LEN(v), &i))
			return -1;
	}
	else if (!dp_number_of_value(v, &i))
		return -1;
	if (word == WORD_INT64)
	{
		dp_put_int64(out, i);
		dp_parser_replace(p, start, out, 8);
		return DP_TYPE_INT64;
	}
	if (i != (int32) i)
		return -1;
	dp_put_int32(out, (int32) i);
	dp_parser_replace(p, start, out, 4);
	return DP_TYPE_INT32;
}

/*
 * The calls that make binary values.
 */
static int
convert_binary(DpParser *p, uint32 start, Word word, const DpValue *args, int count)
{
	static const uint8 zero[4] = { 0, 0, 0, 0 };
	static const uint8 five[4] = { 5, 0, 0, 0 };
	const DpValue generic = { zero, 4, DP_TYPE_INT32 };
	const DpValue md5 = { five, 4, DP_TYPE_INT32 };
	const DpValue *second = count > 1 ? &args[1] : &generic;
	uint8 *bytes;
	int type;
	int64 subtype;

	switch (word)
	{
		case WORD_BINDATA:
			return dp_put_base64(p, start, &args[1], &args[0]);
		case WORD_BASE64:
			return dp_put_base64(p, start, &args[0], second);
		case WORD_HEXDATA:
			return dp_put_hex(p, start, &args[1], &args[0]);
		case WORD_HEXSTRING:
			return dp_put_hex(p, start, &args[0], second);
		case WORD_MD5:
			if (args[0].type != DP_TYPE_STRING || DP_STRING_LEN(&args[0]) != 32)
				return -1;
			return dp_put_hex(p, start, &args[0], &md5);
		case WORD_BUFFER:
			if (second->type != DP_TYPE_STRING)
				return -1;
			if (strcmp(DP_STRING_DATA(second), "hex") == 0)
				return dp_put_hex(p, start, &args[0], &generic);
			if (strcmp(DP_STRING_DATA(second), "base64") == 0)
				return dp_put_base64(p, start, &args[0], &generic);
			return -1;
		default:
			/* Binary(Buffer.from(..), subtype) */
			if (args[0].type != DP_TYPE_BINARY || args[0].data[4] != DP_BINARY_GENERIC ||
				!dp_number_of_value(second, &subtype) || subtype < 0 || subtype > 255)
				return -1;
			bytes = palloc(args[0].len);
			memcpy(bytes, args[0].data, args[0].len);
			type = dp_put_binary(p, start, (uint8) subtype, bytes + 5, args[0].len - 5);
			pfree(bytes);
			return type;
	}
}

/*
 * A reference is a document by convention: {"$ref": .., "$id": .., "$db": ..}.
 */
static int
convert_dbref(DpParser *p, uint32 start, const DpValue *args, int count)
{
	static const char *const names[] = { "$ref", "$id", "$db" };
	const int height = p->height;
	DpBuilder b;

	if (args[0].type != DP_TYPE_STRING || (count == 3 && args[2].type != DP_TYPE_STRING))
		return -1;
	dp_builder_init(&b, p->b.len - start);
	dp_builder_begin_document(&b);
	for (int i = 0; i < count; i++)
		dp_builder_append_value(&b, names[i], strlen(names[i]), &args[i]);
	dp_builder_end(&b);
	p->b.len = start;
	dp_builder_append_bytes(&p->b, b.buf + b.head, b.len - b.head);
	dp_builder_free(&b);
	p->height = height;
	return DP_TYPE_DOCUMENT;
}
