/*
 * shape.h
 *		Shapes that documents get when they are created, and the slots in them.
 *
 *		grid		an array of rows, each an array of cells: A1, A2, .., B1, ..
 *		calendar	an array with a cell for each day of the document's month, named
 *					by the day's number: 1, 2, ..
 *		pool		an array of cells: 1, 2, ..
 *		clock		sub-documents of counters, named by the units: values.23.59
 *
 * A free cell has the shape's fill value, in a calendar its day; any other value
 * is the holder of a taken cell.  The counters of a clock have no holders.
 *
 * A document may have more slots than were declared, never fewer.
 */
#ifndef DP_PATTERNS_PREALLOCATED_SHAPE_H
#define DP_PATTERNS_PREALLOCATED_SHAPE_H

#include "bson/path.h"
#include "types/bucket/document.h"

/* The most slots of a shape, and of a document */
#define DP_SHAPE_MAX_SLOTS 100000

/* Room for the name of a slot and its NUL */
#define DP_SLOT_NAME_SIZE 16

typedef enum DpShapeKind
{
	DP_SHAPE_GRID,
	DP_SHAPE_CALENDAR,
	DP_SHAPE_POOL,
	DP_SHAPE_CLOCK
} DpShapeKind;

typedef struct DpShape
{
	DpShapeKind kind;
	int nrows;   /* of a grid; 1 in a pool */
	int32 *rows; /* the number of cells of each */
	DpValue fill;
	DpValue accessible; /* of a grid, an array of names; type EOD: none */
	bool weekdays_only; /* of a calendar */
	DpPath *month;
	DpPath *year;
	char *month_text;
	char *year_text;
	DpSlotUnits units; /* of a clock */
} DpShape;

/* The cells of a document, in order */
typedef struct DpCell
{
	char name[DP_SLOT_NAME_SIZE];
	int row;
	DpValue value;
	bool taken;
} DpCell;

typedef struct DpCells
{
	int n;
	int nrows;
	int *starts; /* the first cell of each row */
	DpCell *cells;
	uint8 (*days)[4]; /* of a calendar: what free cells hold */
} DpCells;

/*
 * Reads a shape as the functions preallocated_grid() and so on make it; it
 * points into the value.  Raises INVALID_PARAMETER_VALUE.
 */
extern DpShape *dp_shape_read(const uint8 *doc, uint32 size);

/*
 * Returns the empty field of a document, a new bson_value. doc has the month and the year of a
 * calendar. Returns NULL if these are not valid, and sets *why to the error, a sentence.
 */
extern struct varlena *dp_shape_empty(const DpShape *shape, struct varlena *doc, const char **why);

/*
 * The field of a clock with the slots that it does not have, a new bson_value; NULL if it has
 * others.
 */
extern struct varlena *dp_shape_complete(const DpShape *shape, const DpValue *field);

/*
 * Returns the cells of a field. Returns NULL if it does not have the shape, and sets *why to the
 * error, a sentence. For a clock only checks the shape. least: no slot of the shape may be
 * missing.
 */
extern DpCells *dp_shape_cells(const DpShape *shape, struct varlena *doc, const DpValue *field,
							   bool least, const char **why);

/* The cell of a name, or NULL. */
extern DpCell *dp_cells_find(DpCells *cells, const char *name);

/*
 * One slot of a field, without looking at the others: whether it is there and
 * taken.  The same result as by way of all cells.
 */
typedef enum DpSlotState
{
	DP_SLOT_ABSENT,
	DP_SLOT_FREE,
	DP_SLOT_TAKEN,
	DP_SLOT_OTHERWISE /* the cells have to be looked at */
} DpSlotState;

extern DpSlotState dp_shape_slot(const DpShape *shape, const DpValue *field, const char *name);

/* Frees a cell; returns whether a value in it would mean a free one. */
extern void dp_cell_free(const DpShape *shape, const DpCells *cells, DpCell *cell);
extern bool dp_cell_is_free_value(const DpShape *shape, const DpCells *cells, const DpCell *cell,
								  const DpValue *value);

/* The number of free cells. */
extern int dp_cells_free(const DpCells *cells);

/* The field of these cells: a new bson_value. */
extern struct varlena *dp_cells_value(const DpShape *shape, const DpCells *cells);

/*
 * A field with all slots that it has and all that the shape has, those that it
 * had as they were: a new bson_value.  added becomes the number of new ones.
 * NULL as dp_shape_cells().
 */
extern struct varlena *
dp_shape_grow(const DpShape *shape, const DpShape *declared, struct varlena *doc,
			  const DpValue *field, int *added, const char **why);

/* Whether a calendar is of another month in the one document than in the other. */
extern bool dp_shape_moved(const DpShape *shape, struct varlena *was, struct varlena *is);

#endif /* DP_PATTERNS_PREALLOCATED_SHAPE_H */
