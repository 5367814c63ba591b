"""Random commands on key-value structures, compared with a Redis server. TAP.

Each command is sent to both. Transactions are MULTI and EXEC there, and nothing where they are
rolled back here. Options are in the environment:

  SEED=n COMMANDS=n    other commands, more of them (5000)

Replies are compared, and now and then all that is stored. What is known to differ is not
generated: numbers have types here, and random members are others. Such a member is removed from
Redis, too.
"""
# Needs redis-server
import collections
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import psycopg

SEED = int(os.environ.get('SEED', 1))
COMMANDS = int(os.environ.get('COMMANDS', 5000))
KEYS = ['h1', 'h2', 's1', 's2', 's3', 'z1', 'z2', 'z3', 'any', 'any2', '', 'ключ', 'a*b', "it's"]
MEMBERS = [f'm{i}' for i in range(40)] + ['', 'a b', 'ü', 'Z', '~', '10', '9', '\\', "'"]
TEXTS = [f'f{i}' for i in range(6)] + ['ö']
COUNTS = ['n1', 'n2', 'n3']
SCORES = [*range(-5, 30)] * 3 + [0.25, 1.5, -2.75, 1e300, -1e-300, 0.1, 2**40] + ['inf', '-inf']
BOUNDS = [*range(-3, 20)] + ['(3', '(5', '(0.25', '-inf', '+inf', 'inf', '(inf', '(-inf', 1.5]
PATTERNS = ['*', 'z*', '?1', '[hs]?', '[^h]*', '*n*', 'any', '', 'a\\*b', 'клю*', '[a-z]*', '*1', 'a**b']
MEANING = {'WRONGTYPE': '42809', 'ERR no such key': 'P0002', 'ERR hash value is not': '42804',
           'ERR increment or decrement would': '22003', 'ERR resulting score is not': '22003',
           'ERR min or max is not': '22P02', 'ERR value is not a valid float': '22P02',
           'ERR GT, LT, and/or NX': '22023', 'ERR XX and NX': '22023', 'ERR invalid cursor': '22023'}


class Redis:
    """A server that ends with the program, and a connection to it."""

    def __init__(self, place):
        self.server = subprocess.Popen(
            ['redis-server', '--port', '0', '--unixsocket', f'{place}/socket', '--save', '',
             '--appendonly', 'no', '--dir', place], stdout=subprocess.DEVNULL)
        for _ in range(100):
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(f'{place}/socket')
                break
            except OSError:
                time.sleep(0.1)
        self.file = self.socket.makefile('rb')

    def __call__(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b'*%d\r\n' % len(words) + b''.join(
            b'$%d\r\n%s\r\n' % (len(word), word) for word in words))
        return self.reply()

    def reply(self):
        line = self.file.readline().decode()[:-2]
        kind, rest = line[0], line[1:]
        if kind == '$':
            return None if rest == '-1' else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == '*':
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == ':' else Fault(rest) if kind == '-' else rest


class Fault(str):
    pass


# ---------------------------------------------------------------- commands

def quote(value):
    return str(value) if isinstance(value, (int, float)) and value == value else \
        "'" + str(value).replace("'", "''") + "'"


def call(name, *args, take='SELECT {}'):
    """The statement that calls a function of a space."""
    return take.format(f"kv_{name}('s', {', '.join(quote(arg) for arg in args)})")


ROWS = 'SELECT member::text, score FROM {}'
TEXT = 'SELECT {}::text'
LIST = 'SELECT v::text FROM {} WITH ORDINALITY AS r (v, o) ORDER BY o'
FIELDS = 'SELECT key, value::text FROM bson_each({})'


def some(r, values, least=1, most=4):
    return [r.choice(values) for _ in range(r.randint(least, most))]


def key(r, letter=None):
    """Mostly a key of that kind, so that most commands find something."""
    keys = [k for k in KEYS if letter and k.startswith(letter)]
    return r.choice(keys if keys and r.random() < 0.85 else KEYS)


def command(r):
    """The words for Redis, the statement for PostgreSQL, and how replies are read."""
    def plain(form, name, *args, redis=None, take='SELECT {}'):
        return [*(redis or (name.upper(), *args))], call(name, *args, take=take), form

    def hashes():
        k, f = key(r, 'h'), r.choice(TEXTS + COUNTS)
        what = r.randrange(11)
        if what <= 1:
            pairs = [x for f in some(r, TEXTS + COUNTS) for x in (
                f, r.randint(-9, 9) if f in COUNTS else r.choice(MEMBERS[:40]))]
            return plain('int', 'hset', k, *pairs)
        if what == 2:
            return plain('int', 'hsetnx', k, f, r.randint(0, 9) if f in COUNTS else 'new')
        if what == 3:
            by = r.choice([1, -1, 5, 2**40, 2**63 - 1, -2**63])
            return plain('int', 'hincrby', k, f, by)
        if what == 4:
            return plain('int', 'hdel', k, *some(r, TEXTS + COUNTS))
        if what == 5:
            return plain('text', 'hget', k, f, take=TEXT)
        if what == 6:
            fields = some(r, TEXTS + COUNTS)
            return plain('list', 'hmget', k, *fields,
                         take='SELECT v::text FROM unnest({}) WITH ORDINALITY AS r (v, o) ORDER BY o')
        if what == 7:
            return plain('pairs', 'hgetall', k, take=FIELDS)
        if what == 8:
            return plain('set', *r.choice([('hkeys', k), ('hvals', k)]), take=LIST)
        return plain('int', *r.choice([('hlen', k), ('hexists', k, f)]))

    def sets():
        k, what = key(r, 's'), r.randrange(9)
        if what <= 2:
            return plain('int', 'sadd', k, *some(r, MEMBERS))
        if what == 3:
            return plain('int', 'srem', k, *some(r, MEMBERS, 1, 8))
        if what == 4:
            return plain('set', 'smembers', k, take=LIST)
        if what == 5:
            return plain('int', *r.choice([('scard', k), ('sismember', k, r.choice(MEMBERS))]))
        name = r.choice(['sinter', 'sunion', 'sdiff'])
        return plain('set', name, *[key(r, 's') for _ in range(r.randint(1, 3))], take=LIST)

    def sorted_sets():
        k, m, what = key(r, 'z'), r.choice(MEMBERS), r.randrange(20)
        low, high = r.choice(BOUNDS), r.choice(BOUNDS)
        start, stop = r.randint(-9, 9), r.randint(-9, 12)
        words = r.sample(['nx', 'xx', 'gt', 'lt', 'ch'], r.choice([0, 0, 0, 1, 1, 2]))
        if what <= 4:
            pairs = [x for m in some(r, MEMBERS, 1, 5) for x in (r.choice(SCORES), m)]
            return plain('int', 'zadd', k, *words, *pairs)
        if what == 5:
            words = [word for word in words if word != 'ch']
            by = r.choice(SCORES)
            return plain('float', 'zincrby', k, *words, by, m, redis=('ZADD', k, *words, 'INCR', by, m))
        if what == 6:
            return plain('int', 'zrem', k, *some(r, MEMBERS, 1, 6))
        if what == 7:
            return plain('float', 'zscore', k, m)
        if what == 8:
            return plain('int', *r.choice([('zcard', k), ('zcount', k, low, high)]))
        if what <= 10:
            return plain('int', r.choice(['zrank', 'zrevrank']), k, m)
        if what <= 12:
            name = r.choice(['zrange', 'zrevrange'])
            return plain('scores', name, k, start, stop, take=ROWS,
                         redis=(name.upper(), k, start, stop, 'WITHSCORES'))
        if what <= 14:
            name = r.choice(['zrangebyscore', 'zrevrangebyscore'])
            limit = r.choice([(), (), (r.randint(0, 3), r.randint(0, 5))])
            return plain('scores', name, k, low, high, *limit, take=ROWS, redis=(
                name.upper(), k, low, high, 'WITHSCORES', *(('LIMIT', *limit) if limit else ())))
        if what == 15:
            return plain('int', 'zremrangebyscore', k, low, high)
        if what == 16:
            return plain('int', 'zremrangebyrank', k, start, stop)
        if what == 17:
            name = r.choice(['zpopmin', 'zpopmax'])
            return plain('scores', name, k, r.randint(0, 3), take=ROWS)
        name, keys = r.choice(['zunionstore', 'zinterstore']), [key(r, r.choice('zzs')) for _ in '12']
        # an infinite score times 0 depends on the order of the keys in ZINTERSTORE
        weights = r.choices([1, 2, -0.5] + [0] * (name == 'zunionstore'), k=2)
        how = r.choice(['sum', 'min', 'max'])
        array = 'ARRAY[' + ', '.join(quote(k) for k in keys) + ']'
        return ([name.upper(), k, 2, *keys, 'WEIGHTS', *weights, 'AGGREGATE', how],
                f"SELECT kv_{name}('s', {quote(k)}, {array}, ARRAY{weights}, '{how}')", 'int')

    def keys():
        k, what = key(r), r.randrange(12)
        if what <= 1:
            return plain('none', 'rename', k, r.choice(KEYS))
        if what == 2:
            return plain('int', 'del', *some(r, KEYS, 1, 2))
        if what == 3:
            return plain('int', 'exists', *some(r, KEYS))
        if what == 4:
            return plain('text', 'type_of', k, redis=('TYPE', k))
        if what <= 6:
            return plain('int', 'expire', k, r.choice([100, 1000, 1000, 0, -1]))
        if what == 7:
            return plain('int', 'persist', k)
        if what <= 9:
            return plain('ttl', 'ttl', k)
        return plain('set', 'keys', r.choice(PATTERNS), take=LIST)

    return r.choices([hashes, sets, sorted_sets, keys], [25, 20, 40, 15])[0]()


# ---------------------------------------------------------------- replies

def read(form, reply):
    """A reply of Redis as it is compared."""
    if isinstance(reply, Fault):
        return next((state for text, state in MEANING.items() if reply.startswith(text)), reply)
    if form == 'none':
        return None
    if form == 'float' and reply is not None:
        return float(reply)
    if form == 'set':
        return collections.Counter(reply)
    if form == 'pairs':
        return dict(zip(reply[::2], reply[1::2]))
    if form == 'scores':
        return [(m, float(s)) for m, s in zip(reply[::2], reply[1::2])]
    return reply


def ask(conn, sql, form):
    """The reply of PostgreSQL in the same form."""
    try:
        rows = conn.execute(sql).fetchall()
    except psycopg.Error as error:
        if error.sqlstate is None or error.sqlstate.startswith('XX'):
            raise
        return error.sqlstate
    if form in ('list', 'set'):
        values = [row[0] for row in rows]
        return collections.Counter(values) if form == 'set' else values
    if form == 'pairs':
        return dict(rows)
    if form == 'scores':
        return [(m, float(s)) for m, s in rows]
    value = rows[0][0]
    return float(value) if form == 'float' and value is not None else \
        int(value) if isinstance(value, bool) else None if form == 'none' else value


def same(form, here, there):
    if form == 'ttl' and isinstance(here, int) and isinstance(there, int) and there > 0:
        return abs(here - there) <= 1
    return here == there


class Different(Exception):
    pass


def compare(words, sql, form, here, there):
    if not same(form, here, there):
        raise Different(f'{sql}\n{here}\nRedis: {" ".join(str(word) for word in words)}\n{there}')
    tally[words[0].lower() + ('' if not isinstance(here, str) or form == 'text' else '!')] += 1


def one(redis, conn, r):
    words, sql, form = command(r)
    here = ask(conn, sql, form)
    compare(words, sql, form, here, read(form, redis(*words)))


def transaction(redis, conn, r):
    """Several commands; an error ends that command only, as there."""
    level = r.choice(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])
    gone = r.random() < 0.4
    conn.execute(f'BEGIN ISOLATION LEVEL {level}')
    done = []
    for _ in range(r.randint(1, 8)):
        words, sql, form = command(r)
        conn.execute('SAVEPOINT a')
        here = ask(conn, sql, form)
        back = r.random() < 0.2
        failed = conn.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        conn.execute('ROLLBACK TO a' if back or failed else 'RELEASE a')
        if not back:
            done.append((words, sql, form, here))
    conn.execute('ROLLBACK' if gone else 'COMMIT')
    if gone:
        tally['rolled back'] += 1
        return
    redis('MULTI')
    for words, *_ in done:
        redis(*words)
    for (words, sql, form, here), reply in zip(done, redis('EXEC')):
        compare(words, sql, form, here, read(form, reply))
    tally['committed'] += 1


def random_members(redis, conn, r):
    k, take = key(r, 's'), r.randint(1, 3)
    pops = r.random() < 0.5
    name = 'spop' if pops else 'srandmember'
    if not pops:
        take = r.randint(-5, 5)
    words, sql = [name.upper(), k, take], call(name, k, take, take=LIST)
    here = ask(conn, sql, 'list')
    there = redis('SMEMBERS', k)
    if isinstance(there, Fault) or isinstance(here, str):
        return compare(words, sql, 'list', here, read('list', there))
    size = -take if there and take < 0 else min(take, len(there)) if take > 0 else 0
    if pops and here:
        redis('SREM', k, *here)
    compare(words, sql, 'list', (len(here), take < 0 or len(set(here)) == len(here), set(here) <= set(there)),
            (size, True, True))


def lapse(redis, conn, r):
    """A time to live that ends before the next command."""
    k = key(r)
    sql = f"SELECT kv_expire('s', {quote(k)}, 0.02)"
    compare(['PEXPIRE', k, 20], sql, 'int', ask(conn, sql, 'int'), redis('PEXPIRE', k, 20))
    time.sleep(0.03)
    if r.random() < 0.5:
        conn.execute("SELECT kv_purge('s')")


def scan(redis, conn, r):
    """All keys, in steps; other commands in between must not hide a key that stays."""
    pattern, take = r.choice(PATTERNS), r.randint(1, 5)
    here, cursor = [], '0'
    there = set(redis('KEYS', pattern))
    while True:
        cursor, keys = conn.execute('SELECT * FROM kv_scan(%s, %s, %s, %s::bigint)',
                                    ('s', cursor, pattern, take)).fetchone()
        here += keys
        if cursor == '0':
            break
        one(redis, conn, r)
        there &= set(redis('KEYS', pattern))
    compare(['SCAN', 'MATCH', pattern], 'SELECT kv_scan', 'set',
            (there <= set(here), len(here) == len(set(here))), (True, True))


def everything(redis, conn):
    """All that is stored."""
    for k in redis('KEYS', '*'):
        kind = redis('TYPE', k)
        for name, form, take, args, more in {
                'hash': [('hgetall', 'pairs', FIELDS, (), ())],
                'set': [('smembers', 'set', LIST, (), ())],
                'zset': [('zrange', 'scores', ROWS, (0, -1), ('WITHSCORES',)),
                         ('zcard', 'int', 'SELECT {}', (), ())]}[kind] + [
                             ('ttl', 'ttl', 'SELECT {}', (), ())]:
            words, sql = [name.upper(), k, *args, *more], call(name, k, *args, take=take)
            compare(words, sql, form, ask(conn, sql, form), read(form, redis(*words)))
    sql = call('keys', '*', take=LIST)
    compare(['KEYS', '*'], sql, 'set', ask(conn, sql, 'set'), read('set', redis('KEYS', '*')))
    faults = conn.execute('SELECT * FROM pattern_check()').fetchall()
    if faults:
        raise Different(f'pattern_check: {faults}')


def main():
    r = random.Random(SEED)
    print(f'# SEED={SEED} COMMANDS={COMMANDS}')
    fault = None
    with tempfile.TemporaryDirectory() as place:
        redis = Redis(place)
        try:
            conn = psycopg.connect(autocommit=True)
            conn.execute('SET docpatterns.kv_block_size = 16')
            conn.execute("SELECT kv_create('s')")
            checked = 0
            while sum(tally.values()) < COMMANDS:
                r.choices([one, transaction, random_members, scan, lapse], [800, 100, 50, 20, 2])[0](
                    redis, conn, r)
                if sum(tally.values()) // 1000 > checked:
                    checked += 1
                    everything(redis, conn)
            everything(redis, conn)
        except Different as found:
            fault = found
        finally:
            redis.server.terminate()
            redis.server.wait()
    print('#', sum(tally.values()), 'replies:', dict(sorted(tally.items())))
    if fault:
        print('# different:', *str(fault).split('\n'), sep='\n#   ')
    print('not ok' if fault else 'ok', '1 - replies are those of Redis')
    print('1..1')
    sys.exit(bool(fault))


tally = collections.Counter()
main()
