/*
 * function.c
 *		Users' functions in any language that a declaration names and its trigger calls.
 *
 * They are called from C, row after row and statement after statement, so this file handles three
 * things that the executor does elsewhere:
 *
 * - A function's state is discarded when a call ends with an error.  A SQL function would otherwise
 *   continue in a query that a rollback to savepoint has ended.
 * - A function is looked up again when functions have changed: it may have other settings, or not
 *   exist.
 * - A function is called with a search_path of its own: those of writers, checks and restores
 *   differ, and the resulting document must not.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "kit/sql/function.h"

static void look_up(DpUserFunction *f);
static char *function_path(HeapTuple tuple);
static void prepare(DpUserFunction *f);

/* Incremented when any function changes */
static uint64 generation = 1;
static bool callback_registered = false;

static void
functions_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	generation++;
}

void
dp_user_function_init(DpUserFunction *f, Oid oid, MemoryContext parent)
{
	if (!callback_registered)
	{
		CacheRegisterSyscacheCallback(PROCOID, functions_changed, (Datum) 0);
		callback_registered = true;
	}
	f->oid = oid;
	f->parent = parent;
	f->running = false;
	look_up(f);
	prepare(f);
}

/* Looks up the function, in the current context. */
static void
look_up(DpUserFunction *f)
{
	uint64 now = generation;
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(f->oid));

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("function with OID %u does not exist", f->oid)));
	f->strict = ((Form_pg_proc) GETSTRUCT(tuple))->proisstrict;
	f->search_path = function_path(tuple);
	ReleaseSysCache(tuple);
	f->generation = now;
}

bool
dp_user_function_exists(const DpUserFunction *f)
{
	return likely(f->generation == generation) ||
		   SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(f->oid));
}

/* Allocates memory for the function's state; an error leaves everything as it was. */
static void
prepare(DpUserFunction *f)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns function", ALLOCSET_SMALL_SIZES);
	FmgrInfo *flinfo = MemoryContextAllocZero(context, sizeof(FmgrInfo));

	fmgr_info_cxt(f->oid, flinfo, context);
	MemoryContextSetParent(context, f->parent);
	f->flinfo = flinfo;
	f->context = context;
}

/*
 * The search_path with which a function is called: its own schema and that of the extension.  NULL
 * if it looks nothing up, or sets one itself.
 */
static char *
function_path(HeapTuple tuple)
{
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);
	Oid own = dp_types()->schema;
	StringInfoData path;
	Datum config;
	bool isnull;

	if (form->prolang == INTERNALlanguageId || form->prolang == ClanguageId)
		return NULL;
	config = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proconfig, &isnull);
	if (!isnull)
	{
		Datum *settings;
		bool *nulls;
		int n;
		int i;

		deconstruct_array(DatumGetArrayTypeP(config), TEXTOID, -1, false, TYPALIGN_INT, &settings,
						  &nulls, &n);
		for (i = 0; i < n; i++)
		{
			if (!nulls[i] && pg_strncasecmp(TextDatumGetCString(settings[i]),
											"search_path=", strlen("search_path=")) == 0)
				return NULL;
		}
	}
	initStringInfo(&path);
	if (form->pronamespace != own && !isAnyTempNamespace(form->pronamespace))
		appendStringInfo(&path, "%s, ", quote_identifier(get_namespace_name(form->pronamespace)));
	appendStringInfo(&path, "%s, pg_temp", quote_identifier(get_namespace_name(own)));
	return path.data;
}

Datum
dp_user_function_call(DpUserFunction *f, Oid collation, Datum arg, bool arg_null, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, 1);
	int nestlevel;
	Datum result;

	if (unlikely(f->running || f->generation != generation))
	{
		/*
		 * A call ended with an error, or is still running and led to this one, or the function has
		 * changed. Its state is left alone until the transaction ends.
		 */
		MemoryContext before = f->context;

		if (f->generation != generation)
		{
			MemoryContext old = MemoryContextSwitchTo(f->parent);

			look_up(f);
			MemoryContextSwitchTo(old);
		}
		prepare(f);
		MemoryContextSetParent(before, TopTransactionContext);
	}

	if (arg_null && f->strict)
	{
		*isnull = true;
		return (Datum) 0;
	}
	nestlevel = dp_user_path_begin(f->search_path);
	f->running = true;
	InitFunctionCallInfoData(*fcinfo, f->flinfo, 1, collation, NULL, NULL);
	fcinfo->args[0].value = arg;
	fcinfo->args[0].isnull = arg_null;
	result = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	f->running = false;
	dp_user_path_end(nestlevel);
	return result;
}

int
dp_user_path_begin(const char *path)
{
	int nestlevel;

	/* only if it differs: a migration sets it once for all documents */
	if (path == NULL || strcmp(namespace_search_path, path) == 0)
		return 0;
	nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path", path, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
							 0, false);
	return nestlevel;
}

void
dp_user_path_end(int nestlevel)
{
	if (nestlevel > 0)
		AtEOXact_GUC(true, nestlevel);
}

bool
dp_function_keeps_state(Oid function, void *context)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid language = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
		ReleaseSysCache(tuple);
	}
	return language != INTERNALlanguageId && language != ClanguageId;
}
