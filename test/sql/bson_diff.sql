-- How two documents differ.
\pset null '(nothing)'

-- Each path at which they do, as deep as both have documents or arrays
SELECT * FROM bson_diff('{_id: 1, holder: "Ada", cover: 1000, address: {city: "London", zip: "N1"}}',
                        '{_id: 1, holder: "Ada", cover: 2000, address: {city: "London", zip: "N2", street: "High St"}}');
SELECT * FROM bson_diff('{a: 1, b: 2}', '{b: 2, a: 1}');
SELECT * FROM bson_diff('{a: 1}', '{a: NumberLong(1), "x.y": {}}');
SELECT count(*) FROM bson_diff('{a: 1}', '{a: 1}');

-- Elements of arrays that stay are found again wherever they are
SELECT * FROM bson_diff('{tags: ["b", "c", "d"]}', '{tags: ["a", "b", "c", "e", "f"]}');
SELECT * FROM bson_diff('{lines: [{sku: 1, n: 1}, {sku: 2, n: 1}, {sku: 3, n: 1}]}', '{lines: [{sku: 1, n: 1}, {sku: 3, n: 5}]}');

-- A packed difference makes one of the other, byte for byte, and says only what is new
SELECT length(bson_diff_pack(a, b)) AS bytes, bson_diff_apply(bson_diff_pack(a, b), a) AS b
FROM (VALUES ('{_id: 1, text: "the quick brown fox jumps over the lazy dog", n: [1, 2, 3]}'::bson,
              '{_id: 1, text: "the quick brown cat jumps over the lazy dog", n: [0, 1, 2, 3]}'::bson)) AS v (a, b);
SELECT bson_diff_pack('{a: 1}', '{a: 1}') IS NULL AS nothing_to_say;
SELECT bson_diff_apply(bson_diff_pack('{a: 1}', '{a: 2}'), '{a: 3, b: 1}');

-- The same change made to a document that has more
SELECT bson_diff_carry('{name: "Anakin", phones: [{home: 1}, {mobile: 2}]}',
                       '{name: "Vader",  phones: [{home: 9}, {mobile: 2}, {fax: 3}]}',
                       '{v: 2, name: "Anakin", phones: [{home: 1}, {mobile: 2}, {twitter: "@DarthVader"}], rank: "Lord"}');
