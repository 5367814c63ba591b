/*
 * collect.c
 *		Collects the changes of a statement to a tree until it ends.
 *
 * A row trigger records the old and new parent of a row and the row's TID; the
 * statement's trigger processes all records together.  Nested statements have
 * their own records.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "patterns/tree/change.h"

static DpStates statements; /* of DpTreeStatement */

static DpTreeStatement *statement_find(DpTree *tree);
static void *grown(MemoryContext context, void *array, int n, int *allocated, Size size);

DpTreeStatement *
dp_tree_statement(DpTree *tree)
{
	DpTreeStatement *s = statement_find(tree);

	if (s != NULL)
		return s;
	s = dp_state_begin(&statements, sizeof(DpTreeStatement));
	s->target = tree->decl->target;
	s->depth = dp_trigger_depth();
	s->state.context = AllocSetContextCreate(TopTransactionContext, "docpatterns tree statement",
											 ALLOCSET_DEFAULT_SIZES);
	s->mark = MemoryContextStrdup(s->state.context, tree->mark);
	return s;
}

DpTreeStatement *
dp_tree_statement_take(DpTree *tree)
{
	DpTreeStatement *s = statement_find(tree);

	if (s != NULL)
		statements.list = list_delete_ptr(statements.list, s);
	return s;
}

/* The one of the statement whose triggers are being called, or NULL. */
static DpTreeStatement *
statement_find(DpTree *tree)
{
	int depth = statements.list != NIL ? dp_trigger_depth() : 0;
	ListCell *lc;

	foreach(lc, statements.list)
	{
		DpTreeStatement *s = lfirst(lc);

		if (s->target == tree->decl->target && s->depth == depth &&
			strcmp(s->mark, tree->mark) == 0)
			return s;
	}
	return NULL;
}

void
dp_tree_statement_free(DpTreeStatement *statement)
{
	MemoryContextDelete(statement->state.context);
	pfree(statement);
}

DpTreeSaved *
dp_tree_saved(DpTreeStatement *s)
{
	s->saved = grown(s->state.context, s->saved, s->nsaved, &s->asaved, sizeof(DpTreeSaved));
	return &s->saved[s->nsaved++];
}

DpTreeRemoved *
dp_tree_removed(DpTreeStatement *s)
{
	s->removed =
		grown(s->state.context, s->removed, s->nremoved, &s->aremoved, sizeof(DpTreeRemoved));
	return &s->removed[s->nremoved++];
}

DpTreeListed *
dp_tree_listed(DpTreeStatement *s)
{
	s->listed = grown(s->state.context, s->listed, s->nlisted, &s->alisted, sizeof(DpTreeListed));
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
