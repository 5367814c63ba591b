/*
 * spec.c
 *		Specifications compiled once per query.
 */
#include "postgres.h"

#include "nodes/primnodes.h"
#include "utils/memutils.h"

#include "mql/spec.h"

static bool spec_is_const(FunctionCallInfo fcinfo, int argno);
static void *spec_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno,
						 bool is_value, DpSpecCompile compile, void *arg);

void *
dp_spec_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno,
			   DpSpecCompile compile, void *arg)
{
	return spec_cached(cache, fcinfo, argno, false, compile, arg);
}

void *
dp_spec_value_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno,
					 DpSpecCompile compile, void *arg)
{
	return spec_cached(cache, fcinfo, argno, true, compile, arg);
}

/*
 * What the cache holds, if the argument is what it was; otherwise the argument
 * compiled.
 */
static void *
spec_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno,
			bool is_value, DpSpecCompile compile, void *arg)
{
	struct varlena *source;
	MemoryContext context;
	MemoryContext old;
	DpValue		spec;
	void	   *compiled;
	Size		len;

	if (likely(cache->is_const))
		return cache->compiled;

	source = DP_GETARG_VARLENA(argno);
	len = VARSIZE_ANY(source);
	if (cache->source != NULL && VARSIZE_ANY(cache->source) == len &&
		memcmp(cache->source, source, len) == 0)
		return cache->compiled;

	/* below the current context until it is known that all went well */
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns specification",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	source = memcpy(palloc(len), source, len);
	spec = is_value ? dp_value_of_varlena(source) : dp_value_of_document(source);
	compiled = compile(&spec, arg);
	MemoryContextSwitchTo(old);

	MemoryContextSetParent(context, fcinfo->flinfo->fn_mcxt);
	if (cache->context != NULL)
		MemoryContextDelete(cache->context);
	cache->context = context;
	cache->source = source;
	cache->compiled = compiled;
	cache->is_const = spec_is_const(fcinfo, argno);
	return compiled;
}

/*
 * Whether the argument is a constant in the expression that calls.  A parameter
 * does not count: the expression may be run again with another value.
 */
static bool
spec_is_const(FunctionCallInfo fcinfo, int argno)
{
	Node	   *expr = fcinfo->flinfo->fn_expr;
	List	   *args;

	if (expr == NULL)
		return false;
	if (IsA(expr, FuncExpr))
		args = ((FuncExpr *) expr)->args;
	else if (IsA(expr, OpExpr))
		args = ((OpExpr *) expr)->args;
	else
		return false;
	return argno < list_length(args) && IsA(list_nth(args, argno), Const);
}
