/*
 * options.c
 *		Options of the GIN operator class bson_ops: named paths and pairs.
 *
 *		paths = 'a.b, c'						only these paths and paths below them
 *		pairs = 'releases(location,date)'		pairs of fields of sub-documents
 *
 * Without options the index contains all paths.  Both options are stored as text and parsed by each
 * user.
 */
#include "postgres.h"

#include "access/reloptions.h"

#include "index/key.h"

/* The stored options: positions of the texts after it, 0 for none */
typedef struct StoredOptions
{
	int32 vl_len_;
	int paths;
	int pairs;
} StoredOptions;

/* Where the hashes of pairs begin, which are not those of paths */
#define PAIR_ROOT UINT64CONST(0xc2b2ae3d27d4eb4f)

static void check_paths(const char *text);
static void check_pairs(const char *text);
static void refuse_positions(const DpPath *path);
static const char *find_plain(const char *s, const char *end, char c);
static bool same_names(const DpPath *path, const DpPath *names);

/*
 * The options of the operator class, for CREATE INDEX.
 */
DP_FUNCTION(dp_bson_gin_options);
Datum
dp_bson_gin_options(PG_FUNCTION_ARGS)
{
	local_relopts *relopts = (local_relopts *) PG_GETARG_POINTER(0);

	init_local_reloptions(relopts, sizeof(StoredOptions));
	add_local_string_reloption(relopts, "paths", "paths that are indexed, separated by commas",
							   NULL, check_paths, NULL, offsetof(StoredOptions, paths));
	add_local_string_reloption(relopts, "pairs",
							   "pairs of fields of sub-documents that are indexed together", NULL,
							   check_pairs, NULL, offsetof(StoredOptions, pairs));
	PG_RETURN_VOID();
}

/* Raise INVALID_PARAMETER_VALUE unless the text can be parsed. */
static void
check_paths(const char *text)
{
	if (text != NULL)
		(void) dp_key_options_parse(text, NULL);
}

static void
check_pairs(const char *text)
{
	if (text != NULL)
		(void) dp_key_options_parse(NULL, text);
}

/* ---------------------------------------------------------------- parsing */

/*
 * Raises INVALID_PARAMETER_VALUE if a part of the path is a whole number, which indexes do not
 * store.
 */
static void
refuse_positions(const DpPath *path)
{
	for (int i = 0; i < path->nsteps; i++)
		if (dp_key_is_position(path->steps[i].name, path->steps[i].namelen))
			ereport(
				ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("indexed path contains the number \"%s\"", path->steps[i].name),
				 errhint(
					 "An index does not distinguish the elements of an array. Omit the number; the "
					 "index then serves conditions on any of them.")));
}

/*
 * The first c from s on that is not within double quotes, or NULL.
 */
static const char *
find_plain(const char *s, const char *end, char c)
{
	bool quoted = false;

	for (; s < end; s++)
	{
		if (*s == '"')
			quoted = !quoted;
		else if (*s == c && !quoted)
			return s;
	}
	return NULL;
}

static void
paths_parse(DpKeyOptions *options, const char *text)
{
	List *list = dp_path_parse_list(text, strlen(text));
	ListCell *cell;

	if (list == NIL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("list of paths is empty"),
						errhint("Omit the option to index all paths.")));
	options->paths = palloc(sizeof(DpKeyPath) * list_length(list));
	foreach(cell, list)
	{
		DpKeyPath *path = &options->paths[options->npaths++];

		path->path = lfirst(cell);
		refuse_positions(path->path);
		path->state = dp_key_steps(DP_KEY_ROOT, path->path, path->path->nsteps);
	}
	list_free(list);
}

/*
 * Reads one pair that begins at s.  Returns what follows it.
 */
static const char *
pair_parse(DpKeyPair *pair, const char *s, const char *end)
{
	const char *open = find_plain(s, end, '(');
	const char *close = open != NULL ? find_plain(open, end, ')') : NULL;
	List *outer;
	List *parts;

	if (close == NULL)
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid pair"),
			 errhint("Write a pair as path(first,second), for example releases(location,date).")));
	outer = dp_path_parse_list(s, open - s);
	parts = dp_path_parse_list(open + 1, close - open - 1);
	if (list_length(outer) != 1 || list_length(parts) != 2)
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("a pair must have one path and two parts, not %d and %d", list_length(outer),
					list_length(parts)),
			 errhint("Write a pair as path(first,second), for example releases(location,date).")));
	pair->path = linitial(outer);
	pair->first = linitial(parts);
	pair->second = lsecond(parts);
	refuse_positions(pair->path);
	refuse_positions(pair->first);
	refuse_positions(pair->second);

	/* an empty part stands between the paths */
	pair->state = dp_key_steps(PAIR_ROOT, pair->path, pair->path->nsteps);
	pair->state = dp_key_step(pair->state, "", 0);
	pair->state = dp_key_steps(pair->state, pair->first, pair->first->nsteps);
	pair->state = dp_key_step(pair->state, "", 0);
	pair->state = dp_key_steps(pair->state, pair->second, pair->second->nsteps);
	return close + 1;
}

static void
pairs_parse(DpKeyOptions *options, const char *text)
{
	const char *end = text + strlen(text);
	const char *s = text;
	int room = 1;

	for (const char *p = text; (p = find_plain(p, end, '(')) != NULL; p++)
		room++;
	options->pairs = palloc(sizeof(DpKeyPair) * room);
	for (;;)
	{
		s = pair_parse(&options->pairs[options->npairs++], s, end);
		while (s < end && isspace((unsigned char) *s))
			s++;
		if (s == end)
			return;
		if (*s != ',')
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid list of pairs"),
					 errdetail("At byte %d, a pair is followed by something other than a comma.",
							   (int) (s - text) + 1)));
		s++;
	}
}

DpKeyOptions *
dp_key_options_parse(const char *paths, const char *pairs)
{
	DpKeyOptions *options = palloc0(sizeof(DpKeyOptions));

	if (paths != NULL)
		paths_parse(options, paths);
	if (pairs != NULL)
		pairs_parse(options, pairs);
	options->nshort = Min(options->npaths, DP_KEY_SHORT_PATHS);
	options->escape = options->npaths > 0 ? (uint32) DP_KEY_SHORT_PATHS << 28 : 0;
	options->all_paths = paths == NULL && pairs == NULL;
	return options;
}

DpKeyOptions *
dp_key_options_read(bytea *stored)
{
	StoredOptions *options = (StoredOptions *) stored;

	if (options == NULL)
		return dp_key_options_parse(NULL, NULL);
	return dp_key_options_parse(GET_STRING_RELOPTION(options, paths),
								GET_STRING_RELOPTION(options, pairs));
}

DpKeyOptions *
dp_key_options_of(FunctionCallInfo fcinfo)
{
	return dp_key_options_read(PG_HAS_OPCLASS_OPTIONS() ? (bytea *) PG_GET_OPCLASS_OPTIONS()
														: NULL);
}

/* ---------------------------------------------------------------- what is in an index */

/* Whether a path, without its whole numbers, begins with the names. */
static bool
same_names(const DpPath *path, const DpPath *names)
{
	int n = 0;

	for (int i = 0; i < path->nsteps && n < names->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];

		if (dp_key_is_position(step->name, step->namelen))
			continue;
		if (step->namelen != names->steps[n].namelen ||
			memcmp(step->name, names->steps[n].name, step->namelen) != 0)
			return false;
		n++;
	}
	return n == names->nsteps;
}

/* Whether two paths have the same parts, none of which is a whole number. */
static bool
same_path(const DpPath *path, const DpPath *names)
{
	return path->nsteps == names->nsteps && same_names(path, names);
}

bool
dp_key_options_has(const DpKeyOptions *options, const DpPath *path)
{
	if (options->all_paths)
		return true;
	for (int i = 0; i < options->npaths; i++)
		if (same_names(path, options->paths[i].path))
			return true;
	return false;
}

const DpKeyPath *
dp_key_options_missing(const DpKeyOptions *options, const DpPath *path)
{
	for (int i = 0; i < options->npaths; i++)
		if (same_path(path, options->paths[i].path))
			return &options->paths[i];
	return NULL;
}
