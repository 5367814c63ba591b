/*
 * diff_align.c
 *		Matches elements of one container with those of another.
 *
 * Common elements at the end are matched first.  Of the rest, the elements of one side go into a
 * hash table, by name or by their bytes, and each of the other side takes the first free match.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "bson/builder.h"
#include "bson/diff_align.h"

/* Up to so many pairs are compared rather than hashed. */
#define FEW_PAIRS 64

/* Elements of one side by hash; those of a bucket are linked by their indexes, -1 ends. */
typedef struct Table
{
	uint32 mask;
	int32 *heads;
	int32 *next;
	uint32 *hashes;
} Table;

static inline bool same(const DpElement *a, const DpElement *b, bool is_array);
static uint32 hash_of(const DpElement *e, bool is_array);
static void claim_few(const DpMembers *from, const DpMembers *to, uint32 nfrom, uint32 nto,
					  bool is_array, int32 *match, bool *taken);
static void claim_many(const DpMembers *from, const DpMembers *to, uint32 nfrom, uint32 nto,
					   bool is_array, int32 *match, bool *taken);
static void keep_rising(int32 *match, uint32 n, bool *taken);

void
dp_members_read(DpIter *iter, DpMembers *members)
{
	uint32 cap = 16;

	members->n = 0;
	members->elements = palloc(cap * sizeof(DpElement));
	while (dp_iter_next(iter, &members->elements[members->n]))
	{
		if (++members->n == cap)
		{
			cap *= 2;
			members->elements = repalloc_huge(members->elements, (Size) cap * sizeof(DpElement));
			CHECK_FOR_INTERRUPTS();
		}
	}
}

bool
dp_array_is_plain(const DpValue *array)
{
	DpIter iter;
	DpElement e;
	uint32 index = 0;
	char digits[12];

	dp_iter_init_value(&iter, array);
	while (dp_iter_next(&iter, &e))
	{
		uint32 len = dp_index_name(index++, digits);

		if (e.namelen != len || memcmp(e.name, digits, len) != 0)
			return false;
	}
	return true;
}

int32 *
dp_members_align(const DpMembers *from, const DpMembers *to, bool is_array, bool monotone)
{
	uint32 nfrom = from->n;
	uint32 nto = to->n;
	int32 *match = palloc_extended(Max((Size) nto, 1) * sizeof(int32), MCXT_ALLOC_HUGE);
	bool *taken;

	/* what both have at the end */
	while (nfrom > 0 && nto > 0 &&
		   same(&from->elements[nfrom - 1], &to->elements[nto - 1], is_array))
	{
		match[nto - 1] = nfrom - 1;
		nfrom--;
		nto--;
	}
	for (uint32 j = 0; j < nto; j++)
		match[j] = -1;
	if (nfrom == 0 || nto == 0)
		return match;

	taken = palloc0((Size) nfrom * sizeof(bool));
	if ((uint64) nfrom * nto <= FEW_PAIRS)
		claim_few(from, to, nfrom, nto, is_array, match, taken);
	else
		claim_many(from, to, nfrom, nto, is_array, match, taken);
	if (monotone)
		keep_rising(match, nto, taken);

	/* of elements of arrays that nothing is the same as, the next one is a version */
	if (is_array)
	{
		uint32 next = 0;

		for (uint32 j = 0; j < nto; j++)
		{
			if (match[j] < 0 && next < nfrom && !taken[next])
			{
				match[j] = next;
				taken[next] = true;
			}
			if (match[j] >= 0)
				next = match[j] + 1;
		}
	}
	pfree(taken);
	return match;
}

/* Whether two elements are the same, in the sense of the container that they are in. */
static inline bool
same(const DpElement *a, const DpElement *b, bool is_array)
{
	return is_array ? dp_value_identical(&a->value, &b->value) : dp_member_same_name(a, b);
}

static uint32
hash_of(const DpElement *e, bool is_array)
{
	if (!is_array)
		return hash_bytes((const unsigned char *) e->name, e->namelen);
	return hash_bytes(e->value.data, e->value.len) ^ e->value.type;
}

/* Each element of to searches all of from. */
static void
claim_few(const DpMembers *from, const DpMembers *to, uint32 nfrom, uint32 nto, bool is_array,
		  int32 *match, bool *taken)
{
	for (uint32 j = 0; j < nto; j++)
	{
		for (uint32 i = 0; i < nfrom; i++)
		{
			if (!taken[i] && same(&from->elements[i], &to->elements[j], is_array))
			{
				match[j] = i;
				taken[i] = true;
				break;
			}
		}
	}
}

/* The same by hashes. */
static void
claim_many(const DpMembers *from, const DpMembers *to, uint32 nfrom, uint32 nto, bool is_array,
		   int32 *match, bool *taken)
{
	Table table;
	uint32 buckets = pg_nextpower2_32(Max(nfrom, 16));

	table.mask = buckets - 1;
	table.heads = palloc_extended((Size) buckets * sizeof(int32), MCXT_ALLOC_HUGE);
	memset(table.heads, 0xFF, (Size) buckets * sizeof(int32));
	table.next = palloc_extended((Size) nfrom * sizeof(int32), MCXT_ALLOC_HUGE);
	table.hashes = palloc_extended((Size) nfrom * sizeof(uint32), MCXT_ALLOC_HUGE);
	for (int32 i = nfrom - 1; i >= 0; i--)
	{
		uint32 hash = hash_of(&from->elements[i], is_array);

		table.hashes[i] = hash;
		table.next[i] = table.heads[hash & table.mask];
		table.heads[hash & table.mask] = i;
	}
	for (uint32 j = 0; j < nto; j++)
	{
		uint32 hash = hash_of(&to->elements[j], is_array);
		int32 *link = &table.heads[hash & table.mask];

		CHECK_FOR_INTERRUPTS();
		for (; *link >= 0; link = &table.next[*link])
		{
			int32 i = *link;

			if (table.hashes[i] == hash && same(&from->elements[i], &to->elements[j], is_array))
			{
				match[j] = i;
				taken[i] = true;
				*link = table.next[i]; /* so that many of the same stay cheap */
				break;
			}
		}
	}
	pfree(table.heads);
	pfree(table.next);
	pfree(table.hashes);
}

/*
 * Gives up matches until the others rise: what is left is a longest rising
 * subsequence.
 */
static void
keep_rising(int32 *match, uint32 n, bool *taken)
{
	uint32 *ends = palloc_extended((Size) n * sizeof(uint32), MCXT_ALLOC_HUGE);
	int32 *before = palloc_extended((Size) n * sizeof(int32), MCXT_ALLOC_HUGE);
	uint32 len = 0;
	int32 j;

	/* ends[k] is where the rising sequence of k + 1 matches with the least end ends */
	for (uint32 at = 0; at < n; at++)
	{
		uint32 low = 0, high = len;

		if (match[at] < 0)
			continue;
		while (low < high)
		{
			uint32 mid = (low + high) / 2;

			if (match[ends[mid]] < match[at])
				low = mid + 1;
			else
				high = mid;
		}
		before[at] = low > 0 ? (int32) ends[low - 1] : -1;
		ends[low] = at;
		if (low == len)
			len++;
	}
	j = len > 0 ? (int32) ends[len - 1] : -1;
	for (int32 at = (int32) n - 1; at >= 0; at--)
	{
		if (at == j)
			j = before[at];
		else if (match[at] >= 0)
		{
			taken[match[at]] = false;
			match[at] = -1;
		}
	}
	pfree(ends);
	pfree(before);
}
