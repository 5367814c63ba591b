/*
 * portable.c
 *		Output and input functions of any type, under settings that make their
 *		text mean the same in every session.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/float.h"
#include "utils/guc.h"

#include "types/bucket/builder.h"

/*
 * Changes the settings that matter, if they are not right already.  Returns what
 * leave_portable() needs.  An error in between resets them, too.
 */
static int
enter_portable(void)
{
	int level;

	if (likely(DateStyle == USE_ISO_DATES && IntervalStyle == INTSTYLE_POSTGRES &&
			   extra_float_digits > 0))
		return -1;
	level = NewGUCNestLevel();
	(void) set_config_option("datestyle", "ISO", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
							 0, false);
	(void) set_config_option("intervalstyle", "postgres", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	if (extra_float_digits <= 0)
		(void) set_config_option("extra_float_digits", "1", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	return level;
}

static void
leave_portable(int level)
{
	if (level >= 0)
		AtEOXact_GUC(true, level);
}

char *
dp_portable_output(FmgrInfo *output, Datum d)
{
	int level = enter_portable();
	char *text = OutputFunctionCall(output, d);

	leave_portable(level);
	return text;
}

Datum
dp_portable_input(FmgrInfo *input, char *text, Oid ioparam, int32 typmod)
{
	int level = enter_portable();
	Datum d = InputFunctionCall(input, text, ioparam, typmod);

	leave_portable(level);
	return d;
}
