// A shop on documents, as a program writes it: pg with docs/clients/bson_pg.mjs.
//
// 100,000 documents (SHOP_DOCUMENTS), six patterns, four writers at once, saves that conflict. TAP.
import { pipeline } from 'node:stream/promises'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import copy from 'pg-copy-streams'
import { bson, json, register, transaction } from './bson_pg.mjs'

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e6))
const scale = Math.floor(Number(process.env.SHOP_DOCUMENTS ?? 100000) / 100)
const [products, customers, reviews, orders, readings] = [10, 5, 30, 25, 30].map((n) => n * scale)
const start = Date.UTC(2024, 0), minute = 60000, day = 1440 * minute
const pool = new pg.Pool({ max: 6 })
let tests = 0

function ok(condition, name, ...seen) {
  console.log(`${condition ? 'ok' : 'not ok'} ${++tests} - ${name}`)
  if (!condition) seen.forEach((value) => console.log('#   ' + json(value)))
}

function random(state) {  // the same numbers for the same seed
  return (from, to) => {
    state = (state * 1103515245 + 12345) % 2147483648
    return from + Math.floor(state / 2147483648 * (to - from + 1))
  }
}
const pick = random(seed)

async function column(query, ...values) {
  return (await pool.query({ text: query, values, rowMode: 'array' })).rows.map((row) => row[0])
}
const one = async (query, ...values) => (await column(query, ...values))[0]
const product = (client, key) =>
  client.query('SELECT doc FROM products WHERE _id = $1', [key]).then((r) => r.rows[0].doc)
const save = (client, document) =>
  client.query('UPDATE products SET doc = $1 WHERE _id = $2', [bson(document), document._id])

async function load(table, count, make) {
  function* rows() {
    yield Buffer.from('PGCOPY\n\xff\r\n\0' + '\0'.repeat(8), 'latin1')
    for (let i = 0; i < count; i++) {
      const document = bson(make(i)), head = Buffer.from([0, 1, 0, 0, 0, 0])
      head.writeInt32BE(document.length, 2)
      yield Buffer.concat([head, document])
    }
    yield Buffer.from([255, 255])
  }
  await transaction(pool, (client) => pipeline(rows,
    client.query(copy.from(`COPY ${table} (doc) FROM STDIN (FORMAT BINARY)`))))
}

const review = (i, random) => ({ _id: i, product: random(0, products - 1), stars: random(1, 5),
  at: new Date(start + i * minute), text: 'word '.repeat(random(1, 30)) })
const order = (i, random) => ({ _id: i, customer: random(0, customers - 1),
  amount: random(1, 9), at: new Date(start + i % 365 * day) })

// Tables, patterns and documents. Product 7 has more buyers than fit.
async function build() {
  const types = {
    categories: 'text', products: 'int8', reviews: 'int8', customers: 'int8', orders: 'int8' }
  for (const [table, type] of Object.entries(types)) {
    await pool.query('SELECT collection_create($1, key_type => $2)', [table, type])
  }
  await pool.query(`SELECT tree_enable('categories', parent => 'parent', path => 'path')`)
  await load('categories', 40, (i) =>
    ({ _id: `c${i}`, parent: i ? `c${Math.floor((i - 1) / 3)}` : undefined }))
  await load('products', products, (i) => ({ _id: i, sku: String(10000 + i), stock: 0,
    price: pick(100, 9999) / 100, buyers: Array.from({ length: i === 7 ? 500 : 3 }, (_, n) => n) }))
  await load('reviews', reviews, (i) => review(i, pick))
  await pool.query(`SELECT subset_enable('products', field => 'reviews', source => 'reviews',
    on_field => 'product', order_by => '{at: -1}', keep => 3, fields => '{stars: 1, at: 1}',
    count_field => 'review_count')`)
  await pool.query(`SELECT outlier_enable('products', field => 'buyers', threshold => 100,
    count_field => 'buyer_count')`)
  await pool.query("SELECT versioning_enable('products')")
  for (const pattern of ['reviews', 'buyers', 'revision']) {
    await pool.query(`CALL pattern_build('products', '${pattern}')`)
  }
  await pool.query(`SELECT reference_enable('orders', field => 'customer', source => 'customers',
    live => '{name}')`)
  await pool.query(`SELECT rollup_enable('orders', name => 'orders_by', time_field => 'at',
    levels => '{day,month}', fields => '{sold: {$sum: "$amount"}, orders: {$count: {}}}')`)
  await pool.query(`SELECT bucket_create('readings', group_by => '{shop}', time_field => 'ts',
    columns => 'shop int, ts timestamptz, visitors int', span => '1 day')`)
  await load('customers', customers, (i) => ({ _id: i, name: `Customer ${i}` }))
  await load('orders', orders, (i) => order(i, pick))
  await pool.query(`INSERT INTO readings
    SELECT i % 10, $1::timestamptz + i / 10 * interval '1 min', i % 100
    FROM generate_series(0, $2 - 1) AS i`, [new Date(start), readings])
  await pool.query("SELECT collection_create_index('products', '{sku: 1}')")
  await pool.query('ANALYZE')
}

// What pages of the shop show.
async function pages() {
  let documents = 0
  for (const table of ['categories', 'products', 'reviews', 'customers', 'orders', 'readings']) {
    documents += Number(await one(`SELECT count(*) FROM ${table}`))
  }
  ok(documents === scale * 100 + 40, `${documents} documents are there`)

  const seven = await one("SELECT doc FROM products WHERE doc ->> 'sku' = $1", '10007')
  const mine = await column(`SELECT doc FROM reviews WHERE doc -> 'product' = 7
    ORDER BY doc -> 'at' DESC`)
  const shown = ({ at, stars }) => [at, stars]
  ok(isDeepStrictEqual(seven.reviews.map(shown), mine.slice(0, 3).map(shown)),
    'a product shows its newest reviews', seven, mine)
  ok(seven.review_count === mine.length, 'and their number', seven.review_count, mine.length)
  const [whole] = await column("SELECT collection_find('products', $1)", bson({ buyers: 499 }))
  ok(seven.buyers.length === 100 && seven.buyer_count === 500 && whole._id === 7 &&
    whole.buyers.length === 500, 'a bestseller keeps some buyers and has all', seven.buyers.length)
  await pool.query("SELECT outlier_push('products', 7, $1::int)", [500])
  ok(await one("SELECT outlier_contains('products', 7, $1::int)", 500), 'and gets another one')

  const path = (await one('SELECT doc FROM categories WHERE _id = $1', 'c39')).path
  ok(path === '.c0.c3.c12', 'a category knows its path', path)
  const march = await one(`SELECT sum((doc -> 'amount')::int) FROM orders
    WHERE doc -> 'at' >= $1::timestamptz AND doc -> 'at' < $2::timestamptz`,
  new Date('2024-03-01'), new Date('2024-04-01'))
  const rolled = await one("SELECT doc FROM orders_by WHERE doc @@ $1",
    bson({ level: 'month', start: new Date('2024-03-01') }))
  ok(Number(march) === rolled?.sold, 'a month knows what was sold', march, rolled)
  const visitors = await one('SELECT sum(visitors) FROM readings WHERE shop = $1', 3)
  const expected = Array.from({ length: readings / 10 }, (_, n) => (n * 10 + 3) % 100)
  ok(Number(visitors) === expected.reduce((a, b) => a + b), 'readings add up', visitors)
}

// Two sessions read a product. The second that saves has to read again.
async function conflict() {
  const old = await product(pool, 1), tries = []
  await transaction(pool, async (client) => {
    const document = await product(client, 1)
    if (!tries.length) await save(pool, { ...await product(pool, 1), price: 5.5 })
    tries.push(document.price)
    await save(client, { ...document, name: 'New' })
  })
  const now = await product(pool, 1)
  ok(isDeepStrictEqual(tries, [old.price, 5.5]), 'a save of an old document is tried again', tries)
  ok(now.name === 'New' && now.price === 5.5, 'and no save is lost', now)
  const refused = await save(pool, old).then(() => 'saved', (error) => error.code)
  ok(refused === '40001', 'a save of an old document is refused', refused)
}

// Each writer draws its own numbers; the saves of all go to five products.
async function write(number, rounds) {
  const mine = random(seed + number)
  const run = (query, ...values) =>
    transaction(pool, (client) => client.query(query, values), 'READ COMMITTED', 100)
  for (let i = 0; i < rounds; i++) {
    const key = mine(0, 4), id = 1e6 * number + i
    await transaction(pool, async (client) => {
      const document = await product(client, key)
      await save(client, { ...document, stock: document.stock + 1 })
    }, 'READ COMMITTED', 100)
    switch (mine(0, 6)) {
      case 0: await run('INSERT INTO reviews (doc) VALUES ($1)', bson(review(id, mine))); break
      case 1: await run('INSERT INTO orders (doc) VALUES ($1)', bson(order(id, mine))); break
      case 2: await run('DELETE FROM reviews WHERE _id = $1', mine(0, reviews - 1)); break
      case 3: await run("UPDATE customers SET doc['name'] = $1::text WHERE _id = $2",
        `Renamed ${i}`, mine(0, customers - 1)); break
      case 4: await run("SELECT outlier_push('products', $1, $2::int)", 7, id); break
      case 5: await run("SELECT tree_move('categories', $1, $2)",
        `c${mine(31, 39)}`, `c${mine(1, 12)}`); break
      case 6: await run('INSERT INTO readings VALUES ($1, $2, 1)', number,
        new Date(start + 400 * day + i * minute))
    }
  }
}

async function writers() {
  const rounds = 100, before = await one("SELECT sum((doc -> 'stock')::int) FROM products")
  const results = await Promise.allSettled([1, 2, 3, 4].map((n) => write(n, rounds)))
  const errors = results.filter((r) => r.reason).map((r) => r.reason.message)
  ok(!errors.length, 'four writers write at once', ...errors)
  const stock = await one("SELECT sum((doc -> 'stock')::int) FROM products") - before
  ok(stock === 4 * rounds, 'and each of their saves counts', stock)
}

async function consistent() {
  const { rows: wrong } = await pool.query('SELECT * FROM pattern_check()')
  ok(!wrong.length, 'what is declared is true', ...wrong.slice(0, 5))
  const differ = await column(`SELECT o._id FROM orders o
    JOIN customers c ON c._id = o.doc -> 'customer._id'
    WHERE o.doc ->> 'customer.name' <> c.doc ->> 'name'`)
  ok(!differ.length, 'orders have the names of their customers', differ.slice(0, 5))
  const rolled = await one(`SELECT sum((doc -> 'sold')::int) FROM orders_by
    WHERE doc ->> 'level' = 'day'`)
  const sold = await one("SELECT sum((doc -> 'amount')::int) FROM orders")
  ok(rolled === sold, 'days add up to all that was sold', rolled, sold)
}

console.log(`# SEED=${seed} SHOP_DOCUMENTS=${scale * 100}`)
await register(pool)
await build()
await pages()
await conflict()
await writers()
await consistent()
await pool.end()
console.log(`1..${tests}`)
