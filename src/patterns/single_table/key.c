/*
 * key.c
 *		Templates of keys: compile, fill in, read back.
 *
 * In a value, the per cent sign, the number sign and all characters of the
 * template's literals except letters and digits are written as %XX.  So a value
 * never contains the following literal, and each key has one set of values.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "bson/access.h"
#include "bson/cast.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "patterns/single_table/single_table.h"

/* as many digits as a decimal128 has, in which they are read back */
#define MAX_PAD 34

static bool is_word(unsigned char c);
static void template_error(const char *text, const char *detail) pg_attribute_noreturn();
static char *value_text(const DpValue *value);
static DpTemplateResult pad_digits(StringInfo out, const char *digits, int pad);
static bool decode(const char *s, uint32 len, StringInfo out);

DpTemplate *
dp_template_parse(const char *text)
{
	DpTemplate *t = palloc0(sizeof(DpTemplate));
	const char *p = text;
	int size = 4;
	bool field = false;

	if (*text == '\0')
		template_error(text, "It is empty.");
	t->text = pstrdup(text);
	t->parts = palloc0(sizeof(DpTemplatePart) * size);
	t->escaped['%'] = t->escaped['#'] = true;
	while (*p != '\0')
	{
		DpTemplatePart *part;
		StringInfoData literal;

		if (t->nparts == size)
		{
			t->parts = repalloc(t->parts, sizeof(DpTemplatePart) * size * 2);
			memset(t->parts + size, 0, sizeof(DpTemplatePart) * size);
			size *= 2;
		}
		part = &t->parts[t->nparts];
		initStringInfo(&literal);
		while (*p != '\0' && (*p != '{' || p[1] == '{'))
		{
			unsigned char c = *p;

			if (c == '}' && p[1] != '}')
				template_error(
					text,
					"A brace is closed that was not opened; it is written twice where it is meant itself.");
			p += c == '{' || c == '}' ? 2 : 1;
			appendStringInfoChar(&literal, c);
			if (!is_word(c))
				t->escaped[c] = true;
		}
		part->literal = literal.data;
		part->len = literal.len;
		if (field && (literal.len == 0 ? *p != '\0' : is_word(literal.data[0])))
			template_error(
				text,
				"After a field there has to be a separator, which is no letter and no digit.");
		if (*p == '{')
		{
			const char *end = strchr(p, '}');
			const char *colon;
			char *name;

			if (end == NULL)
				template_error(text, "A brace is not closed.");
			name = pnstrdup(p + 1, end - p - 1);
			colon = strrchr(name, ':');
			if (colon != NULL && colon[1] == '0' &&
				strspn(colon + 1, "0123456789") == strlen(colon + 1) && strlen(colon + 1) <= 3)
			{
				part->pad = atoi(colon + 1);
				if (part->pad < 1 || part->pad > MAX_PAD)
					template_error(text,
								   psprintf("A number must be padded to 1 to %d digits.", MAX_PAD));
				name[colon - name] = '\0';
			}
			if (*name == '\0')
				template_error(text, "A field has no name.");
			part->field = name;
			part->path = dp_path_parse(name, strlen(name));
			p = end + 1;
			field = true;
		}
		t->nparts++;
	}
	return t;
}

/* Letters, digits, and non-ASCII characters are never separators. */
static bool
is_word(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

static void
template_error(const char *text, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid template of a key: \"%s\"", text), errdetail_internal("%s", detail),
			 errhint("Write a template like USER#{user_id}.")));
}

DpTemplateResult
dp_template_format(const DpTemplate *t, const DpValue *doc, StringInfo out, const char **field)
{
	int i;

	for (i = 0; i < t->nparts; i++)
	{
		const DpTemplatePart *part = &t->parts[i];
		DpValue value;
		char *text;

		appendBinaryStringInfo(out, part->literal, part->len);
		if (part->path == NULL)
			continue;
		*field = part->field;
		if (!dp_path_find(doc->data, doc->len, part->path, &value) || value.type == DP_TYPE_NULL ||
			value.type == DP_TYPE_UNDEFINED)
			return DP_TEMPLATE_MISSING;
		text = value_text(&value);
		if (text == NULL)
			return DP_TEMPLATE_UNFIT;
		if (*text == '\0')
			return DP_TEMPLATE_EMPTY;
		if (part->pad > 0)
		{
			DpTemplateResult result = pad_digits(out, text, part->pad);

			if (result != DP_TEMPLATE_OK)
				return result;
			continue;
		}
		for (; *text != '\0'; text++)
		{
			unsigned char c = *text;

			if (t->escaped[c])
				appendStringInfo(out, "%%%02X", c);
			else
				appendStringInfoCharMacro(out, c);
		}
	}
	return DP_TEMPLATE_OK;
}

/*
 * Returns a value as part of a key; NULL if it cannot be one. Equal numbers of different types are
 * written alike, without trailing zeros.
 */
static char *
value_text(const DpValue *value)
{
	StringInfoData out;
	bool isnull;

	switch (value->type)
	{
		case DP_TYPE_STRING:
		case DP_TYPE_SYMBOL:
			if (memchr(DP_STRING_DATA(value), 0, DP_STRING_LEN(value)) != NULL)
				return NULL;
			return pnstrdup(DP_STRING_DATA(value), DP_STRING_LEN(value));
		case DP_TYPE_INT32:
			return psprintf("%d", dp_get_int32(value->data));
		case DP_TYPE_INT64:
			return psprintf(INT64_FORMAT, dp_get_int64(value->data));
		case DP_TYPE_DOUBLE:
		case DP_TYPE_DECIMAL128:
		{
			Datum number = dp_value_to_datum(value, NUMERICOID, -1, &isnull);

			if (numeric_is_nan(DatumGetNumeric(number)) || numeric_is_inf(DatumGetNumeric(number)))
				return NULL;
			number = DirectFunctionCall1(numeric_trim_scale, number);
			return DatumGetCString(DirectFunctionCall1(numeric_out, number));
		}
		case DP_TYPE_BOOL:
			return value->data[0] != 0 ? "true" : "false";
		case DP_TYPE_DATE:
			initStringInfo(&out);
			dp_date_to_text(&out, dp_get_int64(value->data));
			return out.data;
		case DP_TYPE_OBJECTID:
			return text_to_cstring(dp_value_as_text(value));
		case DP_TYPE_BINARY:
			if (value->data[4] != DP_BINARY_UUID)
				return NULL;
			return DatumGetCString(DirectFunctionCall1(uuid_out, dp_value_to_datum(value, UUIDOID,
																				   -1, &isnull)));
		default:
			return NULL;
	}
}

/* Digits with zeros in front. */
static DpTemplateResult
pad_digits(StringInfo out, const char *digits, int pad)
{
	int len = strlen(digits);

	if (len > pad || strspn(digits, "0123456789") != len)
		return DP_TEMPLATE_UNFIT;
	appendStringInfoSpaces(out, pad - len);
	memset(out->data + out->len - (pad - len), '0', pad - len);
	appendBinaryStringInfo(out, digits, len);
	return DP_TEMPLATE_OK;
}

bool
dp_template_match(const DpTemplate *t, const char *key, uint32 len, DpValue *values)
{
	const char *end = key + len;
	int i;

	for (i = 0; i < t->nparts; i++)
	{
		const DpTemplatePart *part = &t->parts[i];
		const char *stop;
		StringInfoData text;

		if (part->len > end - key || memcmp(key, part->literal, part->len) != 0)
			return false;
		key += part->len;
		if (part->path == NULL)
			continue;
		stop = end;
		if (i + 1 < t->nparts)
		{
			/* the first byte of what follows is never in a value */
			stop = memchr(key, t->parts[i + 1].literal[0], end - key);
			if (stop == NULL)
				return false;
		}
		if (stop == key)
			return false;
		initStringInfo(&text);
		if (part->pad > 0 ? stop - key != part->pad || strspn(key, "0123456789") < part->pad
						  : !decode(key, stop - key, &text))
			return false;
		if (values != NULL)
		{
			DpBuilder b;

			dp_builder_init_value(&b, 0);
			dp_builder_begin_document(&b);
			if (part->pad > 0)
			{
				/* convert back to a number */
				char *digits = pnstrdup(key, stop - key);
				Datum number = DirectFunctionCall3(numeric_in, CStringGetDatum(digits),
												   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));

				if (part->pad <= 18)
				{
					int64 n = DatumGetInt64(DirectFunctionCall1(numeric_int8, number));

					if (n <= PG_INT32_MAX)
						dp_builder_append_int32(&b, "v", 1, (int32) n);
					else
						dp_builder_append_int64(&b, "v", 1, n);
				}
				else
					dp_builder_append_datum(&b, "v", 1, number, false, NUMERICOID);
			}
			else
				dp_builder_append_string(&b, "v", 1, text.data, text.len);
			dp_builder_end(&b);
			{
				DpValue document = dp_builder_view(&b, DP_TYPE_DOCUMENT);

				if (!dp_document_find(document.data, document.len, "v", 1, &values[i]))
					elog(ERROR, "a value of a key is lost");
			}
		}
		key = stop;
	}
	return key == end;
}

/* A value as it was before it was escaped; false if it is not one. */
static bool
decode(const char *s, uint32 len, StringInfo out)
{
	const char *end = s + len;

	while (s < end)
	{
		unsigned char c = *s++;

		if (c == '%')
		{
			static const char hex[] = "0123456789ABCDEF";
			const char *high = end - s >= 2 ? memchr(hex, s[0], 16) : NULL;
			const char *low = high != NULL ? memchr(hex, s[1], 16) : NULL;

			if (low == NULL || (high == hex && low == hex))
				return false;
			c = (high - hex) * 16 + (low - hex);
			s += 2;
		}
		appendStringInfoCharMacro(out, c);
	}
	return pg_verify_mbstr(PG_UTF8, out->data, out->len, true);
}
