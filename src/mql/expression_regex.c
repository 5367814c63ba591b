/*
 * expression_regex.c
 *		$regexMatch, $regexFind and $regexFindAll.
 *
 * A regular expression that is a literal, as it nearly always is, is compiled
 * once with the expression; any other at each evaluation.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "mql/expression_node.h"
#include "mql/regex.h"

enum
{
	OP_MATCH,
	OP_FIND,
	OP_FINDALL
};

/* Arguments, in the order of the names below */
#define ARG_INPUT 0
#define ARG_REGEX 1
#define ARG_OPTIONS 2

/*
 * The compiled pattern of a regex or a string and separate options, or NULL if the pattern is null.
 */
static DpRegex *
regex_make(const DpNode *node, const DpValue *pattern, const DpValue *options)
{
	const char *p;
	const char *o = "";
	uint32 plen;
	uint32 olen = 0;

	if (!dp_is_nullish(options) && options->type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as its options", options);
	if (dp_is_nullish(pattern))
		return NULL;
	if (pattern->type == DP_TYPE_REGEX)
		dp_regex_split(pattern, &p, &plen, &o, &olen);
	else if (pattern->type == DP_TYPE_STRING)
	{
		p = DP_STRING_DATA(pattern);
		plen = DP_STRING_LEN(pattern);
		if (memchr(p, 0, plen) != NULL)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a pattern without null characters");
	}
	else
		dp_node_type_error(node, "a string or a regular expression as its regex", pattern);
	if (!dp_is_nullish(options))
	{
		if (olen > 0)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "has options both in its regex and beside it");
		o = DP_STRING_DATA(options);
		olen = DP_STRING_LEN(options);
	}
	return dp_regex_compile(p, plen, o, olen);
}

/*
 * Compiles a pattern that is known beforehand.
 */
static void
regex_prepare(DpCompiler *c, DpNode *node)
{
	DpValue pattern;
	DpValue options = { NULL, 0, DP_TYPE_EOD };

	if (dp_node_is_literal(node->args[ARG_REGEX], &pattern) &&
		(node->args[ARG_OPTIONS] == NULL || dp_node_is_literal(node->args[ARG_OPTIONS], &options)))
		node->extra = regex_make(node, &pattern, &options);
}

/* Appends {match, idx, captures} to the open document; idx is the position in characters. */
static void
append_match(DpBuilder *b, const char *s, const DpRegexSpan *spans, int nspans, uint32 idx)
{
	dp_builder_append_string(b, "match", 5, s + spans[0].start, spans[0].len);
	dp_builder_append_int32(b, "idx", 3, idx);
	dp_builder_begin_array_field(b, "captures", 8);
	for (int i = 1; i < nspans; i++)
	{
		if (spans[i].start < 0)
			dp_builder_append_null(b, NULL, 0);
		else
			dp_builder_append_string(b, NULL, 0, s + spans[i].start, spans[i].len);
	}
	dp_builder_end(b);
}

/*
 * All three.  null as input or regex gives false, null or [].
 */
static bool
regex_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	int which = node->op->which;
	DpRegex *regex = node->extra;
	DpValue input;
	DpRegexSpan *spans;
	DpBuilder b;
	const char *s;
	uint32 len;
	uint32 from = 0;
	uint32 counted = 0; /* bytes whose characters are in idx */
	uint32 idx = 0;
	int nspans;

	dp_arg(node, ARG_INPUT, state, &input);
	if (!dp_is_nullish(&input) && input.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as its input", &input);
	if (regex == NULL)
	{
		DpValue pattern;
		DpValue options;

		dp_arg(node, ARG_REGEX, state, &pattern);
		dp_arg(node, ARG_OPTIONS, state, &options);
		regex = regex_make(node, &pattern, &options);
	}
	if (dp_is_nullish(&input) || regex == NULL)
	{
		if (which == OP_MATCH)
			return dp_result_bool(result, false);
		if (which == OP_FIND)
			return dp_result_null(result);
		len = 0;
		s = NULL;
	}
	else
	{
		s = DP_STRING_DATA(&input);
		len = DP_STRING_LEN(&input);
		if (which == OP_MATCH)
			return dp_result_bool(result, dp_regex_match(regex, s, len));
	}

	nspans = regex == NULL ? 1 : dp_regex_groups(regex) + 1;
	spans = palloc(sizeof(DpRegexSpan) * nspans);
	dp_result_builder(&b, 0);
	if (which == OP_FIND)
	{
		if (!dp_regex_find(regex, s, len, 0, spans, nspans))
			return dp_result_null(result);
		dp_builder_begin_document(&b);
		append_match(&b, s, spans, nspans, dp_count_chars(s, spans[0].start));
		dp_builder_end(&b);
		return dp_result_built(result, &b, DP_TYPE_DOCUMENT);
	}

	dp_builder_begin_array(&b);
	/* as in MongoDB, only the first search may find an empty match at the end */
	while (s != NULL && (from < len || from == 0) &&
		   dp_regex_find(regex, s, len, from, spans, nspans))
	{
		CHECK_FOR_INTERRUPTS();
		dp_builder_begin_document_field(&b, NULL, 0);
		if (spans[0].start < counted) /* \K can set the start back */
			idx = counted = 0;
		idx += dp_count_chars(s + counted, spans[0].start - counted);
		counted = spans[0].start;
		append_match(&b, s, spans, nspans, idx);
		dp_builder_end(&b);
		from = dp_regex_next(s, len, from, &spans[0]);
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

const DpOperator dp_operators_regex[] = { { .name = "$regexFind",
											.eval = regex_eval,
											.names = "input regex ?options",
											.prepare = regex_prepare,
											.which = OP_FIND },
										  { .name = "$regexFindAll",
											.eval = regex_eval,
											.names = "input regex ?options",
											.prepare = regex_prepare,
											.which = OP_FINDALL },
										  { .name = "$regexMatch",
											.eval = regex_eval,
											.names = "input regex ?options",
											.prepare = regex_prepare,
											.which = OP_MATCH },
										  { NULL } };
