/*
 * diff_carry.c
 *		The change between two documents, made to a third one.
 *
 * It is the third one that is written down, in its order, with what changed
 * put where it belongs.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/builder.h"
#include "bson/diff.h"
#include "bson/diff_align.h"

/* The elements of the three containers. */
typedef struct Three
{
	DpMembers from;
	DpMembers to;
	DpMembers onto;
} Three;

static void
carry_documents(DpBuilder *b, const DpValue *from, const DpValue *to, const DpValue *onto);
static void carry_arrays(DpBuilder *b, const DpValue *from, const DpValue *to, const DpValue *onto);
static void carry_value(DpBuilder *b, const DpElement *name, const DpValue *from, const DpValue *to,
						const DpValue *onto);
static void three_read(Three *three, const DpValue *from, const DpValue *to, const DpValue *onto);
static void three_free(Three *three);
static inline void put(DpBuilder *b, const DpElement *e);

struct varlena *
dp_diff_carry(const uint8 *from, uint32 fromsize, const uint8 *to, uint32 tosize, const uint8 *onto,
			  uint32 ontosize)
{
	DpValue a = { from, fromsize, DP_TYPE_DOCUMENT };
	DpValue b = { to, tosize, DP_TYPE_DOCUMENT };
	DpValue c = { onto, ontosize, DP_TYPE_DOCUMENT };
	DpBuilder builder;

	dp_builder_init(&builder, (Size) ontosize + tosize);
	dp_builder_begin_document(&builder);
	carry_documents(&builder, &a, &b, &c);
	dp_builder_end(&builder);
	return dp_builder_finish_bson(&builder);
}

/*
 * Writes the members of onto, changed, into the document that is open.
 */
static void
carry_documents(DpBuilder *b, const DpValue *from, const DpValue *to, const DpValue *onto)
{
	Three three;
	int32 *from_of_to;
	int32 *from_of_onto;
	int32 *to_of_onto;
	bool *done;

	check_stack_depth();
	three_read(&three, from, to, onto);
	from_of_to = dp_members_align(&three.from, &three.to, false, false);
	from_of_onto = dp_members_align(&three.from, &three.onto, false, false);
	to_of_onto = dp_members_align(&three.to, &three.onto, false, false);
	done = palloc0(Max((Size) three.to.n, 1) * sizeof(bool));

	for (uint32 i = 0; i < three.onto.n; i++)
	{
		const DpElement *e = &three.onto.elements[i];
		const DpElement *old = from_of_onto[i] >= 0 ? &three.from.elements[from_of_onto[i]] : NULL;
		const DpElement *now = to_of_onto[i] >= 0 ? &three.to.elements[to_of_onto[i]] : NULL;

		if (now)
			done[to_of_onto[i]] = true;
		if (!now && !old)
			put(b, e);
		else if (now)
			carry_value(b, e, old ? &old->value : NULL, &now->value, &e->value);
		/* else it was taken away */
	}

	/* members that onto does not have: those that are new, and those that changed */
	for (uint32 j = 0; j < three.to.n; j++)
	{
		const DpElement *e = &three.to.elements[j];

		if (!done[j] && (from_of_to[j] < 0 ||
						 !dp_value_identical(&e->value, &three.from.elements[from_of_to[j]].value)))
			put(b, e);
	}
	three_free(&three);
	pfree(from_of_to);
	pfree(from_of_onto);
	pfree(to_of_onto);
	pfree(done);
}

/*
 * The same for an array.  The elements of from are the posts between which
 * those stand that only one of the others has.
 */
static void
carry_arrays(DpBuilder *b, const DpValue *from, const DpValue *to, const DpValue *onto)
{
	Three three;
	int32 *from_of_to;
	int32 *from_of_onto;
	uint32 i = 0; /* in onto */
	uint32 j = 0; /* in to */

	check_stack_depth();
	three_read(&three, from, to, onto);
	from_of_to = dp_members_align(&three.from, &three.to, true, true);
	from_of_onto = dp_members_align(&three.from, &three.onto, true, true);

	for (uint32 post = 0; post <= three.from.n; post++)
	{
		const DpElement *old;
		const DpElement *now = NULL;
		const DpElement *here = NULL;

		CHECK_FOR_INTERRUPTS();
		for (; i < three.onto.n && from_of_onto[i] < 0; i++)
			put(b, &three.onto.elements[i]);
		for (; j < three.to.n && from_of_to[j] < 0; j++)
			put(b, &three.to.elements[j]);
		if (post == three.from.n)
			break;
		old = &three.from.elements[post];
		if (i < three.onto.n && from_of_onto[i] == post)
			here = &three.onto.elements[i++];
		if (j < three.to.n && from_of_to[j] == post)
			now = &three.to.elements[j++];
		if (!now)
			continue; /* taken away */
		if (here)
			carry_value(b, here, &old->value, &now->value, &here->value);
		else if (!dp_value_identical(&old->value, &now->value))
			put(b, now);
	}
	three_free(&three);
	pfree(from_of_to);
	pfree(from_of_onto);
}

/*
 * Writes one value under a name: as in onto unless it changed; else changed inside if all are of
 * one kind; else the new value.
 */
static void
carry_value(DpBuilder *b, const DpElement *name, const DpValue *from, const DpValue *to,
			const DpValue *onto)
{
	if (from && dp_value_identical(from, to))
		to = onto;
	else if (from && dp_type_is_container(to->type) && from->type == to->type &&
			 onto->type == to->type && !dp_value_identical(from, onto))
	{
		dp_builder_begin_element(b, to->type, name->name, name->namelen);
		if (to->type == DP_TYPE_ARRAY)
		{
			dp_builder_begin_array(b);
			carry_arrays(b, from, to, onto);
		}
		else
		{
			dp_builder_begin_document(b);
			carry_documents(b, from, to, onto);
		}
		dp_builder_end(b);
		return;
	}
	dp_builder_append_value(b, name->name, name->namelen, to);
}

static void
three_read(Three *three, const DpValue *from, const DpValue *to, const DpValue *onto)
{
	DpIter iter;

	dp_iter_init_value(&iter, from);
	dp_members_read(&iter, &three->from);
	dp_iter_init_value(&iter, to);
	dp_members_read(&iter, &three->to);
	dp_iter_init_value(&iter, onto);
	dp_members_read(&iter, &three->onto);
}

static void
three_free(Three *three)
{
	pfree(three->from.elements);
	pfree(three->to.elements);
	pfree(three->onto.elements);
}

static inline void
put(DpBuilder *b, const DpElement *e)
{
	dp_builder_append_value(b, e->name, e->namelen, &e->value);
}
