/*
 * collect.c
 *		What a statement does to a tree, noted row by row, until the statement
 *		has ended.
 *
 * A row trigger notes where a row hangs and hung and the row's place in the
 * table; the statement's trigger takes all notes at once.  Statements that run
 * inside of triggers of others have notes of their own.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "kit/statement.h"
#include "patterns/tree/change.h"

static DpTreeStatement *statements = NULL;
static bool callbacks_registered = false;

static void end_of_transaction(XactEvent event, void *arg);
static void end_of_subtransaction(SubXactEvent event, SubTransactionId mine,
								  SubTransactionId parent, void *arg);
static void *grown(MemoryContext context, void *array, int n, int *allocated, Size size);

DpTreeStatement *
dp_tree_statement(DpTree *tree)
{
	int depth = dp_trigger_depth();
	MemoryContext context;
	DpTreeStatement *s;

	for (s = statements; s != NULL; s = s->next)
	{
		if (s->target == tree->decl->target && s->depth == depth &&
			strcmp(s->mark, tree->mark) == 0)
			return s;
	}
	if (!callbacks_registered)
	{
		RegisterXactCallback(end_of_transaction, NULL);
		RegisterSubXactCallback(end_of_subtransaction, NULL);
		callbacks_registered = true;
	}
	context = AllocSetContextCreate(TopTransactionContext, "docpatterns tree statement",
									ALLOCSET_DEFAULT_SIZES);
	s = MemoryContextAllocZero(context, sizeof(DpTreeStatement));
	s->context = context;
	s->target = tree->decl->target;
	s->mark = MemoryContextStrdup(context, tree->mark);
	s->depth = depth;
	s->nestlevel = GetCurrentTransactionNestLevel();
	s->next = statements;
	statements = s;
	return s;
}

DpTreeStatement *
dp_tree_statement_take(DpTree *tree)
{
	int depth = statements != NULL ? dp_trigger_depth() : 0;
	DpTreeStatement **link;

	for (link = &statements; *link != NULL; link = &(*link)->next)
	{
		DpTreeStatement *s = *link;

		if (s->target == tree->decl->target && s->depth == depth &&
			strcmp(s->mark, tree->mark) == 0)
		{
			*link = s->next;
			return s;
		}
	}
	return NULL;
}

void
dp_tree_statement_free(DpTreeStatement *statement)
{
	MemoryContextDelete(statement->context);
}

DpTreeCame *
dp_tree_came(DpTreeStatement *s)
{
	s->came = grown(s->context, s->came, s->ncame, &s->acame, sizeof(DpTreeCame));
	return &s->came[s->ncame++];
}

DpTreeGone *
dp_tree_gone(DpTreeStatement *s)
{
	s->gone = grown(s->context, s->gone, s->ngone, &s->agone, sizeof(DpTreeGone));
	return &s->gone[s->ngone++];
}

DpTreeListed *
dp_tree_listed(DpTreeStatement *s)
{
	s->listed = grown(s->context, s->listed, s->nlisted, &s->alisted, sizeof(DpTreeListed));
	return &s->listed[s->nlisted++];
}

/* The array, with room for one more element, which is zeroed. */
static void *
grown(MemoryContext context, void *array, int n, int *allocated, Size size)
{
	if (n == *allocated)
	{
		*allocated = n == 0 ? 8 : n * 2;
		if (array == NULL)
			array = MemoryContextAlloc(context, *allocated * size);
		else
			array = repalloc_huge(array, *allocated * size);
	}
	memset((char *) array + n * size, 0, size);
	return array;
}

DpValue
dp_tree_copy_value(MemoryContext context, const DpValue *value)
{
	DpValue copy = *value;
	uint8 *data = MemoryContextAlloc(context, value->len + 1);

	memcpy(data, value->data, value->len);
	copy.data = data;
	return copy;
}

/* At the end of a transaction nothing is noted any more; the memory goes with it. */
static void
end_of_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		statements = NULL;
}

/* What a subtransaction noted is void when it is rolled back. */
static void
end_of_subtransaction(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int level = GetCurrentTransactionNestLevel();
	DpTreeStatement **link = &statements;

	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	while (*link != NULL)
	{
		DpTreeStatement *s = *link;

		if (s->nestlevel >= level)
		{
			*link = s->next;
			MemoryContextDelete(s->context);
		}
		else
			link = &s->next;
	}
}
