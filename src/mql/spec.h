/*
 * spec.h
 *		Specifications (filters, updates, projections, schemas) compiled once per query.
 *
 * A specification is an argument of a SQL function.  Its compiled form is cached in fn_extra while
 * the argument stays the same: a constant is checked once, anything else is compared byte by byte,
 * so that a parameter is compiled once and a column is compiled again only when it changes.  The
 * memory of an older specification is freed.
 */
#ifndef DP_MQL_SPEC_H
#define DP_MQL_SPEC_H

#include "bson/reader.h"

/*
 * The sizes of a memory context for what is compiled.  With blocks of 8 MB a large
 * specification would waste most of the last one.
 */
#define DP_SPEC_CONTEXT_SIZES ALLOCSET_SMALL_MINSIZE, ALLOCSET_SMALL_INITSIZE, (1024 * 1024)

/*
 * Compiles a specification; everything is allocated in the current memory context, where the
 * specification itself, already a copy, lives as long as the result: the result may point into it.
 * arg is passed on by dp_spec_cached().  An error leaves nothing allocated.
 */
typedef void *(*DpSpecCompile)(const DpValue *spec, void *arg);

typedef struct DpSpecCache
{
	void *compiled;         /* what compile returned */
	MemoryContext context;  /* holds it and the copy of the argument */
	struct varlena *source; /* the copy */
	bool is_const;          /* the argument is a constant of the query */
} DpSpecCache;

/*
 * The compiled form of argument argno, which must not be null.  The cache is
 * zeroed memory in fn_mcxt, one for each argument.  The result is valid until
 * the next call with the same cache.  The first is for arguments of type bson,
 * the second for bson_value.
 */
extern void *dp_spec_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno,
							DpSpecCompile compile, void *arg);
extern void *dp_spec_value_cached(DpSpecCache *cache, FunctionCallInfo fcinfo, int argno,
								  DpSpecCompile compile, void *arg);

/* For functions whose fn_extra is one cache; argument of type bson. */
static inline void *
dp_spec_arg(FunctionCallInfo fcinfo, int argno, DpSpecCompile compile, void *arg)
{
	DpSpecCache *cache = fcinfo->flinfo->fn_extra;

	if (likely(cache != NULL && cache->is_const))
		return cache->compiled;
	if (cache == NULL)
		cache = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(DpSpecCache));
	return dp_spec_cached(cache, fcinfo, argno, compile, arg);
}

#endif /* DP_MQL_SPEC_H */
