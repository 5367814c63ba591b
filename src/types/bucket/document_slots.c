/*
 * document_slots.c
 *		Slots: the days, hours, minutes and seconds that values stand under in
 *		the layouts dense and keyed.  All by the clock of UTC.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "mql/expression_date.h"
#include "types/bucket/document.h"

static const char *const unit_names[] = { "day", "hour", "minute", "second" };

bool
dp_slot_unit_find(const char *name, uint32 len, DpSlotUnit *unit)
{
	for (int i = 0; i < (int) lengthof(unit_names); i++)
	{
		if (strlen(unit_names[i]) == len && memcmp(unit_names[i], name, len) == 0)
		{
			*unit = (DpSlotUnit) i;
			return true;
		}
	}
	return false;
}

const char *
dp_slot_unit_name(DpSlotUnit unit)
{
	return unit_names[unit];
}

void
dp_slot_units_parse(ArrayType *names, DpSlotUnits *units)
{
	Datum *values;
	bool *nulls;
	int n;

	deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &n);
	units->n = 0;
	for (int i = 0; i < n; i++)
	{
		text *name = nulls[i] ? NULL : DatumGetTextPP(values[i]);
		DpSlotUnit unit;

		if (name == NULL || !dp_slot_unit_find(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), &unit))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("\"%s\" is not a unit of slots",
								   name == NULL ? "NULL" : text_to_cstring(name)),
							errhint("Units are day, hour, minute and second.")));
		if (i == 0)
			units->first = unit;
		else if (unit != units->first + i)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("units must go from a larger one to the next smaller one"),
							errdetail("After \"%s\" comes \"%s\".",
									  unit_names[units->first + i - 1], unit_names[unit])));
		units->n++;
	}
	if (n == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("units must not be empty"),
						errhint("Omit the argument to derive units from the times.")));
}

int64
dp_slot_base(const DpSlotUnits *units, int64 ms)
{
	int64 day = dp_floor_div(ms, DP_MS_DAY);
	DpParts p;

	switch (units->first)
	{
		case DP_UNIT_DAY:
			dp_parts_of(day * DP_MS_DAY, &p);
			return (day - (p.day - 1)) * DP_MS_DAY;
		case DP_UNIT_HOUR:
			return day * DP_MS_DAY;
		case DP_UNIT_MINUTE:
			return dp_floor_div(ms, DP_MS_HOUR) * DP_MS_HOUR;
		case DP_UNIT_SECOND:
			return dp_floor_div(ms, DP_MS_MINUTE) * DP_MS_MINUTE;
	}
	return 0;
}

int
dp_slot_count(const DpSlotUnits *units, int level, int64 base)
{
	DpParts p;

	switch (units->first + level)
	{
		case DP_UNIT_DAY:
			dp_parts_of(base, &p);
			return dp_days_in_month(p.year, p.month);
		case DP_UNIT_HOUR:
			return 24;
		default:
			return 60;
	}
}

int64
dp_slot_width(DpSlotUnit unit)
{
	switch (unit)
	{
		case DP_UNIT_DAY:
			return DP_MS_DAY;
		case DP_UNIT_HOUR:
			return DP_MS_HOUR;
		case DP_UNIT_MINUTE:
			return DP_MS_MINUTE;
		default:
			return DP_MS_SECOND;
	}
}
