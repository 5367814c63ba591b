/*
 * limits.c
 *		How large a document may be.
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/memutils.h"

#include "bson/limits.h"

int dp_max_document_size = 16 * 1024 * 1024;

void
dp_limits_init(void)
{
	DefineCustomIntVariable("docpatterns.max_document_size",
							"Largest document that is accepted or built.",
							"Documents that a _whole view puts together may be larger.",
							&dp_max_document_size, 16 * 1024 * 1024, 1024,
							(int) MaxAllocSize - 1024, PGC_USERSET, GUC_UNIT_BYTE, NULL, NULL,
							NULL);
}
