#!/usr/bin/python3
"""The CPU time of a program and its backend: psycopg 3 in binary, documents as dicts, beside jsonb.

Environment: that of the cluster; SCALE (percent of 100,000 documents of 300 bytes), ROUNDS. Both
sides take turns in each round. What Python needs to convert dicts is part of the times, except
where rows are made before. Prints median times, their ratio, the bar, and the spread of the ratio.
"""
import json
import os
import random
import statistics
import sys
import time
import bson
import psycopg
import pymongo
from psycopg.types.json import Jsonb
from psycopg.types.string import StrDumper

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../docs/clients'))
import bson_psycopg  # noqa: E402

COUNT = 1000 * int(os.environ.get('SCALE', 100))
ROUNDS = int(os.environ.get('ROUNDS', 5))
pick = random.Random(1)
documents = [{'_id': i, 'sku': str(10000 + i), 'name': f'Product {i}', 'price': pick.random() * 100,
              'stock': pick.randrange(1000), 'category': f'c{i % 40}',
              'tags': ['red', 'small', 'new'],
              'size': {'width': i % 100, 'height': i % 70, 'unit': 'cm'},
              'active': i % 3 == 0, 'text': 'word ' * 14} for i in range(COUNT)]

conn = psycopg.connect(autocommit=True)
bson_psycopg.register(conn)
conn.adapters.register_dumper(str, StrDumper)
conn.execute('DROP TABLE IF EXISTS client_bson, client_jsonb, client_books')
conn.execute('CREATE UNLOGGED TABLE client_bson (doc bson)')
conn.execute('CREATE UNLOGGED TABLE client_jsonb (doc jsonb)')
conn.execute("SELECT collection_create('client_books')")
conn.execute("SELECT collection_create_index('client_books', '{sku: 1}')")


def insert(table, wrap, documents=documents):
    def work():
        with conn.transaction(), conn.cursor() as cursor:
            cursor.adapters.register_dumper(Raw, RawDumper)
            cursor.executemany(f'INSERT INTO {table} VALUES (%b)', ([wrap(d)] for d in documents))
    return work


def copy(table, type_name, wrap, documents=documents):
    def work():
        with conn.cursor().copy(f'COPY {table} (doc) FROM STDIN (FORMAT BINARY)') as copy:
            copy.set_types([type_name])
            for document in documents:
                copy.write_row([wrap(document)])
    return work


class Raw(bytes):
    """A document's BSON, made beforehand."""


class RawDumper(psycopg.types.string.BytesBinaryDumper):
    oid = conn.adapters.types['bson'].oid


encoded = [Raw(bson.encode(d)) for d in documents]
dumped = [Jsonb(json.dumps(d), dumps=lambda text: text) for d in documents]


def read(table):
    def work():
        rows = conn.execute(f'SELECT doc FROM {table}', binary=True).fetchall()
        assert len(rows) == COUNT
    return work


def find(query, wrap):
    keys = [str(10000 + pick.randrange(COUNT)) for _ in range(max(COUNT // 50, 20))]

    def work():
        for key in keys:
            (doc,), = conn.execute(query, [wrap(key)], binary=True).fetchall()
            assert doc['sku'] == key
    return work


def cpu():
    with open(f'/proc/{conn.info.backend_pid}/schedstat') as backend:
        return time.process_time() + int(backend.read().split()[0]) / 1e9


def compare(name, bar, ours, theirs, before=None):
    times = ([], [])
    for _ in range(ROUNDS):
        for side, work in enumerate((theirs, ours)):
            if before:
                conn.execute(before)
            begin = cpu()
            work()
            times[side].append(cpu() - begin)
    theirs, ours = map(statistics.median, times)
    ratios = [b / a for a, b in zip(*times)]
    print(f'{name:44} {theirs * 1e3:9.0f} {ours * 1e3:9.0f} {ours / theirs:7.3f} {bar:6.2f}  '
          f'{"ABOVE" if ours / theirs > bar else "     "}  {min(ratios):.3f}-{max(ratios):.3f}')
    print(f'=\t{name}\t{ours / theirs:.4g}\t{bar}\tlow\t{min(ratios):.3f}\t{max(ratios):.3f}'
          f'\t{theirs * 1e3:.4g}\t{ours * 1e3:.4g}', flush=True)


print(f'Python {sys.version.split()[0]}, psycopg {psycopg.__version__} ({psycopg.pq.__impl__}), '
      f'pymongo {pymongo.version}')
print(f'{"operation":44}  plain ms    our ms   ratio    bar         spread of the ratio')
clear = 'TRUNCATE client_bson, client_jsonb'
same = lambda value: value  # noqa: E731
compare('INSERT by executemany, of rows made before', 1.0, insert('client_bson', same, encoded),
        insert('client_jsonb', same, dumped), clear)
compare('COPY in binary, of rows made before', 0.6, copy('client_bson', 'bytea', same, encoded),
        copy('client_jsonb', 'jsonb', same, dumped), clear)
compare('INSERT by executemany', 1.0, insert('client_bson', same), insert('client_jsonb', Jsonb),
        clear)
compare('COPY in binary', 0.6, copy('client_bson', 'bson', same),
        copy('client_jsonb', 'jsonb', Jsonb), clear)
conn.execute(clear)
copy('client_bson', 'bson', same)()
copy('client_jsonb', 'jsonb', Jsonb)()
compare('read all', 1.0, read('client_bson'), read('client_jsonb'))
copy('client_books', 'bson', same)()
conn.execute('ANALYZE client_books')
compare('collection_find by an index', 1.5,
        find("SELECT collection_find('client_books', %s)", lambda sku: {'sku': sku}),
        find("SELECT doc FROM client_books WHERE doc -> 'sku' = %s", same))
conn.execute('DROP TABLE client_bson, client_jsonb, client_books')
conn.close()
