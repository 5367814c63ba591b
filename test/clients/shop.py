"""A shop on documents, as a program writes it: psycopg 3 with docs/clients/bson_psycopg.py.

100,000 documents (SHOP_DOCUMENTS), six patterns, four writers at once, saves that conflict. TAP.
"""
import collections
import datetime
import os
import random
import threading
import bson_psycopg
import psycopg
from psycopg.types.string import StrDumper

SEED = int(os.environ.get('SEED', random.randrange(10**6)))
SCALE = int(os.environ.get('SHOP_DOCUMENTS', 100000)) // 100
PRODUCTS, CUSTOMERS, REVIEWS, ORDERS, READINGS = (SCALE * n for n in (10, 5, 30, 25, 30))
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
pick = random.Random(SEED)
tests = 0


def ok(condition, name, *seen):
    global tests
    tests += 1
    print(f"{'ok' if condition else 'not ok'} {tests} - {name}")
    print(*[f'#   {value}\n' for value in seen if not condition], sep='', end='', flush=True)


def connect():
    conn = psycopg.connect(autocommit=True)
    bson_psycopg.register(conn)
    conn.adapters.register_dumper(str, StrDumper)
    return conn


def load(conn, table, documents):
    with conn.cursor().copy(f'COPY {table} (doc) FROM STDIN (FORMAT BINARY)') as copy:
        copy.set_types(['bson'])
        for document in documents:
            copy.write_row([document])


def column(conn, query, *parameters):
    return [value for value, in conn.execute(query, parameters)]


def one(conn, query, *parameters):
    return column(conn, query, *parameters)[0]


def new_review(i, random):
    return {'_id': i, 'product': random.randrange(PRODUCTS), 'stars': random.randint(1, 5),
            'at': START + datetime.timedelta(minutes=i), 'text': 'word ' * random.randint(1, 30)}


def new_order(i, random):
    return {'_id': i, 'customer': random.randrange(CUSTOMERS),
            'product': random.randrange(PRODUCTS), 'amount': random.randint(1, 9),
            'day': START + datetime.timedelta(days=i % 365)}


# Tables, documents that are there before their pattern, patterns, documents that come after.
def build(conn):
    for table in ('categories', 'products', 'reviews', 'customers', 'orders'):
        conn.execute('SELECT collection_create(%s)', [table])
    conn.execute("SELECT tree_enable('categories', parent => 'parent', ancestors => 'ancestors')")
    load(conn, 'categories', ({'_id': f'c{i}', **({'parent': f'c{(i - 1) // 3}'} if i else {})}
                              for i in range(40)))
    load(conn, 'products', ({'_id': i, 'sku': str(10000 + i), 'name': f'Product {i}', 'stock': 0,
                             'price': pick.randint(100, 9999) / 100, 'category': f'c{i % 40}'}
                            for i in range(PRODUCTS)))
    load(conn, 'reviews', (new_review(i, pick) for i in range(REVIEWS)))
    conn.execute("""SELECT subset_enable('products', field => 'reviews', source => 'reviews',
        on_field => 'product', order_by => '{at: -1}', keep => 3, fields => '{stars: 1, at: 1}',
        count_field => 'review_count')""")
    conn.execute("""SELECT computed_enable('products', source => 'orders', on_field => 'product',
        fields => '{sold: {$sum: "$amount"}, orders: {$count: {}}}')""")
    conn.execute("CALL pattern_build('products', 'reviews')")
    conn.execute("CALL pattern_build('products', 'sold')")
    conn.execute("SELECT versioning_enable('products')")
    conn.execute("CALL pattern_build('products', 'revision')")
    conn.execute("""SELECT reference_enable('orders', field => 'customer', source => 'customers',
        live => '{name}', frozen => '{address}')""")
    conn.execute("""SELECT bucket_create('readings', group_by => '{shop}', time_field => 'ts',
        columns => 'shop int, ts timestamptz, visitors int', span => '1 day')""")
    load(conn, 'customers', ({'_id': i, 'name': f'Customer {i}',
                              'address': {'city': f'City {i % 50}'}} for i in range(CUSTOMERS)))
    load(conn, 'orders', (new_order(i, pick) for i in range(ORDERS)))
    visitors = [(i % 10, START + datetime.timedelta(minutes=i // 10), pick.randint(0, 99))
                for i in range(READINGS)]
    with conn.cursor().copy('COPY readings FROM STDIN (FORMAT BINARY)') as copy:
        copy.set_types(['int4', 'timestamptz', 'int4'])
        for row in visitors:
            copy.write_row(row)
    for table, field in (('products', 'sku'), ('products', 'price'), ('orders', 'customer._id')):
        conn.execute('SELECT collection_create_index(%s, %s)', [table, {field: 1}])
    conn.execute('ANALYZE')
    return visitors


# What pages of the shop show.
def pages(conn, visitors):
    documents = sum(one(conn, f'SELECT count(*) FROM {table}') for table in
                    ('categories', 'products', 'reviews', 'customers', 'orders', 'readings'))
    ok(documents == SCALE * 100 + 40, f'{documents} documents are there', SCALE)

    product = one(conn, "SELECT doc FROM products WHERE doc ->> 'sku' = %s", '10007')
    mine = conn.execute("""SELECT doc -> 'at', doc -> 'stars' FROM reviews
        WHERE doc -> 'product' = 7 ORDER BY doc -> 'at' DESC""").fetchall()
    ok([(r['at'], r['stars']) for r in product['reviews']] == mine[:3] and
       product['review_count'] == len(mine), 'a product shows its newest reviews', product, mine)
    sold = one(conn, "SELECT sum(doc -> 'amount') FROM orders WHERE doc -> 'product' = 7")
    ok(product['sold'] == (sold or 0), 'and how many were sold', product['sold'], sold)

    order = one(conn, "SELECT doc FROM orders WHERE _id = %s", 3)
    customer = one(conn, "SELECT doc FROM customers WHERE _id = %s", order['customer']['_id'])
    ok(order['customer'] == {'_id': customer['_id'], 'name': customer['name'],
                             'address': customer['address']}, 'an order shows its customer', order)

    chain = one(conn, "SELECT doc FROM categories WHERE _id = %s", 'c39')['ancestors']
    ok(chain == ['c0', 'c3', 'c12'], 'a category knows its ancestors', chain)
    below = set(column(conn, """SELECT _id FROM categories
        WHERE tree_is_below(doc, 'ancestors', %s)""", 'c3'))
    ok(below == {f'c{i}' for i in (10, 11, 12, *range(31, 40))}, 'and what is below it', below)

    found = column(conn, "SELECT collection_find('products', %s, sort => %s, take => %s)",
                   {'price': {'$lt': 20}, 'category': {'$in': sorted(below)}}, {'price': -1}, 5)
    prices = column(conn, """SELECT (doc -> 'price')::float8 FROM products
        WHERE doc -> 'price' < %s AND doc ->> 'category' = ANY (%s)
        ORDER BY 1 DESC LIMIT 5""", 20, sorted(below))
    ok(prices and [p['price'] for p in found] == prices, 'a filter finds what SQL finds',
       found, prices)

    total = collections.Counter()
    for shop, _, n in visitors:
        total[shop] += n
    seen = dict(conn.execute('SELECT shop, sum(visitors) FROM readings GROUP BY shop').fetchall())
    ok(seen == total, 'readings add up', seen, total)


# Two sessions read a product. The second that saves has to read again.
def conflict(conn):
    other, tries = connect(), []

    def rename(conn):
        product = one(conn, 'SELECT doc FROM products WHERE _id = 1')
        if not tries:
            theirs = one(other, 'SELECT doc FROM products WHERE _id = 1')
            other.execute('UPDATE products SET doc = %s WHERE _id = 1', [{**theirs, 'price': 5.5}])
        tries.append(product['price'])
        conn.execute('UPDATE products SET doc = %s WHERE _id = 1', [{**product, 'name': 'New'}])

    old = one(conn, 'SELECT doc FROM products WHERE _id = 1')
    bson_psycopg.transaction(conn, rename)
    product = one(conn, 'SELECT doc FROM products WHERE _id = 1')
    ok(tries == [old['price'], 5.5], 'a save of an old document is tried again', tries)
    ok((product['name'], product['price']) == ('New', 5.5), 'and no save is lost', product)
    try:
        conn.execute('UPDATE products SET doc = %s WHERE _id = 1', [old])
        ok(False, 'a save of an old document is refused')
    except psycopg.errors.SerializationFailure:
        ok(True, 'a save of an old document is refused')
    history = column(conn, "SELECT revision FROM products_history WHERE key = %s ORDER BY 1", 1)
    ok(history == [1, 2, 3], 'the history has the three revisions', history)
    other.close()


# Each writer draws its own numbers; the saves of all go to five products.
def write(number, rounds, errors):
    conn, mine = connect(), random.Random(SEED + number)

    def save(conn):
        product = one(conn, 'SELECT doc FROM products WHERE _id = %s', key)
        product['stock'] += 1
        conn.execute('UPDATE products SET doc = %s WHERE _id = %s', [product, key])

    try:
        for i in range(rounds):
            key = mine.randrange(5)
            bson_psycopg.transaction(conn, save, 100)
            work = [('INSERT INTO reviews (doc) VALUES (%s)', new_review(10**6 * number + i, mine)),
                    ('INSERT INTO orders (doc) VALUES (%s)', new_order(10**6 * number + i, mine)),
                    ("DELETE FROM reviews WHERE _id = %s", mine.randrange(REVIEWS)),
                    ("UPDATE customers SET doc['name'] = %s WHERE _id = %s", f'Renamed {i}',
                     mine.randrange(CUSTOMERS)),
                    ("UPDATE orders SET doc['amount'] = %s WHERE _id = %s", mine.randint(1, 9),
                     mine.randrange(ORDERS)),
                    ("SELECT tree_move('categories', %s, %s)", f'c{mine.randint(31, 39)}',
                     f'c{mine.randint(1, 12)}'),
                    ('INSERT INTO readings VALUES (%s, %s, 1)', number,
                     START + datetime.timedelta(days=400, minutes=i))]
            query, *parameters = mine.choice(work)
            bson_psycopg.transaction(conn, lambda conn: conn.execute(query, parameters), 100)
    except Exception as error:
        errors.append(repr(error))
    conn.close()


def writers(conn):
    errors, rounds = [], 100
    before = one(conn, "SELECT sum((doc -> 'stock')::int) FROM products")
    threads = [threading.Thread(target=write, args=(n, rounds, errors)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ok(not errors, 'four writers write at once', *errors)
    stock = one(conn, "SELECT sum((doc -> 'stock')::int) FROM products") - before
    ok(stock == 4 * rounds, 'and each of their saves counts', stock)


def true(conn):
    wrong = conn.execute('SELECT * FROM pattern_check()').fetchall()
    ok(not wrong, 'what is declared is true', *wrong[:5])
    differ = column(conn, """SELECT p._id FROM products p
        LEFT JOIN (SELECT doc -> 'product' AS _id, sum((doc -> 'amount')::int) AS sold
                   FROM orders GROUP BY 1) o ON o._id = p._id
        LEFT JOIN (SELECT doc -> 'product' AS _id, count(*) AS reviews
                   FROM reviews GROUP BY 1) r ON r._id = p._id
        WHERE p.doc -> 'sold' <> coalesce(sold, 0)
          OR p.doc -> 'review_count' <> coalesce(reviews, 0)""")
    ok(not differ, 'totals and counts are those of plain SQL', differ[:5])
    differ = column(conn, """SELECT o._id FROM orders o
        JOIN customers c ON c._id = o.doc -> 'customer._id'
        WHERE o.doc ->> 'customer.name' <> c.doc ->> 'name'""")
    ok(not differ, 'orders have the names of their customers', differ[:5])


print(f'# SEED={SEED} SHOP_DOCUMENTS={SCALE * 100}')
conn = connect()
pages(conn, build(conn))
conflict(conn)
writers(conn)
true(conn)
conn.close()
print(f'1..{tests}')
