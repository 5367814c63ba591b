/*
 * function.c
 *		Functions of users that a declaration names and its trigger calls, in
 *		whatever language they are.
 *
 * They are called from C, for row after row and statement after statement, so
 * that three things have to be seen to here which the executor sees to elsewhere:
 *
 * What a function keeps from call to call is thrown away when a call of it has
 * ended with an error.  A function in SQL would otherwise go on in the middle of
 * a query that the end of a savepoint has taken away.
 *
 * What is known of a function is looked up again when functions have changed:
 * it may have got other settings, or have been dropped.
 *
 * A function finds names by a search_path of its own, whoever calls it: writers
 * have theirs, a check or a restore has none at all, and what a document
 * becomes must be the same for all of them.
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

/* Goes up when any function changes */
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

/* What is known of the function, in the current context. */
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

/* Makes room for what the function keeps; an error leaves all as it was. */
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
 * The search_path that a function is called with: its own schema and that of
 * the extension.  NULL where it looks for nothing, or sets one itself.
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
		 * A call has ended with an error, or it goes on and has led to this
		 * one, or the function may be another one.  What it keeps is left
		 * alone, and goes when the transaction ends.
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

	/* only where it is another one: a migration sets it once for all documents */
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
