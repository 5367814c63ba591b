/*
 * language.c
 *		The language of the extension's own functions: PL/pgSQL without CONTEXT in errors.
 *
 * PL/pgSQL adds lines about functions and statements to each error, and users know neither those of
 * the extension.  Lines of callers stay.  Everything stays if code of the user runs inside, such as
 * a trigger, if C code adds context of its own, and for errors of class XX.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "utils/memutils.h"

#include "dp.h"
#include "mql/error.h"

/* A running function; its frame lies below those of PL/pgSQL */
typedef struct Call
{
	ErrorContextCallback frame;
	size_t hidden; /* bytes of context to remove, at the beginning */
} Call;

static PGFunction plpgsql_function(const char *name);
static void hide_context(void *arg);
static void remove_context(size_t length);
static void learn_statement_callback(struct ParseState *pstate, void *arg);

/* Reports "SQL statement"; static in PostgreSQL */
static void (*statement_callback)(void *arg) = NULL;

/*
 * Call handler.  Raises the errors of the called function.
 */
DP_FUNCTION(dp_language_call);
Datum
dp_language_call(PG_FUNCTION_ARGS)
{
	static PGFunction plpgsql = NULL;
	volatile Call call = { { .callback = hide_context } };
	Datum result;

	if (plpgsql == NULL)
	{
		SPI_connect();
		SPI_prepare_params("SELECT 1", learn_statement_callback, NULL, 0);
		SPI_finish();
		plpgsql = plpgsql_function("plpgsql_call_handler");
	}
	call.frame.arg = (void *) &call;
	call.frame.previous = error_context_stack;
	PG_TRY();
	{
		error_context_stack = (ErrorContextCallback *) &call.frame;
		result = plpgsql(fcinfo);
	}
	PG_CATCH();
	{
		if (call.hidden > 0)
			remove_context(call.hidden);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return result;
}

/*
 * Validator, which pg_upgrade only copies together with the handler if both are the extension's.
 */
DP_FUNCTION(dp_language_validate);
Datum
dp_language_validate(PG_FUNCTION_ARGS)
{
	return plpgsql_function("plpgsql_validator")(fcinfo);
}

static PGFunction
plpgsql_function(const char *name)
{
	return (PGFunction) load_external_function("$libdir/plpgsql", name, true, NULL);
}

static void
learn_statement_callback(struct ParseState *pstate, void *arg)
{
	statement_callback = error_context_stack->callback;
}

/* Memory for a copy of an error, that of the latest call */
static MemoryContext
copy_memory(void)
{
	static MemoryContext memory = NULL;

	if (memory == NULL)
		memory = AllocSetContextCreate(TopMemoryContext, "docpatterns error", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(memory);
	return memory;
}

/*
 * Error context callback: all frames above have reported.  Frames that users
 * know nothing of are those of calls, the one that PL/pgSQL has above each, statements, and
 * locations, which are details.
 */
static void
hide_context(void *arg)
{
	Call *call = arg;
	ErrorContextCallback *f;
	ErrorData *error;
	MemoryContext old;

	call->hidden = 0;
	if (ERRCODE_TO_CATEGORY(geterrcode()) == ERRCODE_INTERNAL_ERROR ||
		geterrcode() == ERRCODE_OUT_OF_MEMORY || Log_error_verbosity >= PGERROR_VERBOSE)
		return;
	for (f = error_context_stack; f != &call->frame; f = f->previous)
	{
		if (f->callback != hide_context && f->previous->callback != hide_context &&
			f->callback != statement_callback && !dp_location_is_callback(f->callback))
			return;
	}
	old = MemoryContextSwitchTo(copy_memory());
	error = CopyErrorData();
	MemoryContextSwitchTo(old);
	if (error->elevel != ERROR || error->context == NULL)
		return;
	call->hidden = strlen(error->context);
	/* calls inside have nothing more to do */
	for (f = error_context_stack; f != &call->frame; f = f->previous)
	{
		if (f->callback == hide_context)
			((Call *) f->arg)->hidden = 0;
	}
}

/* Throws the current error again without the first bytes of its context, and the newline. */
static void
remove_context(size_t length)
{
	ErrorData *error;

	MemoryContextSwitchTo(copy_memory());
	error = CopyErrorData();
	FlushErrorState();
	error->context = error->context != NULL && strlen(error->context) > length
						 ? error->context + length + 1
						 : NULL;
	ReThrowError(error);
}
