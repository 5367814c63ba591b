/*
 * path.c
 *		Paths: their grammar, and those that SQL functions get as arguments.
 *		find.c follows them.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"

#include "bson/path.h"

static DpPath *path_alloc(int nsteps, Size namebytes, char **names);
static void path_fill_step(DpPathStep *step, const char *name, uint32 namelen);
static int path_parse_next(const char *s, Size len, Size *pos, bool in_list, DpPath *path,
						   char **names, Size *namebytes);
static void path_syntax_error(const char *what, Size pos) pg_attribute_noreturn();
static DpPath *path_parse_one(const char *s, Size len, Size *pos, bool in_list);
static bool path_part_is_plain(const DpPathStep *step);
static bool is_marked(Node *node);
static bool is_parameter(Node *node);
static DpPath *path_cached(DpPathCache *cache, FunctionCallInfo fcinfo, int argno, bool is_array);

/* ---------------------------------------------------------------- grammar */

/*
 * The path in the len bytes at s.
 */
DpPath *
dp_path_parse(const char *s, Size len)
{
	Size pos = 0;

	return path_parse_one(s, len, &pos, false);
}

/*
 * The paths in a list.  An empty list, or one of blanks, has none.
 */
List *
dp_path_parse_list(const char *s, Size len)
{
	List *list = NIL;
	Size pos = 0;

	while (pos < len && isspace((unsigned char) s[pos]))
		pos++;
	if (pos == len)
		return NIL;
	for (;;)
	{
		list = lappend(list, path_parse_one(s, len, &pos, true));
		if (pos == len)
			return list;
		pos++; /* the comma */
	}
}

/* A path of one literal name. */
DpPath *
dp_path_of_name(const char *name, uint32 namelen)
{
	return dp_path_of_names(1, &name, &namelen);
}

/* A path of several literal names. */
DpPath *
dp_path_of_names(int n, const char *const *names, const uint32 *lens)
{
	Size bytes = 0;
	char *copy;
	DpPath *path;

	for (int i = 0; i < n; i++)
		bytes += lens[i] + 1;
	path = path_alloc(n, bytes, &copy);
	for (int i = 0; i < n; i++)
	{
		memcpy(copy, names[i], lens[i]);
		copy[lens[i]] = '\0';
		path_fill_step(&path->steps[i], copy, lens[i]);
		copy += lens[i] + 1;
	}
	return path;
}

/*
 * A path of the elements of a text[].  Raises NULL_VALUE_NOT_ALLOWED for a
 * null among them and ARRAY_SUBSCRIPT_ERROR for more than one dimension.
 */
DpPath *
dp_path_of_array(ArrayType *array)
{
	Datum *parts;
	bool *nulls;
	int nparts;
	const char **names;
	uint32 *lens;
	DpPath *path;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
						errmsg("a path must be an array of one dimension")));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &parts, &nulls, &nparts);
	names = palloc(sizeof(char *) * Max(nparts, 1));
	lens = palloc(sizeof(uint32) * Max(nparts, 1));
	for (int i = 0; i < nparts; i++)
	{
		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("part %d of the path is null", i + 1)));
		names[i] = VARDATA_ANY(DatumGetPointer(parts[i]));
		lens[i] = VARSIZE_ANY_EXHDR(DatumGetPointer(parts[i]));
	}
	path = dp_path_of_names(nparts, names, lens);
	pfree(names);
	pfree(lens);
	return path;
}

/*
 * Appends the path as dp_path_parse() and dp_path_parse_list() read it.
 */
void
dp_path_to_text(StringInfo out, const DpPath *path)
{
	for (int i = 0; i < path->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];

		if (i > 0)
			appendStringInfoChar(out, '.');
		if (path_part_is_plain(step))
			appendBinaryStringInfo(out, step->name, step->namelen);
		else
		{
			appendStringInfoChar(out, '"');
			for (uint32 j = 0; j < step->namelen; j++)
			{
				if (step->name[j] == '"')
					appendStringInfoChar(out, '"');
				appendStringInfoChar(out, step->name[j]);
			}
			appendStringInfoChar(out, '"');
		}
	}
}

/* Whether the name of a step can be written without quotes. */
static bool
path_part_is_plain(const DpPathStep *step)
{
	if (step->namelen == 0 || isspace((unsigned char) step->name[0]) ||
		isspace((unsigned char) step->name[step->namelen - 1]))
		return false;
	return strpbrk(step->name, ".,\"") == NULL;
}

/*
 * One path from *pos on, up to the end or, in a list, to a comma, where *pos
 * is left.  The first pass counts, the second fills in.
 */
static DpPath *
path_parse_one(const char *s, Size len, Size *pos, bool in_list)
{
	Size start = *pos;
	Size namebytes = 0;
	int nsteps;
	char *names;
	DpPath *path;

	nsteps = path_parse_next(s, len, pos, in_list, NULL, NULL, &namebytes);
	path = path_alloc(nsteps, namebytes, &names);
	*pos = start;
	path_parse_next(s, len, pos, in_list, path, &names, &namebytes);
	return path;
}

/*
 * Reads one path.  Returns the number of its parts and adds the bytes that
 * their names need to *namebytes; if path is given, fills in its steps and puts
 * the names at *names.
 */
static int
path_parse_next(const char *s, Size len, Size *pos, bool in_list, DpPath *path, char **names,
				Size *namebytes)
{
	Size p = *pos;
	int nsteps = 0;

	if (in_list)
		while (p < len && isspace((unsigned char) s[p]))
			p++;

	for (;;)
	{
		char *name = names ? *names : NULL;
		uint32 namelen = 0;

		if (p < len && s[p] == '"')
		{
			Size open = p++;

			for (;; p++)
			{
				if (p == len)
					path_syntax_error("a double quote is not closed", open);
				if (s[p] == '"')
				{
					p++;
					if (p == len || s[p] != '"')
						break;
				}
				if (name)
					name[namelen] = s[p];
				namelen++;
			}
		}
		else
		{
			Size start = p;

			while (p < len && s[p] != '.' && !(in_list && s[p] == ','))
			{
				if (s[p] == '"')
					path_syntax_error("a double quote stands inside a part that is not quoted", p);
				p++;
			}
			namelen = p - start;
			if (in_list && (p == len || s[p] == ','))
				while (namelen > 0 && isspace((unsigned char) s[start + namelen - 1]))
					namelen--;
			if (namelen == 0)
				path_syntax_error("a part is empty", start);
			if (name)
				memcpy(name, s + start, namelen);
		}

		*namebytes += namelen + 1;
		if (path)
		{
			name[namelen] = '\0';
			path_fill_step(&path->steps[nsteps], name, namelen);
			*names += namelen + 1;
		}
		nsteps++;

		if (in_list)
			while (p < len && isspace((unsigned char) s[p]))
				p++;
		if (p == len || (in_list && s[p] == ','))
			break;
		if (s[p] != '.')
			path_syntax_error("a quoted part is followed by something other than a dot", p);
		p++;
	}
	*pos = p;
	return nsteps;
}

/* Raises INVALID_PARAMETER_VALUE with the position. */
static void
path_syntax_error(const char *what, Size pos)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid path"),
		 errdetail("At byte %zu: %s.", pos + 1, what),
		 errhint("Separate parts with dots. A part in double quotes may be empty and may contain "
				 "dots, commas and, doubled, double quotes.")));
}

/*
 * Memory for a path and, behind it, for the names of its steps.
 */
static DpPath *
path_alloc(int nsteps, Size namebytes, char **names)
{
	Size size = offsetof(DpPath, steps) + nsteps * sizeof(DpPathStep);
	DpPath *path = palloc(size + namebytes);

	path->nsteps = nsteps;
	path->misses = 0;
	*names = (char *) path + size;
	return path;
}

/*
 * Fills in a step; the name stays where it is.
 */
static void
path_fill_step(DpPathStep *step, const char *name, uint32 namelen)
{
	uint32 digits = (namelen > 0 && name[0] == '-') ? 1 : 0;
	uint32 first = digits;
	int64 number = 0;

	step->name = name;
	step->namelen = namelen;

	/* nine digits and a sign always fit; leading zeros are a name */
	while (digits < namelen && digits < first + 9 && name[digits] >= '0' && name[digits] <= '9')
		number = number * 10 + (name[digits++] - '0');
	step->is_index = digits == namelen && digits > first &&
					 (name[first] != '0' || (digits == first + 1 && first == 0));
	step->index = first ? -number : number;
	dp_path_step_block(step);
}

/* ---------------------------------------------------------------- arguments */

/*
 * The path in a text argument, which must not be null.
 */
DpPath *
dp_path_cached(DpPathCache *cache, FunctionCallInfo fcinfo, int argno)
{
	return path_cached(cache, fcinfo, argno, false);
}

/*
 * The same, with the cache being all that fn_extra holds.
 */
DpPath *
dp_path_arg_cached(FunctionCallInfo fcinfo, int argno)
{
	if (unlikely(fcinfo->flinfo->fn_extra == NULL))
		fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(DpPathCache));
	return path_cached(fcinfo->flinfo->fn_extra, fcinfo, argno, false);
}

/*
 * The same for a text[] argument.
 */
DpPath *
dp_path_array_arg(FunctionCallInfo fcinfo, int argno)
{
	if (unlikely(fcinfo->flinfo->fn_extra == NULL))
		fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(DpPathCache));
	return path_cached(fcinfo->flinfo->fn_extra, fcinfo, argno, true);
}

/*
 * Returns the cached path if the argument is a constant or has the same bytes as before; otherwise
 * parses it.
 */
static DpPath *
path_cached(DpPathCache *cache, FunctionCallInfo fcinfo, int argno, bool is_array)
{
	struct varlena *arg;
	uint32 len;
	MemoryContext old;

	if (likely(cache->is_const))
		return cache->path;

	/* an array is unpacked, and so aligned when it is copied below */
	if (is_array)
		arg = PG_DETOAST_DATUM(PG_GETARG_DATUM(argno));
	else
		arg = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(argno));
	len = VARSIZE_ANY(arg);
	if (cache->path != NULL && cache->len == len && memcmp(cache->source, arg, len) == 0)
		return cache->path;

	if (cache->path != NULL)
	{
		pfree(cache->path);
		pfree(cache->source);
		cache->path = NULL;
	}
	old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	cache->source = palloc(len);
	memcpy(cache->source, arg, len);
	cache->len = len;
	if (is_array)
		cache->path = dp_path_of_array((ArrayType *) arg);
	else
		cache->path = dp_path_parse(VARDATA_ANY(arg), VARSIZE_ANY_EXHDR(arg));
	MemoryContextSwitchTo(old);
	cache->is_const = dp_arg_is_const(fcinfo, argno);
	return cache->path;
}

bool
dp_arg_is_const(FunctionCallInfo fcinfo, int argno)
{
	Node *expr = fcinfo->flinfo->fn_expr;
	List *args;
	Node *arg;

	if (expr == NULL)
		return false;
	if (IsA(expr, FuncExpr))
		args = ((FuncExpr *) expr)->args;
	else if (IsA(expr, OpExpr))
		args = ((OpExpr *) expr)->args;
	else
		return false;
	if (argno >= list_length(args))
		return false;
	arg = list_nth(args, argno);
	return IsA(arg, Const) || is_marked(arg);
}

/* The mark is a relabelling that changes nothing, which the planner removes everywhere else. */
Node *
dp_arg_mark_stable(Node *arg)
{
	return is_parameter(arg)
			   ? (Node *) makeRelabelType((Expr *) arg, exprType(arg), exprTypmod(arg),
										  exprCollation(arg), COERCE_IMPLICIT_CAST)
			   : NULL;
}

static bool
is_marked(Node *node)
{
	RelabelType *relabel = (RelabelType *) node;
	Node *arg;

	if (!IsA(node, RelabelType))
		return false;
	arg = (Node *) relabel->arg;
	return is_parameter(arg) && relabel->resulttype == exprType(arg) &&
		   relabel->resulttypmod == exprTypmod(arg) && relabel->resultcollid == exprCollation(arg);
}

static bool
is_parameter(Node *node)
{
	return IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXTERN;
}
