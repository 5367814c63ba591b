/*
 * server.c
 *		Throws damaged texts and damaged stored values at SQL statements: for what
 *		cannot run outside of a server (see targets.sql and server.sh).
 *
 *		fuzz_run(target text, iterations bigint, seed bigint, first bigint) -> text
 *
 * reads what the target selects, one thing or several (with ; between them, of
 * which each iteration tries one), and the kinds of its parameters from the table
 * fuzz_targets.  A kind is
 *
 *		room:type		a text from the room of the corpus, changed or not, read
 *						by the input function of the type
 *		room!type		the same, read unchanged, and its bytes damaged then, as if
 *						a bad disk had given them; for types of variable length
 *		random:bson		a random document
 *
 * Each iteration runs the statement with random parameters in a subtransaction
 * that is undone.  The statement may fail with any error that is not an internal
 * one, and with one of corrupt data where a parameter was damaged.  Where it gives
 * a boolean in its first column this must not be false; other columns are shown
 * by their output functions.  Before each call its number is written to the file
 * fuzz.iteration in the data directory, so that one that ends the server is
 * found there.
 *
 * fuzz_valid(bson) says whether a document would be accepted from outside.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "documents.h"

/*
 * From PostgreSQL 16 on a library shows nothing but its SQL functions: the builder is linked in,
 * and what it asks for is here.
 */
int dp_max_document_size = 16 * 1024 * 1024;

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(fuzz_run);
PG_FUNCTION_INFO_V1(fuzz_valid);

#define MAX_TEXT 16384
#define MAX_PARAMS 8
#define MAX_STATEMENTS 32
#define MAX_ROWS 20

/* A word, a number, a string, or one character: where it stands in a text. */
typedef struct Token
{
	int start;
	int len;
} Token;

typedef struct Seed
{
	char *text;
	int ntokens;
	Token *tokens;
} Seed;

typedef struct Argument
{
	char *room;
	bool damaged;
	Oid type;
	FmgrInfo input;
	Oid ioparam;
	int16 typlen;
	bool byval;
	int nseeds;
	Seed *seeds;
} Argument;

/* ---------------------------------------------------------------- texts */

/* Cuts a text into tokens. */
static void
tokenize(Seed *seed)
{
	const char *s = seed->text;
	int n = strlen(s);

	seed->ntokens = 0;
	seed->tokens = palloc(sizeof(Token) * (n + 1));
	for (int i = 0; i < n;)
	{
		int start = i;

		if (s[i] == ' ')
		{
			i++;
			continue;
		}
		if (s[i] == '"' || s[i] == '\'')
		{
			char quote = s[i++];

			while (i < n && s[i] != quote)
				i += s[i] == '\\' && i + 1 < n ? 2 : 1;
			if (i < n)
				i++;
		}
		else if (isalnum((unsigned char) s[i]) || s[i] == '$' || s[i] == '_' ||
				 IS_HIGHBIT_SET(s[i]))
			while (i < n && (isalnum((unsigned char) s[i]) || s[i] == '$' || s[i] == '_' ||
							 IS_HIGHBIT_SET(s[i])))
				i++;
		else
			i++;
		seed->tokens[seed->ntokens].start = start;
		seed->tokens[seed->ntokens++].len = i - start;
	}
}

/* The number of tokens of the value that begins at one: a container goes to its end. */
static int
value_tokens(const Seed *seed, int at)
{
	int depth = 0;

	for (int i = at; i < seed->ntokens; i++)
	{
		char c = seed->text[seed->tokens[i].start];

		if (c == '{' || c == '[' || c == '(')
			depth++;
		else if ((c == '}' || c == ']' || c == ')') && --depth <= 0)
			return i - at + 1;
		if (depth == 0)
			return i - at + 1;
	}
	return 1;
}

/* What a token is. */
typedef enum TokenKind
{
	TOKEN_VALUE, /* a scalar, or where a container begins; in other texts everything */
	TOKEN_KEY,   /* what a colon follows */
	TOKEN_OTHER
} TokenKind;

static TokenKind
token_kind(const Seed *seed, int at)
{
	char c = seed->text[seed->tokens[at].start];

	if (seed->tokens[at].len == 1 && strchr("}]),:", c) != NULL)
		return TOKEN_OTHER;
	if (at + 1 < seed->ntokens && seed->text[seed->tokens[at + 1].start] == ':')
		return TOKEN_KEY;
	return TOKEN_VALUE;
}

/* A random token of a kind; any if it finds none. */
static int
some_token(const Seed *seed, TokenKind kind)
{
	for (int i = 0; i < 20; i++)
	{
		int at = fuzz_below(seed->ntokens);

		if (token_kind(seed, at) == kind)
			return at;
	}
	return fuzz_below(seed->ntokens);
}

/* The end of what so many tokens are. */
static int
end_of(const Seed *seed, int at, int n)
{
	return seed->tokens[at + n - 1].start + seed->tokens[at + n - 1].len;
}

/* In place of some bytes of a text, others. */
static void
exchange(StringInfo text, int start, int len, const char *with, int withlen)
{
	char *rest = pnstrdup(text->data + start + len, text->len - start - len);

	if (text->len - len + withlen > MAX_TEXT)
		return;
	text->len = start;
	appendBinaryStringInfo(text, with, withlen);
	appendStringInfoString(text, rest);
}

/* Changes a text in one place, with the help of another one. */
static void
change_text(StringInfo text, const Seed *other)
{
	Seed now = { text->data, 0, NULL };
	int at;
	int from;
	int n;
	int start;

	now.text = pstrdup(text->data);
	tokenize(&now);
	if (now.ntokens == 0 || other->ntokens == 0)
		return;
	switch (fuzz_below(16))
	{
		case 0:
		{
			/* bytes, whatever they are */
			char bytes[MAX_TEXT + 1];
			Size size = text->len;

			memcpy(bytes, text->data, size);
			fuzz_damage_text(bytes, &size, MAX_TEXT);
			bytes[size] = '\0';
			resetStringInfo(text);
			appendStringInfoString(text, bytes);
			break;
		}
		case 1: /* any token for another one, or one more */
			at = fuzz_below(now.ntokens);
			from = fuzz_below(other->ntokens);
			exchange(text, now.tokens[at].start, fuzz_below(2) ? now.tokens[at].len : 0,
					 other->text + other->tokens[from].start, other->tokens[from].len);
			break;
		case 2: /* a token less */
			at = fuzz_below(now.ntokens);
			exchange(text, now.tokens[at].start, now.tokens[at].len, "", 0);
			break;
		case 3:
		case 4: /* an element or a field less, with the comma behind it */
			at = some_token(&now, fuzz_below(2) ? TOKEN_KEY : TOKEN_VALUE);
			start = now.tokens[at].start;
			n = token_kind(&now, at) == TOKEN_KEY && at + 2 < now.ntokens
					? 2 + value_tokens(&now, at + 2)
					: value_tokens(&now, at);
			if (at + n < now.ntokens && now.text[now.tokens[at + n].start] == ',')
				n++;
			exchange(text, start, end_of(&now, at, n) - start, "", 0);
			break;
		case 5:
		case 6:
		case 7: /* a field or an element more, in front of another one of its kind */
			at = some_token(&now, fuzz_below(2) ? TOKEN_KEY : TOKEN_VALUE);
			from = some_token(other, token_kind(&now, at));
			n = token_kind(other, from) == TOKEN_KEY && from + 2 < other->ntokens
					? 2 + value_tokens(other, from + 2)
					: value_tokens(other, from);
			start = now.tokens[at].start;
			if (at > 0)
				exchange(text, start, 0, ", ", 2);
			exchange(text, start, 0, other->text + other->tokens[from].start,
					 end_of(other, from, n) - other->tokens[from].start);
			break;
		case 8:
		case 9:
		case 10: /* a name for another one */
			at = some_token(&now, TOKEN_KEY);
			from = some_token(other, TOKEN_KEY);
			exchange(text, now.tokens[at].start, now.tokens[at].len,
					 other->text + other->tokens[from].start, other->tokens[from].len);
			break;
		default: /* a value for another one */
			at = some_token(&now, TOKEN_VALUE);
			from = some_token(other, TOKEN_VALUE);
			start = now.tokens[at].start;
			exchange(text, start, end_of(&now, at, value_tokens(&now, at)) - start,
					 other->text + other->tokens[from].start,
					 end_of(other, from, value_tokens(other, from)) - other->tokens[from].start);
			break;
	}
}

/* A text of the room: as it is, or with up to four changes. */
static char *
some_text(const Argument *argument)
{
	const Seed *seed = &argument->seeds[fuzz_below(argument->nseeds)];
	int changes = fuzz_below(2) * fuzz_below(5);
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoString(&text, seed->text);
	while (changes-- > 0)
		change_text(&text, &argument->seeds[fuzz_below(argument->nseeds)]);
	return text.data;
}

/* ---------------------------------------------------------------- parameters */

/* A value with damaged bytes, which are exactly as many as its header says. */
static Datum
damaged(Datum value)
{
	struct varlena *v = PG_DETOAST_DATUM(value);
	uint8 bytes[MAX_TEXT * 2];
	Size n = VARSIZE(v) - VARHDRSZ;
	struct varlena *result;

	if (n > MAX_TEXT)
		return value;
	memcpy(bytes, VARDATA(v), n);
	fuzz_damage_bytes(bytes, &n, sizeof(bytes));
	result = palloc(VARHDRSZ + n);
	SET_VARSIZE(result, VARHDRSZ + n);
	memcpy(VARDATA(result), bytes, n);
	return PointerGetDatum(result);
}

/* A parameter; *text becomes what it was made of.  Raises what the input function raises. */
static Datum
some_value(Argument *param, char **text)
{
	Datum value;

	if (strcmp(param->room, "random") == 0)
	{
		DpBuilder b;

		fuzz_document(&b);
		value = PointerGetDatum(dp_builder_finish_bson(&b));
		*text = DatumGetCString(DirectFunctionCall1(byteaout, value));
		return value;
	}
	*text = param->damaged ? param->seeds[fuzz_below(param->nseeds)].text : some_text(param);
	if (pg_encoding_verifymbstr(PG_UTF8, *text, strlen(*text)) != (int) strlen(*text))
		ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("not UTF-8")));
	value = InputFunctionCall(&param->input, *text, param->ioparam, -1);
	return param->damaged && fuzz_below(8) ? damaged(value) : value;
}

/* Reads a kind, and its room of the corpus. */
static void
read_kind(Argument *param, const char *kind)
{
	const char *sep = strpbrk(kind, ":!");
	Oid input;
	Oid args[] = { TEXTOID };
	Datum values[1];
	int32 typmod;

	if (sep == NULL)
		elog(ERROR, "\"%s\" is no kind of parameter", kind);
	param->room = pnstrdup(kind, sep - kind);
	param->damaged = *sep == '!';
#if PG_VERSION_NUM >= 160000
	parseTypeString(sep + 1, &param->type, &typmod, NULL);
#else
	parseTypeString(sep + 1, &param->type, &typmod, false);
#endif
	getTypeInputInfo(param->type, &input, &param->ioparam);
	fmgr_info(input, &param->input);
	get_typlenbyval(param->type, &param->typlen, &param->byval);
	if (param->damaged && param->typlen != -1)
		elog(ERROR, "values of type %s cannot be damaged", sep + 1);
	values[0] = CStringGetTextDatum(param->room);
	if (SPI_execute_with_args(
			"SELECT content FROM fuzz_corpus WHERE room = $1 ORDER BY content COLLATE \"C\"", 1,
			args, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "the corpus cannot be read");
	param->nseeds = SPI_processed;
	if (param->nseeds == 0 && strcmp(param->room, "random") != 0)
		elog(ERROR, "there is no room \"%s\" in the corpus", param->room);
	param->seeds = palloc(sizeof(Seed) * (param->nseeds + 1));
	for (int i = 0; i < param->nseeds; i++)
	{
		param->seeds[i].text = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
		tokenize(&param->seeds[i]);
	}
}

/* ---------------------------------------------------------------- running */

/* Runs the statement; false if it says so itself.  Its rows go through their output functions. */
static bool
run_once(SPIPlanPtr plan, Datum *values)
{
	bool fine = true;

	if (SPI_execute_plan(plan, values, NULL, false, MAX_ROWS) < 0)
		elog(ERROR, "the statement cannot be run");
	if (SPI_tuptable == NULL)
		return true;
	for (uint64 row = 0; row < SPI_processed; row++)
		for (int i = 1; i <= SPI_tuptable->tupdesc->natts; i++)
		{
			bool isnull;
			Datum d;

			if (i == 1 && SPI_gettypeid(SPI_tuptable->tupdesc, 1) == BOOLOID)
			{
				d = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1, &isnull);
				fine = fine && (isnull || DatumGetBool(d));
			}
			else
				(void) SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, i);
		}
	return fine;
}

Datum
fuzz_run(PG_FUNCTION_ARGS)
{
	char *target = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int64 iterations = PG_GETARG_INT64(1);
	int64 seed = PG_GETARG_INT64(2);
	int64 first = PG_GETARG_INT64(3);
	uint64 salt = hash_bytes_extended((unsigned char *) target, strlen(target), seed);
	MemoryContext scratch =
		AllocSetContextCreate(CurrentMemoryContext, "fuzz", ALLOCSET_DEFAULT_SIZES);
	MemoryContext mine;
	Oid args[] = { TEXTOID };
	Datum key[] = { PG_GETARG_DATUM(0) };
	Argument params[MAX_PARAMS];
	Oid types[MAX_PARAMS];
	Datum *kinds;
	int nparams;
	SPIPlanPtr plans[MAX_STATEMENTS];
	int nplans = 0;
	bool isnull;
	bool any_damaged = false;
	int fd = open("fuzz.iteration", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	int64 read = 0;
	int64 answered = 0;
	int64 wrong = 0;
	struct
	{
		int state;
		int64 count;
	} errors[12] = { 0 };
	StringInfoData summary;

	SPI_connect();
	mine = CurrentMemoryContext;
	if (SPI_execute_with_args("SELECT statement, kinds FROM fuzz_targets WHERE name = $1", 1, args,
							  key, NULL, true, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "there is no target \"%s\"", target);
	{
		char *statement = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
		ArrayType *array = DatumGetArrayTypePCopy(SPI_getbinval(SPI_tuptable->vals[0],
																SPI_tuptable->tupdesc, 2, &isnull));

		deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &kinds, NULL, &nparams);
		if (nparams > MAX_PARAMS)
			elog(ERROR, "too many parameters");
		for (int i = 0; i < nparams; i++)
		{
			read_kind(&params[i], TextDatumGetCString(kinds[i]));
			types[i] = params[i].type;
			any_damaged = any_damaged || params[i].damaged;
		}
		for (char *next = strtok(statement, ";"); next != NULL && nplans < MAX_STATEMENTS;
			 next = strtok(NULL, ";"))
		{
			plans[nplans] = SPI_prepare(psprintf("SELECT %s", next), nparams, types);
			if (plans[nplans++] == NULL)
				elog(ERROR, "a statement of target \"%s\" cannot be prepared", target);
		}
	}
	for (int64 iteration = first; iteration < first + iterations; iteration++)
	{
		ResourceOwner owner = CurrentResourceOwner;
		char *texts[MAX_PARAMS] = { 0 };
		volatile bool is_read = false;
		const char *volatile what = NULL;
		char line[32];

		CHECK_FOR_INTERRUPTS();
		if (fd >= 0 &&
			pwrite(fd, line, snprintf(line, sizeof(line), "%20lld\n", (long long) iteration), 0) <
				0)
			elog(ERROR, "the number of the iteration cannot be written");
		fuzz_state = salt + (uint64) iteration * UINT64CONST(0xD1B54A32D192ED03);
		BeginInternalSubTransaction(NULL);
		MemoryContextSwitchTo(scratch);
		PG_TRY();
		{
			Datum values[MAX_PARAMS];

			for (int i = 0; i < nparams; i++)
				values[i] = some_value(&params[i], &texts[i]);
			is_read = true;
			if (!run_once(plans[fuzz_below(nplans)], values))
				what = "the answer is false";
			else
				answered++;
			RollbackAndReleaseCurrentSubTransaction();
		}
		PG_CATCH();
		{
			ErrorData *error;
			int class;

			MemoryContextSwitchTo(scratch);
			error = CopyErrorData();
			FlushErrorState();
			RollbackAndReleaseCurrentSubTransaction();
			for (int i = 0; is_read && i < lengthof(errors); i++)
				if (errors[i].state == error->sqlerrcode || errors[i].count == 0)
				{
					errors[i].state = error->sqlerrcode;
					errors[i].count++;
					break;
				}
			class = ERRCODE_TO_CATEGORY(error->sqlerrcode);
			if (error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
				error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN)
				ReThrowError(error);
			if (class == ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR) &&
				!(error->sqlerrcode == ERRCODE_DATA_CORRUPTED && any_damaged))
				what = psprintf("%s: %s", unpack_sql_state(error->sqlerrcode), error->message);
		}
		PG_END_TRY();
		MemoryContextSwitchTo(mine);
		CurrentResourceOwner = owner;
		read += is_read;
		if (what != NULL)
		{
			wrong++;
			if (wrong <= 5)
			{
				StringInfoData detail;

				initStringInfo(&detail);
				for (int i = 0; i < nparams; i++)
					appendStringInfo(&detail, "%s$%d: %s", i ? "\n" : "", i + 1,
									 texts[i] ? texts[i] : "(not made)");
				ereport(WARNING, (errmsg("FAILED: %s, seed %lld, iteration %lld: %s", target,
										 (long long) seed, (long long) iteration, what),
								  errdetail_internal("%s", detail.data)));
			}
		}
		SPI_freetuptable(SPI_tuptable);
		MemoryContextReset(scratch);
	}
	close(fd);
	SPI_finish();
	initStringInfo(&summary);
	appendStringInfo(
		&summary,
		"%s: %lld iterations, seed %lld: %lld read, %lld answered, %lld wrong; errors:", target,
		(long long) iterations, (long long) seed, (long long) read, (long long) answered,
		(long long) wrong);
	for (int i = 0; i < lengthof(errors) && errors[i].count > 0; i++)
		appendStringInfo(&summary, " %s %lld", unpack_sql_state(errors[i].state),
						 (long long) errors[i].count);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(summary.data, summary.len));
}

Datum
fuzz_valid(PG_FUNCTION_ARGS)
{
	static PGFunction recv;
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	MemoryContext context = CurrentMemoryContext;
	StringInfoData bytes;
	volatile bool valid = true;

	if (recv == NULL)
		recv = load_external_function("$libdir/docpatterns", "dp_bson_recv", true, NULL);
	initStringInfo(&bytes);
	appendBinaryStringInfo(&bytes, VARDATA_ANY(doc), VARSIZE_ANY_EXHDR(doc));
	/* nothing is held that an error would leave behind */
	PG_TRY();
	{
		(void) DirectFunctionCall1(recv, PointerGetDatum(&bytes));
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		valid = false;
	}
	PG_END_TRY();
	PG_RETURN_BOOL(valid);
}
