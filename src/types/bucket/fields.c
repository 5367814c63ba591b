/*
 * fields.c
 *		The fields of a bucket by name.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "types/bucket/fields.h"

static void source_of_path(DpBucketReader *r, const DpBucketFields *fields, const text *name,
						   DpBucketSource *source);

void
dp_bucket_fields(DpBucketReader *r, const char *const *names, int nnames, DpBucketFields *fields)
{
	int all = r->ncolumns + r->nfields;
	int n = 0;

	/* parsing the last column parses those before it: after that none of them moves */
	if (all > 0)
		(void) dp_bucket_column(r, all - 1);
	fields->reader = r;
	fields->split = r->ncolumns == 1 && r->columns[0].kind == DP_PACKED_SPLIT_DOCUMENT;
	fields->fields = palloc(Max(all, 1) * sizeof(DpBucketField));

	for (int i = fields->split ? 1 : 0; i < (fields->split ? all : r->ncolumns); i++)
	{
		DpBucketField *field = &fields->fields[n++];

		field->column = i;
		field->packed = &r->columns[i];
		if (i < nnames && !fields->split)
		{
			field->name = names[i];
			field->namelen = strlen(names[i]);
		}
		else if (r->columns[i].name != NULL)
		{
			field->name = pnstrdup(r->columns[i].name, r->columns[i].namelen);
			field->namelen = r->columns[i].namelen;
		}
		else
		{
			field->name = r->ncolumns == 1 ? DP_BUCKET_NAME_VALUE
										   : psprintf("%s%d", DP_BUCKET_NAME_VALUE, i + 1);
			field->namelen = strlen(field->name);
		}
	}
	fields->n = n;
}

const DpBucketField *
dp_bucket_fields_find(const DpBucketFields *fields, const char *name, uint32 namelen)
{
	for (int i = 0; i < fields->n; i++)
	{
		const DpBucketField *field = &fields->fields[i];

		if (field->namelen == namelen && memcmp(field->name, name, namelen) == 0)
			return field;
	}
	return NULL;
}

bool
dp_bucket_source(DpBucketReader *r, const text *name, DpBucketSource *source)
{
	DpBucketFields fields;
	const DpBucketField *field;

	dp_bucket_fields(r, NULL, 0, &fields);
	source->path = NULL;
	source->step = 0;
	if (name == NULL)
	{
		if (fields.n != 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("bucket has %d fields", fields.n), errhint("Specify one of them.")));
		field = &fields.fields[0];
	}
	else
		field = dp_bucket_fields_find(&fields, VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));

	if (field != NULL)
	{
		source->column = field->column;
		source->packed = field->packed;
		return true;
	}
	source->packed = NULL;
	source_of_path(r, &fields, name, source);
	if (source->packed == NULL && !fields.split)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("bucket has no field \"%s\"", text_to_cstring(name)),
				 fields.n > 0 ? errdetail("Its first field is \"%s\".", fields.fields[0].name)
							  : 0));
	return source->packed != NULL;
}

/* Finds the column that the first parts of a path name; packed stays NULL if there is none. */
static void
source_of_path(DpBucketReader *r, const DpBucketFields *fields, const text *name,
			   DpBucketSource *source)
{
	DpPath *path = dp_path_parse(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
	const DpBucketField *field;

	if (path->nsteps < 1)
		return;
	field = dp_bucket_fields_find(fields, path->steps[0].name, path->steps[0].namelen);
	if (field == NULL)
		return;
	source->column = field->column;
	source->path = path;
	source->step = 1;
	if (field->packed->kind == DP_PACKED_SPLIT_DOCUMENT && path->nsteps > 1)
	{
		source->column =
			dp_bucket_find_column(r, field->column, path->steps[1].name, path->steps[1].namelen);
		if (source->column < 0)
			return;
		source->step = 2;
	}
	source->packed = dp_bucket_column(r, source->column);
	if (source->step == path->nsteps)
		source->path = NULL;
}

void
dp_bucket_column_values(DpBucketReader *r, int column, DpValue *values)
{
	dp_bucket_values(r, column, values);
	if (dp_bucket_column(r, column)->summary.nnulls > 0)
	{
		uint8 *presence = palloc(r->count);

		dp_bucket_presence(r, column, presence);
		for (int i = 0; i < r->count; i++)
		{
			if (presence[i] == DP_PACKED_NULL)
				values[i].type = DP_TYPE_NULL;
		}
		pfree(presence);
	}
}

void
dp_bucket_source_values(DpBucketReader *r, const DpBucketSource *source, DpValue *values)
{
	dp_bucket_column_values(r, source->column, values);
	if (source->path == NULL)
		return;
	for (int i = 0; i < r->count; i++)
	{
		for (int step = source->step; step < source->path->nsteps && values[i].type != DP_TYPE_EOD;
			 step++)
		{
			const uint8 *element;
			DpValue found;

			if (dp_type_is_container(values[i].type) &&
				dp_step_find(&values[i], &source->path->steps[step], &element, &found))
				values[i] = found;
			else
				values[i].type = DP_TYPE_EOD;
		}
	}
}

DpBucketReader *
dp_bucket_argument(FunctionCallInfo fcinfo, int argno)
{
	DpBucketReader *r = fcinfo->flinfo->fn_extra;

	if (r == NULL)
	{
		r = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(DpBucketReader));
		dp_bucket_reader_init(r, fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = r;
	}
	dp_bucket_open(r, PG_GETARG_DATUM(argno));
	return r;
}
