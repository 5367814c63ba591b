/*
 * shape.c
 *		Shapes that documents get when they are created, and the slots in them.
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/number.h"
#include "patterns/preallocated/shape.h"

static void bad_shape(const char *what) pg_attribute_noreturn();
static bool whole_number(const DpValue *value, int64 *number);
static DpPath *path_option(const uint8 *doc, uint32 size, const char *option, char **text);
static bool
calendar_month(const DpShape *shape, struct varlena *doc, int *year, int *month, const char **why);
static int calendar_days(int year, int month, bool weekdays_only, int *days);
static bool month_value(const DpValue *value, int *month);
static bool year_value(const DpValue *value, int *year);
static bool clock_append(const DpShape *shape, DpBuilder *b, int level, const DpValue *given);
static int unit_count(const DpShape *shape, int level);
static bool clock_verify(const DpShape *shape, const DpValue *value, int level, const char **why);
static DpCell *cell_add(DpCells *cells, int *room, int row, const DpValue *value);
static bool cell_holds(const DpValue *value);
static bool grid_cells(const DpShape *shape, const DpValue *field, bool least, DpCells *cells,
					   const char **why);
static bool calendar_cells(const DpShape *shape, struct varlena *doc, const DpValue *field,
						   DpCells *cells, const char **why);
static DpValue cell_free_value(const DpShape *shape, const DpCells *cells, const DpCell *cell);
static void grid_slot_name(int row, int cell, char *buf);

DpShape *
dp_shape_read(const uint8 *doc, uint32 size)
{
	DpShape *shape = palloc0(sizeof(DpShape));
	DpValue kind;
	DpValue value;
	DpIter iter;
	int64 total = 0;
	int64 n;

	if (!dp_document_find(doc, size, "kind", 4, &kind) || kind.type != DP_TYPE_STRING)
		bad_shape(
			"Create it with preallocated_grid(), preallocated_calendar(), preallocated_pool() or preallocated_clock().");
	if (dp_document_find(doc, size, "fill", 4, &shape->fill))
	{
		if (dp_type_is_container(shape->fill.type) || shape->fill.type == DP_TYPE_UNDEFINED)
			bad_shape("The value of free cells must be neither a document nor an array.");
	}
	if (strcmp(DP_STRING_DATA(&kind), "grid") == 0)
	{
		int i = 0;

		shape->kind = DP_SHAPE_GRID;
		if (!dp_document_find(doc, size, "rows", 4, &value) || value.type != DP_TYPE_ARRAY)
			bad_shape("A grid must have an array of rows.");
		shape->nrows = dp_array_count(value.data, value.len);
		shape->rows = palloc(sizeof(int32) * Max(shape->nrows, 1));
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &value))
		{
			if (!whole_number(&value, &n) || n < 1 || n > DP_SHAPE_MAX_SLOTS)
				bad_shape("A row must have at least one cell.");
			total += n;
			shape->rows[i++] = (int32) n;
		}
		if (shape->nrows == 0)
			bad_shape("A grid must have at least one row.");
		if (dp_document_find(doc, size, "accessible", 10, &shape->accessible))
		{
			if (shape->accessible.type != DP_TYPE_ARRAY)
				bad_shape("Accessible slots must be an array of names.");
			dp_iter_init_value(&iter, &shape->accessible);
			while (dp_iter_next_value(&iter, &value))
			{
				bool found = false;
				int row;

				if (value.type != DP_TYPE_STRING)
					bad_shape("Accessible slots must be an array of names.");
				for (row = 0; row < shape->nrows && !found; row++)
				{
					char name[DP_SLOT_NAME_SIZE];
					int prefix;
					long cell;
					char *end;

					grid_slot_name(row, 0, name);
					prefix = strlen(name) - 1;
					if (strncmp(DP_STRING_DATA(&value), name, prefix) != 0 ||
						!isdigit((unsigned char) DP_STRING_DATA(&value)[prefix]))
						continue;
					cell = strtol(DP_STRING_DATA(&value) + prefix, &end, 10);
					if (cell >= 1 && cell <= shape->rows[row])
					{
						grid_slot_name(row, (int) cell - 1, name);
						found = strcmp(name, DP_STRING_DATA(&value)) == 0;
					}
				}
				if (!found)
					bad_shape(psprintf("The grid has no slot \"%.20s\".", DP_STRING_DATA(&value)));
			}
		}
	}
	else if (strcmp(DP_STRING_DATA(&kind), "calendar") == 0)
	{
		shape->kind = DP_SHAPE_CALENDAR;
		if (dp_document_find(doc, size, "weekdays_only", 13, &value))
			shape->weekdays_only = value.type == DP_TYPE_BOOL && value.data[0] != 0;
		shape->month = path_option(doc, size, "month_field", &shape->month_text);
		shape->year = path_option(doc, size, "year_field", &shape->year_text);
	}
	else if (strcmp(DP_STRING_DATA(&kind), "pool") == 0)
	{
		shape->kind = DP_SHAPE_POOL;
		if (!dp_document_find(doc, size, "n", 1, &value) || !whole_number(&value, &n) || n < 1 ||
			n > DP_SHAPE_MAX_SLOTS)
			bad_shape(psprintf("A pool must have between 1 and %d slots.", DP_SHAPE_MAX_SLOTS));
		shape->nrows = 1;
		shape->rows = palloc(sizeof(int32));
		shape->rows[0] = (int32) n;
		total = n;
	}
	else if (strcmp(DP_STRING_DATA(&kind), "clock") == 0)
	{
		shape->kind = DP_SHAPE_CLOCK;
		if (!dp_document_find(doc, size, "units", 5, &value) || value.type != DP_TYPE_ARRAY)
			bad_shape("A clock must have an array of units.");
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &value))
		{
			DpSlotUnit unit;

			if (value.type != DP_TYPE_STRING ||
				!dp_slot_unit_find(DP_STRING_DATA(&value), DP_STRING_LEN(&value), &unit) ||
				unit == DP_UNIT_DAY)
				bad_shape("The units of a clock must be hour, minute and second.");
			if (shape->units.n == 0)
				shape->units.first = unit;
			else if (unit != shape->units.first + shape->units.n)
				bad_shape("Each unit of a clock must divide the unit before it.");
			shape->units.n++;
		}
		if (shape->units.n == 0)
			bad_shape("A clock must have at least one unit.");
	}
	else
		bad_shape("The kind must be grid, calendar, pool or clock.");
	if (shape->kind != DP_SHAPE_CALENDAR && shape->fill.type == DP_TYPE_EOD)
		bad_shape("The value of free cells is missing.");
	if (total > DP_SHAPE_MAX_SLOTS)
		bad_shape(psprintf("It has more than %d slots.", DP_SHAPE_MAX_SLOTS));
	return shape;
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_shape(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid shape"),
					errdetail("%s", what)));
}

/* A number without a fraction. */
static bool
whole_number(const DpValue *value, int64 *number)
{
	double d;

	if (!dp_type_is_number(value->type))
		return false;
	d = dp_number_approximate(value);
	if (!(d >= -1e9 && d <= 1e9) || d != floor(d))
		return false;
	*number = (int64) d;
	return true;
}

/* An option that is a path. */
static DpPath *
path_option(const uint8 *doc, uint32 size, const char *option, char **text)
{
	DpValue value;

	if (!dp_document_find(doc, size, option, strlen(option), &value) ||
		value.type != DP_TYPE_STRING)
		bad_shape("A calendar requires the fields of the month and the year.");
	*text = pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	return dp_path_parse(*text, strlen(*text));
}

/* Rows are named A to Z, then AA, AB and so on; cells count from 1. */
static void
grid_slot_name(int row, int cell, char *buf)
{
	char letters[8];
	int n = 0;
	int i = 0;

	for (row++; row > 0; row = (row - 1) / 26)
		letters[n++] = 'A' + (row - 1) % 26;
	while (n > 0)
		buf[i++] = letters[--n];
	snprintf(buf + i, DP_SLOT_NAME_SIZE - i, "%d", cell + 1);
}

/* ---------------------------------------------------------------- calendars */

/* The month that a document is about. */
static bool
calendar_month(const DpShape *shape, struct varlena *doc, int *year, int *month, const char **why)
{
	DpValue value;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), shape->month, &value) ||
		!month_value(&value, month))
	{
		*why = psprintf(
			"The field \"%s\" must be a month: its English name, or a number from 1 to 12.",
			shape->month_text);
		return false;
	}
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), shape->year, &value) ||
		!year_value(&value, year))
	{
		*why = psprintf("The field \"%s\" must be a year from 1 to 9999.", shape->year_text);
		return false;
	}
	return true;
}

/* A month by its English name, the first letters of it, or its number. */
static bool
month_value(const DpValue *value, int *month)
{
	static const char *const names[] = { "january",   "february", "march",    "april",
										 "may",       "june",     "july",     "august",
										 "september", "october",  "november", "december" };
	int64 n;
	int i;

	if (value->type == DP_TYPE_STRING)
	{
		const char *s = DP_STRING_DATA(value);
		int len = DP_STRING_LEN(value);

		for (i = 0; i < 12; i++)
		{
			int full = strlen(names[i]);

			if ((len == full || len == 3 || (i == 8 && len == 4)) &&
				pg_strncasecmp(s, names[i], len) == 0)
			{
				*month = i + 1;
				return true;
			}
		}
		if (len < 1 || len > 2 || strspn(s, "0123456789") != len)
			return false;
		n = atoi(s);
	}
	else if (!whole_number(value, &n))
		return false;
	*month = (int) n;
	return n >= 1 && n <= 12;
}

/* A year as a number or its digits. */
static bool
year_value(const DpValue *value, int *year)
{
	int64 n;

	if (value->type == DP_TYPE_STRING)
	{
		const char *s = DP_STRING_DATA(value);
		int len = DP_STRING_LEN(value);

		if (len < 1 || len > 4 || strspn(s, "0123456789") != len)
			return false;
		n = atoi(s);
	}
	else if (!whole_number(value, &n))
		return false;
	*year = (int) n;
	return n >= 1 && n <= 9999;
}

/* The days of a month, or those from Monday to Friday.  Returns how many. */
static int
calendar_days(int year, int month, bool weekdays_only, int *days)
{
	int last = day_tab[isleap(year)][month - 1];
	int n = 0;
	int day;

	for (day = 1; day <= last; day++)
	{
		int weekday = j2day(date2j(year, month, day));

		if (!weekdays_only || (weekday != 0 && weekday != 6))
			days[n++] = day;
	}
	return n;
}

bool
dp_shape_moved(const DpShape *shape, struct varlena *was, struct varlena *is)
{
	const char *why;
	int year[2];
	int month[2];
	bool had;

	if (shape->kind != DP_SHAPE_CALENDAR)
		return false;
	had = calendar_month(shape, was, &year[0], &month[0], &why);
	if (had != calendar_month(shape, is, &year[1], &month[1], &why))
		return true;
	return had && (year[0] != year[1] || month[0] != month[1]);
}

/* ---------------------------------------------------------------- empty */

struct varlena *
dp_shape_empty(const DpShape *shape, struct varlena *doc, const char **why)
{
	DpBuilder b;
	int row;
	int i;

	dp_builder_init_value(&b, 0);
	switch (shape->kind)
	{
		case DP_SHAPE_GRID:
			dp_builder_begin_array(&b);
			for (row = 0; row < shape->nrows; row++)
			{
				dp_builder_begin_array_field(&b, NULL, 0);
				for (i = 0; i < shape->rows[row]; i++)
					dp_builder_append_value(&b, NULL, 0, &shape->fill);
				dp_builder_end(&b);
			}
			break;
		case DP_SHAPE_POOL:
			dp_builder_begin_array(&b);
			for (i = 0; i < shape->rows[0]; i++)
				dp_builder_append_value(&b, NULL, 0, &shape->fill);
			break;
		case DP_SHAPE_CALENDAR:
		{
			int days[31];
			int year;
			int month;
			int n;

			if (!calendar_month(shape, doc, &year, &month, why))
				return NULL;
			n = calendar_days(year, month, shape->weekdays_only, days);
			dp_builder_begin_array(&b);
			for (i = 0; i < n; i++)
				dp_builder_append_int32(&b, NULL, 0, days[i]);
			break;
		}
		case DP_SHAPE_CLOCK:
			dp_builder_begin_document(&b);
			(void) clock_append(shape, &b, 0, NULL);
			dp_builder_end(&b);
			return dp_builder_finish_value(&b, DP_TYPE_DOCUMENT);
	}
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

struct varlena *
dp_shape_complete(const DpShape *shape, const DpValue *field)
{
	DpBuilder b;

	if (shape->kind != DP_SHAPE_CLOCK)
		return NULL;
	dp_builder_init_value(&b, field->len);
	dp_builder_begin_document(&b);
	if (!clock_append(shape, &b, 0, field))
		return NULL;
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_DOCUMENT);
}

/*
 * Reads the slots of a level of a clock and their values. Returns false unless the value is a
 * document of distinct slots.
 */
static bool
clock_append(const DpShape *shape, DpBuilder *b, int level, const DpValue *given)
{
	int n = unit_count(shape, level);
	uint32 used = 0;
	int i;

	CHECK_FOR_INTERRUPTS();
	if (given != NULL && given->type != DP_TYPE_DOCUMENT)
		return false;
	for (i = 0; i < n; i++)
	{
		char name[12];
		uint32 len = dp_index_name(i, name);
		DpValue value;
		bool found = given != NULL && dp_document_find(given->data, given->len, name, len, &value);

		used += found;
		if (level == shape->units.n - 1)
			dp_builder_append_value(b, name, len, found ? &value : &shape->fill);
		else
		{
			dp_builder_begin_document_field(b, name, len);
			if (!clock_append(shape, b, level + 1, found ? &value : NULL))
				return false;
			dp_builder_end(b);
		}
	}
	return given == NULL || used == dp_array_count(given->data, given->len);
}

/* The number of slots of a level of a clock. */
static int
unit_count(const DpShape *shape, int level)
{
	return shape->units.first + level == DP_UNIT_HOUR ? 24 : 60;
}

/* ---------------------------------------------------------------- cells */

DpCells *
dp_shape_cells(const DpShape *shape, struct varlena *doc, const DpValue *field, bool least,
			   const char **why)
{
	DpCells *cells = palloc0(sizeof(DpCells));
	bool good;

	if (shape->kind == DP_SHAPE_CLOCK)
		good = clock_verify(shape, field, 0, why);
	else if (field->type != DP_TYPE_ARRAY)
	{
		*why = psprintf("It is of type %s, not an array.", dp_type_name(field->type));
		good = false;
	}
	else if (shape->kind == DP_SHAPE_CALENDAR)
		good = calendar_cells(shape, doc, field, cells, why);
	else
		good = grid_cells(shape, field, least, cells, why);
	return good ? cells : NULL;
}

/* Whether a clock has its slots, in order, and no others. */
static bool
clock_verify(const DpShape *shape, const DpValue *value, int level, const char **why)
{
	int n = unit_count(shape, level);
	DpIter iter;
	DpElement element;
	int i;

	if (value->type != DP_TYPE_DOCUMENT)
	{
		*why = psprintf("It has a value of type %s in the place of the %ss.",
						dp_type_name(value->type), dp_slot_unit_name(shape->units.first + level));
		return false;
	}
	dp_iter_init_value(&iter, value);
	for (i = 0; i <= n; i++)
	{
		char name[12];
		uint32 len = dp_index_name(i, name);
		bool more = dp_iter_next(&iter, &element);

		if (i == n && !more)
			return true;
		if (i == n || !more || element.namelen != len || memcmp(element.name, name, len) != 0)
		{
			*why = psprintf("It must have the %ss 0 to %d, in this order, and nothing else.",
							dp_slot_unit_name(shape->units.first + level), n - 1);
			return false;
		}
		if (level < shape->units.n - 1)
		{
			if (!clock_verify(shape, &element.value, level + 1, why))
				return false;
		}
		else if (dp_type_is_container(element.value.type))
		{
			*why = psprintf("A slot holds a value of type %s.", dp_type_name(element.value.type));
			return false;
		}
	}
	return true;
}

/* One more cell, without its name. */
static DpCell *
cell_add(DpCells *cells, int *room, int row, const DpValue *value)
{
	DpCell *cell;

	if (cells->n == *room)
	{
		*room = Max(64, *room * 2);
		cells->cells = cells->cells == NULL ? palloc(sizeof(DpCell) * *room)
											: repalloc(cells->cells, sizeof(DpCell) * *room);
	}
	cell = &cells->cells[cells->n++];
	cell->row = row;
	cell->value = *value;
	cell->taken = false;
	return cell;
}

/* Whether a value can be what a cell holds. */
static bool
cell_holds(const DpValue *value)
{
	return !dp_type_is_container(value->type) && value->type != DP_TYPE_UNDEFINED;
}

/*
 * The cells of a grid, or of a pool, which is a grid of one row that is not inside another array.
 */
static bool
grid_cells(const DpShape *shape, const DpValue *field, bool least, DpCells *cells, const char **why)
{
	DpIter rows;
	DpValue line;
	int room = 0;
	int rows_room = 0;
	int row = 0;

	dp_iter_init_value(&rows, field);
	for (;;)
	{
		DpIter iter;
		DpValue value;
		char name[DP_SLOT_NAME_SIZE];
		int prefix = 0;
		int n = 0;

		if (shape->kind == DP_SHAPE_POOL)
		{
			if (row > 0)
				break;
			line = *field;
		}
		else if (!dp_iter_next_value(&rows, &line))
			break;
		if (line.type != DP_TYPE_ARRAY)
		{
			*why =
				psprintf("Row %d is of type %s, not an array.", row + 1, dp_type_name(line.type));
			return false;
		}
		if (shape->kind == DP_SHAPE_GRID)
		{
			grid_slot_name(row, 0, name);
			prefix = strlen(name) - 1;
		}
		if (row >= rows_room)
		{
			rows_room = Max(16, rows_room * 2);
			cells->starts = cells->starts == NULL
								? palloc(sizeof(int) * rows_room)
								: repalloc(cells->starts, sizeof(int) * rows_room);
		}
		cells->starts[row] = cells->n;
		dp_iter_init_value(&iter, &line);
		while (dp_iter_next_value(&iter, &value))
		{
			DpCell *cell;

			if (cells->n == DP_SHAPE_MAX_SLOTS)
			{
				*why = psprintf("It has more than %d slots.", DP_SHAPE_MAX_SLOTS);
				return false;
			}
			cell = cell_add(cells, &room, row, &value);
			memcpy(cell->name, name, prefix);
			pg_ltoa(++n, cell->name + prefix);
			cell->taken = !dp_cell_is_free_value(shape, cells, cell, &value);
			if (cell->taken && (!cell_holds(&value) || value.type == DP_TYPE_NULL))
			{
				*why = psprintf("Slot %s holds a value of type %s.", cell->name,
								dp_type_name(value.type));
				return false;
			}
		}
		if (least && row < shape->nrows && n < shape->rows[row])
		{
			*why = shape->kind == DP_SHAPE_POOL
					   ? psprintf("It has %d slots, not %d.", n, shape->rows[row])
					   : psprintf("Row %d has %d cells, not %d.", row + 1, n, shape->rows[row]);
			return false;
		}
		row++;
	}
	cells->nrows = row;
	if (least && row < shape->nrows)
	{
		*why = psprintf("It has %d rows, not %d.", row, shape->nrows);
		return false;
	}
	return true;
}

/*
 * Reads the cells of a calendar. A calendar declared for weekdays may have all days, which its
 * length shows.
 */
static bool
calendar_cells(const DpShape *shape, struct varlena *doc, const DpValue *field, DpCells *cells,
			   const char **why)
{
	int days[31];
	int year;
	int month;
	int n;
	int count = dp_array_count(field->data, field->len);
	int room = 0;
	int i = 0;
	DpIter iter;
	DpValue value;

	if (!calendar_month(shape, doc, &year, &month, why))
		return false;
	n = calendar_days(year, month, shape->weekdays_only, days);
	if (shape->weekdays_only && count > n)
		n = calendar_days(year, month, false, days);
	if (count != n)
	{
		*why = psprintf("It has %d days, not %d.", count, n);
		return false;
	}
	cells->nrows = 1;
	cells->days = palloc(sizeof(*cells->days) * 31);
	dp_iter_init_value(&iter, field);
	while (i < n && dp_iter_next_value(&iter, &value))
	{
		DpCell *cell = cell_add(cells, &room, 0, &value);

		snprintf(cell->name, DP_SLOT_NAME_SIZE, "%d", days[i]);
		dp_put_int32(cells->days[i], days[i]);
		i++;
		cell->taken = !dp_cell_is_free_value(shape, cells, cell, &value);
		if (cell->taken && (!cell_holds(&value) || value.type == DP_TYPE_NULL))
		{
			*why =
				psprintf("Day %s holds a value of type %s.", cell->name, dp_type_name(value.type));
			return false;
		}
	}
	return true;
}

DpCell *
dp_cells_find(DpCells *cells, const char *name)
{
	int row = 0;
	int at;
	const char *p = name;

	if (cells->days != NULL)
	{
		for (at = 0; at < cells->n; at++)
		{
			if (strcmp(cells->cells[at].name, name) == 0)
				return &cells->cells[at];
		}
		return NULL;
	}

	/* the name is the position */
	for (; *p >= 'A' && *p <= 'Z' && row <= cells->nrows; p++)
		row = row * 26 + (*p - 'A' + 1);
	row -= p > name ? 1 : 0;
	if (row >= cells->nrows || strlen(p) > 8)
		return NULL;
	at = cells->starts[row] + atoi(p) - 1;
	if (at < 0 || at >= cells->n || strcmp(cells->cells[at].name, name) != 0)
		return NULL;
	return &cells->cells[at];
}

DpSlotState
dp_shape_slot(const DpShape *shape, const DpValue *field, const char *name)
{
	DpValue line = *field;
	DpValue value;
	char canonical[DP_SLOT_NAME_SIZE];
	const char *p = name;
	int row = 0;
	int cell;

	if (shape->kind == DP_SHAPE_CALENDAR || field->type != DP_TYPE_ARRAY)
		return DP_SLOT_OTHERWISE;
	for (; *p >= 'A' && *p <= 'Z' && row <= DP_SHAPE_MAX_SLOTS; p++)
		row = row * 26 + (*p - 'A' + 1);
	if ((p > name) != (shape->kind == DP_SHAPE_GRID) || row > DP_SHAPE_MAX_SLOTS || strlen(p) > 8)
		return DP_SLOT_ABSENT;
	cell = atoi(p) - 1;
	if (shape->kind == DP_SHAPE_GRID)
	{
		grid_slot_name(row - 1, cell, canonical);
		if (!dp_array_element(field->data, field->len, row - 1, &line))
			return DP_SLOT_ABSENT;
	}
	else
		pg_ltoa(cell + 1, canonical);
	if (line.type != DP_TYPE_ARRAY)
		return DP_SLOT_OTHERWISE;
	if (cell < 0 || strcmp(canonical, name) != 0 ||
		!dp_array_element(line.data, line.len, cell, &value))
		return DP_SLOT_ABSENT;
	return dp_value_identical(&value, &shape->fill) || dp_value_compare(&value, &shape->fill) == 0
			   ? DP_SLOT_FREE
			   : DP_SLOT_TAKEN;
}

/* Returns the value of a free cell. */
static DpValue
cell_free_value(const DpShape *shape, const DpCells *cells, const DpCell *cell)
{
	DpValue value = { 0 };

	if (shape->kind != DP_SHAPE_CALENDAR)
		return shape->fill;
	value.data = cells->days[cell - cells->cells];
	value.len = 4;
	value.type = DP_TYPE_INT32;
	return value;
}

bool
dp_cell_is_free_value(const DpShape *shape, const DpCells *cells, const DpCell *cell,
					  const DpValue *value)
{
	DpValue free = cell_free_value(shape, cells, cell);

	return dp_value_identical(value, &free) || dp_value_compare(value, &free) == 0;
}

void
dp_cell_free(const DpShape *shape, const DpCells *cells, DpCell *cell)
{
	cell->value = cell_free_value(shape, cells, cell);
	cell->taken = false;
}

int
dp_cells_free(const DpCells *cells)
{
	int n = 0;
	int i;

	for (i = 0; i < cells->n; i++)
		n += cells->cells[i].taken ? 0 : 1;
	return n;
}

struct varlena *
dp_cells_value(const DpShape *shape, const DpCells *cells)
{
	DpBuilder b;
	int row;
	int i = 0;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (row = 0; row < cells->nrows; row++)
	{
		if (shape->kind == DP_SHAPE_GRID)
			dp_builder_begin_array_field(&b, NULL, 0);
		for (; i < cells->n && cells->cells[i].row == row; i++)
			dp_builder_append_value(&b, NULL, 0, &cells->cells[i].value);
		if (shape->kind == DP_SHAPE_GRID)
			dp_builder_end(&b);
	}
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

/*
 * Cells by their places: those of the field where it has them, free ones where
 * only the shape does.  A calendar is taken apart by its days.
 */
struct varlena *
dp_shape_grow(const DpShape *shape, const DpShape *declared, struct varlena *doc,
			  const DpValue *field, int *added, const char **why)
{
	DpCells *has = dp_shape_cells(declared, doc, field, false, why);
	DpCells result = { 0 };
	DpCells *wants;
	struct varlena *empty;
	DpValue value;
	int room = 0;
	int i = 0;
	int j = 0;

	*added = 0;
	if (has == NULL || shape->kind == DP_SHAPE_CLOCK)
		return has == NULL ? NULL : dp_value_to_varlena(field);
	empty = dp_shape_empty(shape, doc, why);
	if (empty == NULL)
		return NULL;
	value = dp_value_of_varlena(empty);
	wants = dp_shape_cells(shape, doc, &value, false, why);
	if (wants == NULL)
		return NULL;
	/* both are in order: of rows and then of cells, or of days */
	result.nrows = Max(has->nrows, wants->nrows);
	while (i < has->n || j < wants->n)
	{
		const DpCell *a = i < has->n ? &has->cells[i] : NULL;
		const DpCell *b = j < wants->n ? &wants->cells[j] : NULL;
		int order;

		if (a == NULL || b == NULL)
			order = a == NULL ? 1 : -1;
		else if (strcmp(a->name, b->name) == 0)
			order = 0;
		else if (a->row != b->row)
			order = a->row < b->row ? -1 : 1;
		else
			order = atoi(a->name + strcspn(a->name, "0123456789")) <
							atoi(b->name + strcspn(b->name, "0123456789"))
						? -1
						: 1;
		(void) cell_add(&result, &room, order <= 0 ? a->row : b->row,
						order <= 0 ? &a->value : &b->value);
		if (order > 0)
			(*added)++;
		i += order <= 0 ? 1 : 0;
		j += order >= 0 ? 1 : 0;
		if (result.n > DP_SHAPE_MAX_SLOTS)
		{
			*why = psprintf("It would have more than %d slots.", DP_SHAPE_MAX_SLOTS);
			return NULL;
		}
	}
	return dp_cells_value(shape, &result);
}
