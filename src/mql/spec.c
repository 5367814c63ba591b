/*
 * spec.c
 *		Specifications compiled once per query.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "bson/path.h"
#include "mql/spec.h"

static void *spec_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno, bool is_value,
						 DpSpecCompile compile, void *arg);

void *
dp_spec_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno, DpSpecCompile compile,
			   void *arg)
{
	return spec_cached(cache, fcinfo, argno, false, compile, arg);
}

void *
dp_spec_value_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno, DpSpecCompile compile,
					 void *arg)
{
	return spec_cached(cache, fcinfo, argno, true, compile, arg);
}

/* The cached result if the argument is unchanged; otherwise the argument compiled. */
static void *
spec_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno, bool is_value,
			DpSpecCompile compile, void *arg)
{
	struct varlena *source;
	MemoryContext context;
	MemoryContext old;
	DpValue spec;
	void *compiled;
	Size len;

	if (likely(cache->is_const))
		return cache->compiled;

	source = DP_GETARG_VARLENA(argno);
	len = VARSIZE_ANY(source);
	if (cache->source != NULL && VARSIZE_ANY(cache->source) == len &&
		memcmp(cache->source, source, len) == 0)
		return cache->compiled;

	/* below the current context until everything succeeded */
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns specification",
									DP_SPEC_CONTEXT_SIZES);
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
	cache->is_const = dp_arg_is_const(fcinfo, argno);
	return compiled;
}
