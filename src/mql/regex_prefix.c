/*
 * regex_prefix.c
 *		The literal prefix of the strings that a regular expression matches.
 *
 * If a pattern might have another meaning there is no prefix, and the index searches all strings.
 */
#include "postgres.h"

#include "mql/regex.h"

static bool may_branch(const char *pattern, uint32 len);

/*
 * The literal prefix of a pattern that begins with ^: the characters before the first special
 * character, without an optional one.
 */
bool
dp_regex_literal_prefix(const char *pattern, uint32 len, const char *options, uint32 optlen,
						const char **literal, uint32 *literallen)
{
	char *out;
	uint32 n = 0;
	uint32 last = 0; /* where the last character of the literal begins */
	uint32 i = 1;

	/* with i, m or x the pattern is no literal, or not in front */
	for (uint32 j = 0; j < optlen; j++)
		if (options[j] != 's' && options[j] != 'u')
			return false;
	if (len < 2 || pattern[0] != '^' || may_branch(pattern, len))
		return false;

	out = palloc(len);
	while (i < len)
	{
		char c = pattern[i];

		if (c == '\\')
		{
			if (i + 1 >= len || !ispunct((unsigned char) pattern[i + 1]))
				break;
			c = pattern[++i];
		}
		else if (c == '?' || c == '*' || c == '{')
		{
			n = last;
			break;
		}
		else if (strchr("^$.[]|()+}", c) != NULL)
			break;
		if (((unsigned char) c & 0xC0) != 0x80)
			last = n;
		out[n++] = c;
		i++;
	}
	if (n == 0)
	{
		pfree(out);
		return false;
	}
	*literal = out;
	*literallen = n;
	return true;
}

/*
 * Whether there may be an alternative to what the pattern begins with, or
 * options inside of it.
 */
static bool
may_branch(const char *pattern, uint32 len)
{
	bool bar = false;
	bool unclear = false;
	int depth = 0;

	for (uint32 i = 0; i < len; i++)
		switch (pattern[i])
		{
			case '\\':
				i++;
				if (i < len && (pattern[i] == 'Q' || pattern[i] == 'E'))
					return true;
				break;
			case '[':
				unclear = true;
				break;
			case '(':
				depth++;
				if (i + 1 < len && pattern[i + 1] == '*')
					return true;
				if (i + 2 < len && pattern[i + 1] == '?' && strchr(":=!", pattern[i + 2]) == NULL)
					return true;
				break;
			case ')':
				depth--;
				break;
			case '|':
				bar = true;
				if (depth <= 0)
					return true;
				break;
		}
	return bar && unclear;
}
