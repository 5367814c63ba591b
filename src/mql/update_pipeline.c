/*
 * update_pipeline.c
 *		Updates that are arrays of stages.
 */
#include "postgres.h"

#include "mql/update_tree.h"

UpdatePipeline *
dp_update_pipeline_compile(const DpValue *stages)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("updates that are arrays of stages are not supported")));
}

void
dp_update_pipeline_apply(UpdatePipeline *pipeline, const DpValue *doc, DpValue *result)
{
}
