/*
 * store.c
 *		The stores of extras: calls the kind of store that a declaration has.
 *
 * Every operation first finds the store's table, which may have been restored or
 * repaired since the declaration was read.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "bson/compare.h"
#include "bson/edit.h"
#include "patterns/outlier/outlier.h"

static const DpOutlierStore *store_of(DpOutlier *o);

bool
dp_outlier_exists(DpOutlier *o, const DpKey *key)
{
	return store_of(o)->exists(o, key);
}

int64
dp_outlier_stored(DpOutlier *o, const DpKey *key, bool latest)
{
	return store_of(o)->count(o, key, latest);
}

void
dp_outlier_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	if (n > 0)
		store_of(o)->append(o, key, values, n);
}

void
dp_outlier_prepend(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	if (n > 0)
		store_of(o)->prepend(o, key, values, n);
}

void
dp_outlier_take(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken)
{
	store_of(o)->take(o, key, n, from_end, taken);
}

int64
dp_outlier_remove(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	return store_of(o)->remove(o, key, values, n);
}

bool
dp_outlier_holds(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest)
{
	return store_of(o)->holds(o, key, value, latest);
}

void
dp_outlier_drop(DpOutlier *o, const DpKey *key)
{
	store_of(o)->drop(o, key);
}

void
dp_outlier_drop_orphans(DpOutlier *o)
{
	store_of(o)->drop_orphans(o);
}

void
dp_outlier_move(DpOutlier *o, const DpKey *from, const DpKey *to)
{
	store_of(o)->move(o, from, to);
}

void
dp_outlier_move_finish(DpOutlier *o, const DpKey *to)
{
	store_of(o)->move_finish(o, to);
}

void
dp_outlier_page(DpOutlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page,
				bool latest)
{
	store_of(o)->page(o, key, skip, take, page, latest);
}

void
dp_outlier_read(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest)
{
	store_of(o)->read(o, key, b, latest);
}

bool
dp_outlier_in_order(DpOutlier *o, const DpKey *key)
{
	return store_of(o)->in_order(o, key);
}

List *
dp_outlier_holders(DpOutlier *o, const DpValue *value)
{
	return store_of(o)->holders(o, value);
}

/* Returns whether a document of the collection of extras has this link. */
bool
dp_outlier_link_used(DpOutlier *o, struct varlena *link)
{
	return store_of(o) == &dp_outlier_links && dp_outlier_links_hold(o, link);
}

/*
 * Raises PROGRAM_LIMIT_EXCEEDED if so many more bytes of elements would make the whole document
 * larger than any datum. A half more is for the names of elements, which are longer in the whole
 * array.
 */
void
dp_outlier_check_whole(DpOutlier *o, const DpBuilder *b, uint32 more)
{
	if ((Size) b->len + more + more / 2 > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the whole document is too large"),
				 errdetail("A document cannot have more than %zu bytes.", (Size) MaxAllocSize),
				 errhint("Read the array \"%s\" in pages with outlier_page().",
						 dp_decl_text(o->decl, "field"))));
}

/* Adds a key to a list unless it is there. */
List *
dp_outlier_add_key(DpOutlier *o, List *keys, DpKey *key)
{
	ListCell *lc;

	foreach(lc, keys)
	{
		if (dp_key_identical(o->decl, lfirst(lc), key))
			return keys;
	}
	return lappend(keys, key);
}

/*
 * Returns whether an element equals the value. In a collection of extras, _id counts only if the
 * value has one, because the collection may have added it.
 */
bool
dp_outlier_matches(DpOutlier *o, const DpValue *element, const DpValue *value)
{
	DpValue id;

	if (o->link != NULL && value->type == DP_TYPE_DOCUMENT && element->type == DP_TYPE_DOCUMENT &&
		!dp_document_find(value->data, value->len, "_id", 3, &id) &&
		dp_document_find(element->data, element->len, "_id", 3, &id))
	{
		struct varlena *without =
			dp_document_unset(element->data, element->len, dp_path_of_name("_id", 3));
		DpValue bare = dp_value_of_document(without);

		return dp_value_compare(&bare, value) == 0;
	}
	return dp_value_compare(element, value) == 0;
}

/* Returns the kind of store of the declaration. */
static inline const DpOutlierStore *
store_kind(const DpOutlier *o)
{
	return o->link != NULL ? &dp_outlier_links : &dp_outlier_chunks;
}

/* Returns the store with its table. Raises what find() raises. */
static const DpOutlierStore *
store_of(DpOutlier *o)
{
	if (unlikely(!OidIsValid(o->side)))
		o->side = store_kind(o)->find(o);
	return store_kind(o);
}
