/*
 * fill.c
 *		Copies of other documents inside documents: finds references in a document
 *		and fills their copies.
 *
 * These functions read no tables: they get and return documents.  Other fields and
 * the order of fields stay; unchanged documents are not written.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "patterns/reference/reference.h"

/* A walk along the field's path */
typedef struct Walk
{
	const DpPath *field;
	const DpPath *id_field;
	DpRefSites *sites;
	const uint8 *element; /* the innermost array element that the walk is in */
} Walk;

/* The same for a document that is rewritten */
typedef struct Rebuild
{
	const DpPath *field;
	DpRefSites *sites;
	int next; /* the next site */
	DpBuilder b;
} Rebuild;

static void walk_into(Walk *w, const DpValue *container, int step, int depth);
static void walk_end(Walk *w, const DpValue *value, int depth);
static void site_add(Walk *w, const DpValue *value, int depth, bool is_element);
static bool value_at(const DpValue *container, const DpPath *path, DpValue *value);
static void copy_set(DpValue *copy, const DpPath *path, const DpValue *value);
static void copy_unset(DpValue *copy, const DpPath *path);
static DpValue bare_expanded(const DpPath *id_field, const DpValue *id);
static void rebuild_container(Rebuild *r, const DpValue *container, int step);
static void rebuild_end(Rebuild *r, const DpElement *element);
static bool rebuild_element(Rebuild *r, const DpValue *value);
static bool site_here(const Rebuild *r, const DpValue *value);

void
dp_ref_sites(const DpPath *field, const DpPath *id_field, const uint8 *doc, uint32 size,
			 DpRefSites *sites)
{
	Walk w;
	DpValue root;

	memset(sites, 0, sizeof(*sites));
	w.field = field;
	w.id_field = id_field;
	w.sites = sites;
	w.element = NULL;
	root.type = DP_TYPE_DOCUMENT;
	root.data = doc;
	root.len = size;
	walk_into(&w, &root, 0, 1);
}

/*
 * Walk on from a document or an array.  Of an array the elements that are
 * documents are walked through, as MongoDB does; an array inside an array is not.
 */
static void
walk_into(Walk *w, const DpValue *container, int step, int depth)
{
	const DpPathStep *name = &w->field->steps[step];
	DpValue value;

	if (container->type == DP_TYPE_ARRAY)
	{
		const uint8 *outer = w->element;
		DpIter iter;

		w->sites->met_array = true;
		dp_iter_init_value(&iter, container);
		while (dp_iter_next_value(&iter, &value))
		{
			if (value.type != DP_TYPE_DOCUMENT)
				continue;
			w->element = value.data;
			walk_into(w, &value, step, depth + 1);
		}
		w->element = outer;
		return;
	}
	if (!dp_document_find(container->data, container->len, name->name, name->namelen, &value))
		return;
	if (step == w->field->nsteps - 1)
		walk_end(w, &value, depth);
	else if (dp_type_is_container(value.type))
		walk_into(w, &value, step + 1, depth + 1);
}

/* The result of following the path: a site, or an array of sites */
static void
walk_end(Walk *w, const DpValue *value, int depth)
{
	const uint8 *outer = w->element;
	DpIter iter;
	DpValue element;

	if (value->type != DP_TYPE_ARRAY)
	{
		site_add(w, value, depth, false);
		return;
	}
	w->sites->met_array = true;
	dp_iter_init_value(&iter, value);
	while (dp_iter_next_value(&iter, &element))
	{
		w->element = element.data;
		site_add(w, &element, depth + 1, true);
	}
	w->element = outer;
}

/* Adds a site if the value is a reference. */
static void
site_add(Walk *w, const DpValue *value, int depth, bool is_element)
{
	DpRefSites *sites = w->sites;
	DpRefSite *site;
	DpValue id;
	bool bare = value->type != DP_TYPE_DOCUMENT;

	if (bare)
	{
		if (value->type == DP_TYPE_ARRAY)
			return;
		id = *value;
	}
	else if (!dp_document_find(value->data, value->len, w->id_field->steps[0].name,
							   w->id_field->steps[0].namelen, &id))
		return;
	if (id.type == DP_TYPE_NULL || id.type == DP_TYPE_UNDEFINED)
		return;

	if (sites->n == sites->cap)
	{
		sites->cap = sites->cap == 0 ? 4 : sites->cap * 2;
		sites->v = sites->v == NULL ? palloc(sizeof(DpRefSite) * sites->cap)
									: repalloc(sites->v, sizeof(DpRefSite) * sites->cap);
	}
	site = &sites->v[sites->n++];
	memset(site, 0, sizeof(*site));
	site->value = *value;
	site->id = id;
	site->bare = bare;
	site->depth = depth;
	site->element = w->element;
	site->is_element = is_element;
}

struct varlena *
dp_ref_extract(const DpReference *ref, const uint8 *doc, uint32 size)
{
	DpBuilder b;
	DpValue extract;
	DpValue value;
	bool nested = false;
	int i;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (i = 0; i < ref->nlive + ref->nfrozen; i++)
	{
		const DpPath *path = i < ref->nlive ? ref->live[i] : ref->frozen[i - ref->nlive];

		if (path->nsteps > 1)
			nested = true;
		else if (dp_path_find(doc, size, path, &value))
			dp_builder_append_value(&b, path->steps[0].name, path->steps[0].namelen, &value);
	}
	dp_builder_end(&b);
	if (!nested)
		return dp_builder_finish_bson(&b);

	/* paths into sub-documents are set one after the other */
	extract = dp_value_of_document(dp_builder_finish_bson(&b));
	for (i = 0; i < ref->nlive + ref->nfrozen; i++)
	{
		const DpPath *path = i < ref->nlive ? ref->live[i] : ref->frozen[i - ref->nlive];

		if (path->nsteps > 1 && dp_path_find(doc, size, path, &value))
			copy_set(&extract, path, &value);
	}
	return dp_document_to_varlena(extract.data, extract.len);
}

const DpRefSite **
dp_ref_match(const DpRefSites *after, const DpRefSites *before)
{
	const DpRefSite **match = palloc0(sizeof(DpRefSite *) * Max(after->n, 1));
	bool *used = palloc0(sizeof(bool) * Max(before->n, 1));
	int from = 0;
	int i;

	for (i = 0; i < Min(after->n, before->n); i++)
	{
		if (dp_value_compare(&after->v[i].id, &before->v[i].id) == 0)
		{
			match[i] = &before->v[i];
			used[i] = true;
		}
	}

	/* elements that have moved: the next one is most often the next there too */
	for (i = 0; i < after->n; i++)
	{
		int tried;

		if (match[i] != NULL)
			continue;
		CHECK_FOR_INTERRUPTS();
		for (tried = 0; tried < before->n; tried++)
		{
			int j = (from + tried) % before->n;

			if (!used[j] && dp_value_compare(&after->v[i].id, &before->v[j].id) == 0)
			{
				match[i] = &before->v[j];
				used[j] = true;
				from = j + 1;
				break;
			}
		}
	}
	pfree(used);
	return match;
}

bool
dp_ref_fill(const DpReference *ref, DpRefSite *site, const DpRefFill *fill)
{
	const DpPathStep *id_name = &ref->id_field->steps[0];
	DpValue copy = site->bare ? bare_expanded(ref->id_field, &site->id) : site->value;
	DpValue have;
	DpValue want;
	int i;

	if (fill->id != NULL &&
		!(dp_document_find(copy.data, copy.len, id_name->name, id_name->namelen, &have) &&
		  dp_value_identical(&have, fill->id)))
		copy_set(&copy, ref->id_field, fill->id);

	for (i = 0; i < ref->nlive && fill->extract != NULL; i++)
	{
		bool has = value_at(&copy, ref->live[i], &have);

		if (value_at(fill->extract, ref->live[i], &want))
		{
			if (!has || !dp_value_identical(&have, &want))
				copy_set(&copy, ref->live[i], &want);
		}
		else if (has)
			copy_unset(&copy, ref->live[i]);
	}

	/* no reference: remove the copy of the former source */
	for (i = 0; i < ref->nlive && fill->extract == NULL && fill->displaced != NULL &&
				!fill->displaced->bare;
		 i++)
	{
		if (value_at(&copy, ref->live[i], &have) &&
			value_at(&fill->displaced->value, ref->live[i], &want) &&
			dp_value_identical(&have, &want))
			copy_unset(&copy, ref->live[i]);
	}

	for (i = 0; i < ref->nfrozen; i++)
	{
		const DpPath *path = ref->frozen[i];
		bool has = value_at(&copy, path, &have);

		if (fill->before != NULL)
		{
			/* a kept reference keeps its copy, or the one in the new document */
			if (!has && !fill->before->bare && value_at(&fill->before->value, path, &want))
				copy_set(&copy, path, &want);
			continue;
		}
		if (!fill->freeze)
			continue;
		if (has && fill->displaced != NULL && !fill->displaced->bare &&
			value_at(&fill->displaced->value, path, &want) && dp_value_identical(&have, &want))
		{
			/* the values of the old reference were kept when the id changed */
			copy_unset(&copy, path);
			has = false;
		}
		if (!has && fill->extract != NULL && value_at(fill->extract, path, &want))
			copy_set(&copy, path, &want);
	}

	if (copy.data == site->value.data)
		return false;
	dp_check_depth(site->depth, &copy);
	site->action = DP_REF_REPLACE;
	site->replacement = copy;
	return true;
}

const DpPath *
dp_ref_wrong(const DpReference *ref, const DpRefSite *site, const DpValue *extract)
{
	int i;

	for (i = 0; i < ref->nlive; i++)
	{
		DpValue have;
		DpValue want;
		bool has = !site->bare && value_at(&site->value, ref->live[i], &have);

		if (value_at(extract, ref->live[i], &want) ? !has || !dp_value_identical(&have, &want)
												   : has)
			return ref->live[i];
	}
	return NULL;
}

/* Returns the value at a path of names in a copy or an extract. */
static bool
value_at(const DpValue *container, const DpPath *path, DpValue *value)
{
	int i;

	*value = *container;
	for (i = 0; i < path->nsteps; i++)
	{
		if (value->type != DP_TYPE_DOCUMENT ||
			!dp_document_find(value->data, value->len, path->steps[i].name, path->steps[i].namelen,
							  value))
			return false;
	}
	return true;
}

/*
 * Sets a field of a copy, which becomes a new one. A value along the path that is not a document
 * is replaced.
 */
static void
copy_set(DpValue *copy, const DpPath *path, const DpValue *value)
{
	DpValue v = *copy;
	int i;

	for (i = 0; i < path->nsteps - 1; i++)
	{
		if (!dp_document_find(v.data, v.len, path->steps[i].name, path->steps[i].namelen, &v))
			break;
		if (v.type != DP_TYPE_DOCUMENT)
		{
			DpPath *prefix = palloc(offsetof(DpPath, steps) + sizeof(DpPathStep) * (i + 1));

			memcpy(prefix, path, offsetof(DpPath, steps) + sizeof(DpPathStep) * (i + 1));
			prefix->nsteps = i + 1;
			copy_unset(copy, prefix);
			pfree(prefix);
			break;
		}
	}
	*copy = dp_value_of_varlena(dp_value_set_if(copy, path, value, true));
}

/* Removes an existing field from a copy, which becomes a new one. */
static void
copy_unset(DpValue *copy, const DpPath *path)
{
	struct varlena *without = dp_value_unset(copy, path);

	if (without != NULL)
		*copy = dp_value_of_varlena(without);
}

/* Returns the sub-document for a bare id. */
static DpValue
bare_expanded(const DpPath *id_field, const DpValue *id)
{
	DpBuilder b;

	dp_builder_init_value(&b, id->len + id_field->steps[0].namelen + 16);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, id_field->steps[0].name, id_field->steps[0].namelen, id);
	dp_builder_end(&b);
	return dp_value_of_varlena(dp_builder_finish_value(&b, DP_TYPE_DOCUMENT));
}

struct varlena *
dp_ref_rebuild(const DpReference *ref, const uint8 *doc, uint32 size, DpRefSites *sites)
{
	Rebuild r;
	DpValue root;

	if (sites->n == 1 && !sites->met_array && sites->v[0].action == DP_REF_REPLACE)
		return dp_document_set(doc, size, ref->field, &sites->v[0].replacement);

	r.field = ref->field;
	r.sites = sites;
	r.next = 0;
	dp_builder_init(&r.b, size + 64);
	root.type = DP_TYPE_DOCUMENT;
	root.data = doc;
	root.len = size;
	dp_builder_begin_document(&r.b);
	rebuild_container(&r, &root, 0);
	dp_builder_end(&r.b);
	return dp_builder_finish_bson(&r.b);
}

/*
 * Append the elements of a document or an array, which is open in the builder,
 * as walk_into() walked through it.
 */
static void
rebuild_container(Rebuild *r, const DpValue *container, int step)
{
	const DpPathStep *name = &r->field->steps[step];
	bool found = false;
	DpIter iter;
	DpElement e;

	dp_iter_init_value(&iter, container);
	while (dp_iter_next(&iter, &e))
	{
		if (container->type == DP_TYPE_ARRAY)
		{
			if (e.value.type != DP_TYPE_DOCUMENT)
				dp_builder_append_value(&r->b, NULL, 0, &e.value);
			else if (!rebuild_element(r, &e.value))
			{
				dp_builder_begin_document_field(&r->b, NULL, 0);
				rebuild_container(r, &e.value, step);
				dp_builder_end(&r->b);
			}
		}
		else if (found || e.namelen != name->namelen ||
				 memcmp(e.name, name->name, name->namelen) != 0)
			dp_builder_append_value(&r->b, e.name, e.namelen, &e.value);
		else
		{
			found = true;
			if (step == r->field->nsteps - 1)
				rebuild_end(r, &e);
			else if (dp_type_is_container(e.value.type))
			{
				if (e.value.type == DP_TYPE_ARRAY)
					dp_builder_begin_array_field(&r->b, e.name, e.namelen);
				else
					dp_builder_begin_document_field(&r->b, e.name, e.namelen);
				rebuild_container(r, &e.value, step + 1);
				dp_builder_end(&r->b);
			}
			else
				dp_builder_append_value(&r->b, e.name, e.namelen, &e.value);
		}
	}
}

/* Appends the value at the end of the path, as walk_end() found it. */
static void
rebuild_end(Rebuild *r, const DpElement *element)
{
	DpIter iter;
	DpValue value;

	if (element->value.type != DP_TYPE_ARRAY)
	{
		if (!site_here(r, &element->value))
			dp_builder_append_value(&r->b, element->name, element->namelen, &element->value);
		else
		{
			const DpRefSite *site = &r->sites->v[r->next++];

			if (site->action != DP_REF_REMOVE)
				dp_builder_append_value(&r->b, element->name, element->namelen,
										site->action == DP_REF_REPLACE ? &site->replacement
																	   : &element->value);
		}
		return;
	}
	dp_builder_begin_array_field(&r->b, element->name, element->namelen);
	dp_iter_init_value(&iter, &element->value);
	while (dp_iter_next_value(&iter, &value))
	{
		if (!site_here(r, &value))
			dp_builder_append_value(&r->b, NULL, 0, &value);
		else
		{
			const DpRefSite *site = &r->sites->v[r->next++];

			if (site->action != DP_REF_REMOVE)
				dp_builder_append_value(&r->b, NULL, 0,
										site->action == DP_REF_REPLACE ? &site->replacement
																	   : &value);
		}
	}
	dp_builder_end(&r->b);
}

/* Returns whether the site inside an element of an array removes the whole element. */
static bool
rebuild_element(Rebuild *r, const DpValue *value)
{
	const DpRefSite *site = r->next < r->sites->n ? &r->sites->v[r->next] : NULL;

	if (site == NULL || site->element != value->data || site->action != DP_REF_REMOVE ||
		!site->element_goes)
		return false;
	r->next++;
	return true;
}

/* Whether the next site is this value. */
static bool
site_here(const Rebuild *r, const DpValue *value)
{
	return r->next < r->sites->n && r->sites->v[r->next].value.data == value->data;
}
