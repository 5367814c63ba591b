/*
 * registry.c
 *		The patterns.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "kit/registry.h"

const DpPattern *const *dp_patterns;

const DpPattern *
dp_pattern_find(const char *name)
{
	for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
		if (strcmp((*p)->name, name) == 0)
			return *p;
	return NULL;
}

const struct DpHierarchy *
dp_hierarchy_find(Oid table)
{
	const DpPattern *const *p = dp_patterns;

	while ((*p)->hierarchy == NULL)
		p++;
	return (*p)->hierarchy(table);
}

bool
dp_own_function(Oid function)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool own = false;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);

		own = form->prolang == ClanguageId && form->pronamespace == dp_types()->internal;
		ReleaseSysCache(tuple);
	}
	return own;
}

const DpPattern *
dp_pattern_of_function(Oid function)
{
	char *name = dp_own_function(function) ? get_func_name(function) : NULL;
	char *suffix = name != NULL ? strstr(name, "_trigger") : NULL;

	if (suffix == NULL || strcmp(suffix, "_trigger") != 0)
		return NULL;
	*suffix = '\0';
	return dp_pattern_find(name);
}

Oid
dp_pattern_hook(const char *pattern, const char *verb, int nargs, const Oid *types)
{
	List *names =
		list_make2(makeString("docpatterns"), makeString(psprintf("_%s_%s", pattern, verb)));

	return LookupFuncName(names, nargs, types, true);
}
