/*
 * keys.c
 *		Index keys of documents that may be damaged: see keys.h.
 */
#include "shim.h"

#include "index/key.h"
#include "index/key_hash.h"

#include "keys.h"

static DpKeyPath paths[2];
static DpKeyPair pairs[2];

/* All paths; named ones and pairs, of names that the documents of the fuzzer have */
static DpKeyOptions options[2] = { { .all_paths = true },
								   { .npaths = lengthof(paths),
									 .nshort = 1,
									 .escape = 0xf0000000,
									 .paths = paths,
									 .npairs = lengthof(pairs),
									 .pairs = pairs } };

static void
name_path(DpKeyPath *path, const char *text)
{
	path->path = dp_path_parse(text, strlen(text));
	path->state = dp_key_steps(DP_KEY_ROOT, path->path, path->path->nsteps);
}

static void
name_pair(DpKeyPair *pair, const char *path, const char *first, const char *second)
{
	pair->path = dp_path_parse(path, strlen(path));
	pair->first = dp_path_parse(first, strlen(first));
	pair->second = dp_path_parse(second, strlen(second));
	pair->state = ~DP_KEY_ROOT;
}

const char *
fuzz_keys(const uint8 *doc, uint32 size, bool valid)
{
	if (FUZZ_TRY() != 0)
		return valid || fuzz_sqlstate != ERRCODE_DATA_CORRUPTED ? "extracting keys raises an error"
																: NULL;

	/* what is palloc'd does not live longer than a document */
	name_path(&paths[0], "a");
	name_path(&paths[1], "b.name");
	name_pair(&pairs[0], "a", "b", "name");
	name_pair(&pairs[1], "name", "a.b", "\"\"");
	for (int i = 0; i < lengthof(options); i++)
	{
		int32 nkeys;
		Datum *keys = dp_key_extract(doc, size, &options[i], &nkeys);

		for (int32 j = 0; j < nkeys; j++)
		{
			const DpIndexKey *key = (const DpIndexKey *) DatumGetPointer(keys[j]);

			if (!VARATT_IS_SHORT(key) || DP_KEY_LEN(key) < 1 || DP_KEY_LEN(key) > DP_KEY_SIZE ||
				dp_key_order(DP_KEY_DATA(key), DP_KEY_LEN(key), DP_KEY_DATA(key),
							 DP_KEY_LEN(key)) != 0)
				return "a key is none";
		}
	}
	return NULL;
}
