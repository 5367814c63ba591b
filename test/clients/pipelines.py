"""Random pipelines on random collections, compared with a model of MongoDB's. TAP.

Each pipeline runs in FROM, in the SELECT list, as the text of collection_aggregate_sql() and
without some kinds of plans. Options are in the environment:

  SEED=n PIPELINES=n   other pipelines, more of them (300)
  ONLY=n               one of them
  SHOWN=n              how many differences to reduce and to show (5)
  MONGOMOCK=1          compares the model with mongomock, too

Both rows and an error are right where computing all fields raises an error that no later stage
reads: the tally counts these as "rows or an error". Rows that come must be the model's.
"""
import collections
import datetime
import importlib
import os
import random
import sys
import bson_psycopg
import pipeline_model as model
import psycopg
from decimal import Decimal
from bson import Decimal128, Int64
from bson.codec_options import CodecOptions
from pipeline_model import MISSING, Bag, Refused, Unsure

SEED = int(os.environ.get('SEED', 1))
PIPELINES = int(os.environ.get('PIPELINES', 300))
DAY = datetime.timedelta(days=1)
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
PLANS = ('enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off',
         'enable_hashagg = off; SET enable_hashjoin = off', 'enable_sort = off',
         'enable_seqscan = off', 'enable_nestloop = off; SET enable_memoize = off',
         'enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off')
INDEXES = ({'a': 1}, {'b': -1}, {'s': 1, 'b': -1}, {'o.x': 1}, {'t': 1}, {'l.k': 1}, {'g': 1},
           {'d': -1}, {'b': 1}, {'a': 1, 'b': 1})


# ---------------------------------------------------------------- documents

def wire(v):
    if isinstance(v, dict):
        return {name: wire(x) for name, x in v.items()}
    if isinstance(v, list):
        return [wire(x) for x in v]
    return Decimal128(v) if isinstance(v, Decimal) else v


def unwire(v):
    if isinstance(v, dict):
        return {name: unwire(x) for name, x in v.items()}
    if isinstance(v, list):
        return [unwire(x) for x in v]
    return v.to_decimal() if isinstance(v, Decimal128) else v


def any_number(r):
    n = r.randint(-3, 6)
    return r.choice((n, n, n, n / 4, n / 4, float(n), Int64(n), Decimal(n) / 10, 10**6 * n,
                     Int64(2**40 * n)))


def scalar(r):
    return r.choice((any_number(r), any_number(r), r.choice('abcAé'), None, r.random() < 0.5,
                     START + r.randint(0, 9) * DAY, r.choice((float('nan'), 'b', b'\1\2'))))


def maybe(r, chance, v):
    return v if r.random() < chance else MISSING


def document(r, i, mixed, others):
    number = any_number if mixed else lambda r: r.randint(-3, 6)
    made = {
        '_id': i if not mixed or i % 5 else r.choice((f'id{i}', i + 0.5, Int64(i))),
        'a': maybe(r, 0.8, scalar(r) if mixed else r.choice((None, 1, 2, 3, 4, 'x'))),
        'b': r.randint(-5, 10),
        'n': maybe(r, 0.9, number(r)),
        's': maybe(r, 0.8, r.choice(('ab', 'cd', 'b', '', 'Ab', 'é'))),
        't': maybe(r, 0.8, [scalar(r) if mixed else r.randint(0, 5)
                            for _ in range(r.randint(0, 4))] if r.random() < 0.85 else scalar(r)),
        'o': maybe(r, 0.8, {name: v for name, v in (
            ('x', maybe(r, 0.8, number(r))), ('y', maybe(r, 0.7, r.choice('pqr'))),
            ('z', maybe(r, 0.5, {'w': r.randint(0, 3)}))) if v is not MISSING}
            if r.random() < 0.9 or not mixed else scalar(r)),
        'l': maybe(r, 0.7, [{'k': r.randint(0, 3), 'v': number(r)}
                            for _ in range(r.randint(0, 3))]),
        'd': maybe(r, 0.7, START + datetime.timedelta(hours=r.randint(0, 200))),
        'f': maybe(r, 0.8, r.random() < 0.5),
        'g': r.randrange(others + 2)}
    names = list(made)
    if r.random() < 0.3:
        r.shuffle(names)
    return {name: made[name] for name in ['_id', *names] if made[name] is not MISSING}


# ---------------------------------------------------------------- pipelines

def has_bag(v):
    return isinstance(v, Bag) or isinstance(v, dict) and any(map(has_bag, v.values())) or \
        isinstance(v, list) and any(map(has_bag, v))


class Writer:
    """Writes stages that suit the documents that come."""

    def __init__(self, r, rows, names=()):
        self.r, self.rows, self.names = r, rows, names
        self.kinds = collections.defaultdict(set)
        self.samples = collections.defaultdict(list)
        for doc in rows.docs:
            self.learn('', doc, 0)
        self.paths = sorted(self.kinds) or ['b']

    def learn(self, prefix, v, depth):
        for name, x in v.items():
            path = prefix + name
            if isinstance(x, model.Poison) or '.' in name or name.startswith('$'):
                continue
            if not model.failed(x) and not has_bag(x):
                self.samples[path].append(x)
            self.kinds[path].add(model.kind(x))
            if isinstance(x, dict) and depth < 2:
                self.learn(path + '.', x, depth + 1)
            elif isinstance(x, list) and depth < 2:
                for item in x:
                    if isinstance(item, dict):
                        self.learn(path + '.', item, depth + 1)
                    self.kinds[path + '[]'].add(0 if isinstance(item, model.Poison)
                                                else model.kind(item))

    def of(self, *kinds):
        """A path with values of these kinds or null, or rarely any."""
        right = [p for p in self.paths if '[]' not in p and self.kinds[p] <= {0, 5, *kinds}]
        if not right or self.r.random() < 0.03:
            right = [p for p in self.paths if '[]' not in p]
        return self.r.choice(right or ['b'])

    def path(self):
        return self.of(-1, 10, 15, 20, 25, 30, 35, 40, 45, 127)

    def top(self):
        return self.path().split('.')[0]

    def value(self, path):
        """A constant: mostly one that is there."""
        found = self.samples[path]
        if found and self.r.random() < 0.8:
            v = self.r.choice(found)
            return self.r.choice(v) if isinstance(v, list) and v and self.r.random() < 0.7 else v
        return scalar(self.r)

    def pick(self, *choices):
        return self.r.choice(choices)()

    # expressions
    def literal(self, v):
        return {'$literal': v} if isinstance(v, (dict, list)) or isinstance(v, str) and '$' in v \
            else v

    def num(self, depth=2):
        r, sub = self.r, lambda: self.num(depth - 1)
        plain = [lambda: '$' + self.of(10), lambda: any_number(r),
                 *[lambda name=name: name for name in self.names]]
        if depth <= 0:
            return self.pick(*plain)
        return self.pick(
            *plain, lambda: {'$add': [sub(), sub()]}, lambda: {'$subtract': [sub(), sub()]},
            lambda: {'$multiply': [sub(), r.choice((2, 3, 0.5))]},
            lambda: {'$divide': [sub(), r.choice((2, 4, 0.5))]},
            lambda: {'$mod': [sub(), r.choice((2, 3, 5, Int64(4)))]},
            lambda: {r.choice(('$abs', '$floor', '$ceil', '$trunc')): sub()},
            lambda: {'$size': {'$ifNull': [self.arr(depth - 1), []]}},
            lambda: {'$strLenCP': {'$ifNull': [self.text(depth - 1), '']}},
            lambda: {r.choice(('$sum', '$avg', '$min', '$max')): [sub(), sub(), sub()]},
            lambda: {r.choice(('$sum', '$avg')): self.arr(depth - 1)},
            lambda: {r.choice(('$year', '$month', '$dayOfMonth')): '$' + self.of(45)},
            lambda: {'$cmp': [self.any(depth - 1), self.any(depth - 1)]},
            lambda: {'$cond': [self.truth(depth - 1), sub(), sub()]},
            lambda: {'$ifNull': [sub(), sub()]},
            lambda: {'$let': {'vars': {'q': sub()}, 'in': {'$add': ['$$q', sub()]}}},
            lambda: {'$reduce': {'input': self.arr(depth - 1), 'initialValue': 0,
                                 'in': {'$cond': [{'$isNumber': '$$this'},
                                                  {'$add': ['$$value', '$$this']}, '$$value']}}})

    def text(self, depth=2):
        r, sub = self.r, lambda: self.text(depth - 1)
        if depth <= 0:
            return self.pick(lambda: '$' + self.of(15), lambda: r.choice('abc'))
        return self.pick(
            lambda: '$' + self.of(15), lambda: {'$concat': [sub(), r.choice('-_'), sub()]},
            lambda: {r.choice(('$toUpper', '$toLower')): {'$ifNull': [sub(), 'e']}},
            lambda: {'$cond': [self.truth(depth - 1), sub(), sub()]},
            lambda: {'$switch': {'branches': [{'case': self.truth(depth - 1), 'then': sub()}],
                                 'default': 'none'}})

    def truth(self, depth=2):
        r, sub = self.r, lambda: self.truth(depth - 1)
        op = r.choice(('$eq', '$ne', '$gt', '$gte', '$lt', '$lte'))
        path = self.path()
        plain = [lambda: {op: ['$' + path, self.literal(self.value(path))]},
                 lambda: {op: [self.num(0), self.num(0)]},
                 lambda: {'$isArray': '$' + path}, lambda: {'$isNumber': '$' + path}]
        if depth <= 0:
            return self.pick(*plain)
        return self.pick(
            *plain, lambda: {op: [self.any(depth - 1), self.any(depth - 1)]},
            lambda: {'$and': [sub(), sub()]}, lambda: {'$or': [sub(), sub()]},
            lambda: {'$not': [sub()]}, lambda: '$' + self.path(),
            lambda: {'$in': [self.any(0), [self.num(0), 'ab', '$' + self.path()]]},
            lambda: {'$in': [self.num(0), {'$ifNull': [self.arr(0), []]}]})

    def arr(self, depth=2):
        r, sub = self.r, lambda: self.arr(depth - 1)
        if depth <= 0:
            return '$' + self.of(25)
        return self.pick(
            lambda: '$' + self.of(25), lambda: [self.any(depth - 1), self.any(depth - 1)],
            lambda: {'$filter': {'input': sub(), 'as': 'e',
                                 'cond': {r.choice(('$gt', '$ne', '$lte')): ['$$e', self.num(0)]}}},
            lambda: {'$map': {'input': sub(), 'in': r.choice((
                '$$this', ['$$this'], {'v': '$$this', 'k': '$' + self.path()}, '$$this.k'))}},
            lambda: {'$sortArray': {'input': sub(), 'sortBy': r.choice((1, -1))}},
            lambda: {'$slice': [sub(), r.choice((1, 2, -1, -2))]},
            lambda: {'$slice': [sub(), r.choice((0, 1, -2)), r.choice((1, 2))]},
            lambda: {'$reverseArray': [sub()]}, lambda: {'$concatArrays': [sub(), sub()]},
            lambda: {r.choice(('$setUnion', '$setIntersection', '$setDifference')):
                     [sub(), sub()]},
            lambda: {'$objectToArray': '$' + self.of(20)},
            lambda: {'$cond': [self.truth(depth - 1), sub(), sub()]})

    def any(self, depth=2):
        r = self.r
        return self.pick(
            lambda: '$' + self.path(), lambda: '$' + self.path(), lambda: self.num(depth),
            lambda: self.text(depth), lambda: self.truth(depth), lambda: self.arr(depth),
            lambda: {'p': '$' + self.path(), 'q': self.num(0)}, lambda: '$$ROOT.' + self.path(),
            lambda: self.literal(scalar(r)), lambda: {'$ifNull': ['$' + self.path(), 'none']},
            lambda: {'$mergeObjects': ['$' + self.of(20), {'m': self.num(0)}]},
            lambda: {r.choice(('$first', '$last')): [self.arr(max(depth - 1, 0))]},
            lambda: {'$arrayElemAt': [self.arr(max(depth - 1, 0)), r.choice((0, 1, -1))]},
            lambda: {'$cond': [self.truth(0), '$' + self.path(), '$$REMOVE']},
            lambda: {'$getField': self.top()})

    # filters
    def filter(self, depth=2):
        r, path = self.r, self.path()
        v = lambda: self.value(path)
        op = r.choice(('$gt', '$gte', '$lt', '$lte', '$ne', '$eq'))
        plain = [lambda: {path: v()}, lambda: {path: {op: v()}},
                 lambda: {path: {'$in': [v(), v(), v()]}}, lambda: {path: {'$nin': [v(), v()]}},
                 lambda: {path: {'$exists': r.random() < 0.5}},
                 lambda: {path: {'$gte': v(), '$lt': v()}},
                 lambda: {path: {'$not': {op: v()}}}, lambda: {path: {'$size': r.randint(0, 3)}},
                 lambda: {path: {'$elemMatch': {'$gte': r.randint(0, 4), '$lt': 6}}},
                 lambda: {path: {'$elemMatch': {'k': r.randint(0, 3)}}},
                 lambda: {'$expr': self.truth()}]
        if depth <= 0 or r.random() < 0.6:
            return self.pick(*plain)
        sub = lambda: self.filter(depth - 1)
        return self.pick(lambda: {'$and': [sub(), sub()]}, lambda: {'$or': [sub(), sub()]},
                         lambda: {'$nor': [sub(), sub()]}, lambda: {**sub(), **sub()})

    # accumulators
    def single(self):
        e = self.any(1)
        return {'$ifNull': [e, 0]} if isinstance(e, list) else e

    def accumulator(self):
        r, n = self.r, self.r.randint(1, 3)
        by = lambda: {self.path(): r.choice((1, -1)), '_id': 1}
        return self.pick(
            lambda: {'$sum': r.choice((1, self.num(1)))}, lambda: {'$sum': self.num()},
            lambda: {'$avg': self.num(1)}, lambda: {'$min': self.single()},
            lambda: {'$max': self.single()}, lambda: {'$push': self.single()},
            lambda: {'$addToSet': self.single()}, lambda: {'$count': {}},
            lambda: {r.choice(('$first', '$last')): self.single()},
            lambda: {r.choice(('$firstN', '$lastN')): {'input': '$' + self.path(), 'n': n}},
            lambda: {r.choice(('$minN', '$maxN')): {'input': '$' + self.path(), 'n': n}},
            lambda: {r.choice(('$top', '$bottom')): {'sortBy': by(), 'output': self.single()}},
            lambda: {r.choice(('$topN', '$bottomN')):
                     {'sortBy': by(), 'output': '$' + self.path(), 'n': n}},
            lambda: {r.choice(('$stdDevPop', '$stdDevSamp')): self.num(0)},
            lambda: {'$mergeObjects': '$' + self.of(20)}, lambda: {'$push': '$$ROOT'})

    def accumulators(self):
        return {name: self.accumulator() for name in self.r.sample('cmnuvw', self.r.randint(0, 3))}

    def order(self):
        r, spec = self.r, {}
        for _ in range(r.randint(1, 2)):
            spec[self.path()] = r.choice((1, -1))
        if r.random() < 0.6:
            spec.setdefault('_id', r.choice((1, -1)))
        names = list(spec)
        clash = any(a != b and (a + '.').startswith(b + '.') for a in names for b in names)
        return {names[0]: 1} if clash else spec

    def new_name(self):
        return self.r.choice(('p', 'q', 'b', 'n', 's', 't', 'o.x', 'o.new', 'a', 'u', self.top()))

    def fields(self):
        spec = {}
        for _ in range(self.r.randint(1, 3)):
            name = self.new_name()
            if not any((name + '.').startswith(x + '.') or (x + '.').startswith(name + '.')
                       for x in spec):
                spec[name] = self.any()
        return spec

    # stages
    def project(self):
        r = self.r
        picked = []
        for path in r.sample(self.paths, min(len(self.paths), r.randint(1, 4))):
            if '[]' not in path and path != '_id' and not any(
                    (x + '.').startswith(path + '.') or (path + '.').startswith(x + '.')
                    for x in picked):
                picked.append(path)
        if r.random() < 0.25 and picked:
            return {'$project': {path: 0 for path in picked}}
        spec = {path: 1 for path in picked}
        if r.random() < 0.6 or not spec:
            spec.update({name: e for name, e in self.fields().items() if '.' not in name and
                         not any(x.split('.')[0] == name for x in spec) and
                         model.rank(e) is None and not isinstance(e, bool)})
        if not any(path.startswith('_id.') for path in spec) and r.random() < 0.3 or not spec:
            spec['_id'] = 0
        return {'$project': spec}

    def group(self):
        by = self.pick(lambda: None, lambda: '$' + self.path(), lambda: '$' + self.path(),
                       lambda: {'x': '$' + self.path(), 'y': '$' + self.path()},
                       lambda: self.num(1), lambda: self.any(1))
        return {'$group': {'_id': by, **self.accumulators()}}

    def bucket(self):
        r, path = self.r, self.of(10)
        values = sorted({v for v in self.samples[path] if model.rank(v) == 0} | {0, 3})
        bounds = sorted(r.sample(values, min(len(values), r.randint(2, 4))))
        spec = {'groupBy': '$' + path, 'boundaries': bounds}
        if r.random() < 0.8:
            spec['default'] = r.choice(('rest', None, 10**9))
        if r.random() < 0.5:
            spec['output'] = self.accumulators() or {'c': {'$sum': 1}}
        return {'$bucket': spec}

    def bucket_auto(self):
        spec = {'groupBy': '$' + self.path(), 'buckets': self.r.randint(1, 5)}
        if self.r.random() < 0.5:
            spec['output'] = self.accumulators() or {'c': {'$sum': 1}}
        return {'$bucketAuto': spec}

    def unwind(self):
        r, path = self.r, '$' + self.of(25)
        if r.random() < 0.5:
            return {'$unwind': path}
        spec = {'path': path, 'preserveNullAndEmptyArrays': r.random() < 0.7}
        if r.random() < 0.4:
            spec['includeArrayIndex'] = r.choice(('i', 'b'))
        return {'$unwind': spec}

    def lookup(self):
        r = self.r
        spec = {'from': r.choice(('c1', 'c1', 'c0')), 'as': r.choice(('j', 'j', 'o', 'o.j'))}
        if r.random() < 0.7:
            spec.update(localField=r.choice(('g', 'b', self.path())),
                        foreignField=r.choice(('_id', '_id', 'b', 't', 'o.x', 'a', 'g', 'l.k')))
        if 'localField' not in spec or r.random() < 0.4:
            other = Writer(r, model.Rows(OTHERS[spec['from']]))
            stages = []
            if r.random() < 0.5:
                spec['let'] = {'v': self.num(1)}
                other.names = ('$$v',)
                stages.append({'$match': {'$expr': {r.choice(('$eq', '$lte', '$gt')):
                                                    ['$' + other.of(10), '$$v']}}})
            spec['pipeline'] = stages + [other.stage(inner=True) for _ in range(r.randint(0, 2))]
            if r.random() < 0.5:
                spec['pipeline'].append({'$sort': {'_id': 1}})
        after = self.pick(
            list, lambda: [{'$unwind': '$' + spec['as']}],
            lambda: [{'$unwind': {'path': '$' + spec['as'], 'preserveNullAndEmptyArrays': True}}],
            lambda: [{'$set': {spec['as']: {'$size': '$' + spec['as']}}}],
            lambda: [{'$set': {spec['as']: {'$sortArray': {'input': '$' + spec['as'],
                                                          'sortBy': {'_id': 1}}}}}])
        return [{'$lookup': spec}, *after]

    def graph_lookup(self):
        r = self.r
        spec = {'from': r.choice(('c1', 'c0')), 'as': 'j',
                'startWith': r.choice(('$g', '$b', '$' + self.path())),
                'connectFromField': r.choice(('g', 'b', 't')),
                'connectToField': r.choice(('_id', '_id', 'b'))}
        if r.random() < 0.5:
            spec['maxDepth'] = r.randint(0, 3)
        if r.random() < 0.5:
            spec['depthField'] = r.choice(('depth', 'b'))
        if r.random() < 0.3:
            spec['restrictSearchWithMatch'] = Writer(
                r, model.Rows(OTHERS[spec['from']])).filter(0)
            if '$expr' in spec['restrictSearchWithMatch']:
                del spec['restrictSearchWithMatch']
        return {'$graphLookup': spec}

    def union_with(self):
        r, name = self.r, self.r.choice(('c1', 'c1', 'c0'))
        other = Writer(r, model.Rows(OTHERS[name]))
        if r.random() < 0.3:
            return {'$unionWith': name}
        return {'$unionWith': {'coll': name, 'pipeline': [
            other.stage(inner=True) for _ in range(r.randint(0, 2))]}}

    def facet(self):
        return {'$facet': {name: [self.stage(inner=True) for _ in range(self.r.randint(1, 2))]
                           for name in self.r.sample('xyz', self.r.randint(1, 3))}}

    def window(self):
        r, spec = self.r, {}
        if r.random() < 0.7:
            spec['partitionBy'] = r.choice(('$' + self.path(), self.num(1), '$s'))
        by = self.of(10)
        spec['sortBy'] = {by: 1} if r.random() < 0.4 else \
            {'_id': r.choice((1, -1))} if r.random() < 0.5 else {by: r.choice((1, -1)), '_id': 1}
        one = len(spec['sortBy']) == 1
        bounds = lambda: r.choice((['unbounded', 'current'], [-1, 1], [-2, 0], ['current', 2],
                                   ['unbounded', 'unbounded'], [1, 2], [-3, -1], [-1, 'unbounded']))
        spec['output'] = {}
        for name in r.sample(('w', 'v', 'n', 'o.x'), r.randint(1, 2)):
            out = self.pick(
                lambda: {r.choice(('$sum', '$avg', '$min', '$max', '$stdDevPop')): self.num(1)},
                lambda: {r.choice(('$push', '$addToSet', '$first', '$last', '$min', '$max')):
                         self.single()},
                lambda: {'$count': {}},
                lambda: {r.choice(('$rank', '$denseRank', '$documentNumber')): {}} if one else
                {'$count': {}},
                lambda: {'$shift': {'output': self.single(), 'by': r.choice((-1, 1, 2)),
                                    **({'default': 'none'} if r.random() < 0.5 else {})}},
                lambda: {'$locf': '$' + self.path()},
                lambda: {'$linearFill': '$' + self.of(10)} if one else {'$locf': '$' + self.path()},
                lambda: {r.choice(('$firstN', '$lastN', '$minN', '$maxN')):
                         {'input': '$' + self.path(), 'n': 2}})
            op = next(iter(out))
            if op not in ('$documentNumber', '$rank', '$denseRank', '$shift', '$locf',
                          '$linearFill') and r.random() < 0.7:
                out['window'] = {'range': bounds()} if one and r.random() < 0.3 and \
                    list(spec['sortBy'].values()) == [1] else {'documents': bounds()}
            spec['output'][name] = out
        return {'$setWindowFields': spec}

    def densify(self):
        r, spec = self.r, {'field': self.of(10)}
        spec['range'] = {'step': r.choice((1, 2, 0.5)),
                         'bounds': r.choice(('full', 'partition', [0, 4], [-2, 3]))}
        if r.random() < 0.5:
            spec['partitionByFields'] = [r.choice(('s', 'f', self.top()))]
            if spec['partitionByFields'] == [spec['field'].split('.')[0]]:
                del spec['partitionByFields']
        if 'partitionByFields' not in spec and spec['range']['bounds'] == 'partition':
            spec['range']['bounds'] = 'full'
        return {'$densify': spec}

    def fill(self):
        r = self.r
        spec = {'sortBy': {r.choice(('_id', 'b', self.of(10))): 1}, 'output': {}}
        if r.random() < 0.5:
            spec['partitionBy'] = r.choice(('$s', '$f', '$' + self.path()))
        elif r.random() < 0.5:
            spec['partitionByFields'] = [r.choice(('s', 'f', 'o.y'))]
        for path in {self.of(10), self.path()}:
            spec['output'][path] = r.choice((
                {'value': self.literal(scalar(r))}, {'value': self.num(1)}, {'method': 'locf'},
                {'method': 'linear'}))
        names = list(spec['output'])
        if len(names) == 2 and ((names[0] + '.').startswith(names[1] + '.') or
                                (names[1] + '.').startswith(names[0] + '.')):
            del spec['output'][names[1]]
        return {'$fill': spec}

    def redact(self):
        verdict = lambda: self.r.choice(('$$DESCEND', '$$DESCEND', '$$PRUNE', '$$KEEP'))
        return {'$redact': self.pick(
            lambda: {'$cond': [self.truth(1), verdict(), verdict()]},
            lambda: {'$cond': {'if': {'$gt': ['$k', 1]}, 'then': '$$PRUNE', 'else': '$$DESCEND'}})}

    def replace(self):
        e = self.pick(lambda: '$' + self.of(20),
                      lambda: {'$mergeObjects': ['$$ROOT', {'q': self.num(1)}]},
                      lambda: {'$ifNull': ['$' + self.of(20), {'_id': '$_id'}]},
                      lambda: {'_id': '$' + self.path(), 'p': self.any(1)})
        return {'$replaceWith': e} if self.r.random() < 0.5 else {'$replaceRoot': {'newRoot': e}}

    def stage(self, inner=False):
        r = self.r
        simple = [lambda: {'$match': self.filter()}, lambda: {'$match': self.filter()},
                  self.project, lambda: {'$addFields': self.fields()},
                  lambda: {'$set': self.fields()}, lambda: {'$unset': [self.path()]},
                  self.replace, self.group, lambda: {'$sort': self.order()}, self.unwind,
                  lambda: {'$limit': r.randint(1, 8)}, lambda: {'$skip': r.randint(0, 4)},
                  lambda: {'$count': 'n'}, lambda: {'$sortByCount': '$' + self.path()},
                  self.redact, self.bucket_auto]
        if inner:
            return self.pick(*simple)
        return self.pick(*simple, self.group, self.group, self.bucket, lambda: self.unwind(),
                         lambda: {'$sort': self.order()}, self.lookup, self.lookup,
                         self.graph_lookup, self.union_with, self.facet, self.window, self.window,
                         self.densify, self.fill)


OTHERS = {}


def write_pipeline(r):
    """A pipeline and what the model makes of it; an error ends it."""
    stages, rows = [], model.Rows(OTHERS['c0'])
    length, tries = r.randint(1, 8), 0
    while len(stages) < length and tries < 40:
        tries += 1
        more = Writer(r, rows).stage()
        more = more if isinstance(more, list) else [more]
        try:
            now = rows
            for stage in more:
                poisoned = now.poisoned
                now = model.run([stage], now.docs, OTHERS, {}, now.ordered)
                now.poisoned |= poisoned
            if any(isinstance(doc, model.Poison) for doc in now.docs):
                raise Refused('a document that failed')
            if len(now.docs) > 200 or len(repr(now.docs)) > 40000:
                continue
        except Unsure:
            continue
        except Refused:
            if r.random() < 0.1:
                return stages + more
            continue
        stages, rows = stages + more, now
        if not rows.docs and r.random() < 0.8:
            break
    return stages


# ---------------------------------------------------------------- comparison

CODEC = CodecOptions(tz_aware=True)


def expected(stages):
    try:
        rows = model.run(stages, OTHERS['c0'], OTHERS)
        return None if model.failed(rows.docs) else rows
    except Refused:
        return None


def fill_table(conn, name, docs, indexes=()):
    conn.execute(f'DROP TABLE IF EXISTS {name} CASCADE')
    conn.execute('SELECT collection_create(%s)', [name])
    with conn.cursor() as cursor:
        cursor.executemany(f'INSERT INTO {name} (doc) VALUES (%s)', [[wire(d)] for d in docs])
    for index in indexes:
        conn.execute('SELECT collection_create_index(%s, %s)', [name, index])


def answer(conn, query, parameters, setting=None):
    """Documents, or the error."""
    try:
        with conn.transaction():
            if setting:
                conn.execute('SET LOCAL ' + setting.replace('SET ', 'SET LOCAL '))
            cursor = conn.execute(query, parameters, binary=True)
            return [unwire(doc) for doc, in cursor.fetchall()]
    except psycopg.Error as error:
        if error.sqlstate in (None, 'XX000', '57014'):
            raise
        return f'{error.sqlstate} {error}'


def differs(rows, seen, lax):
    if isinstance(seen, str) or rows is None:
        return not (isinstance(seen, str) and (rows is None or rows.poisoned))
    docs = rows.docs if rows.ordered else Bag(rows.docs)
    if model.same(docs, seen):
        return False
    return not (lax and model.same(docs, seen, True))


def ways(conn, stages, setting):
    parameters = [{'p': wire(stages)},
                  {'locale': 'en', 'strength': 1} if model.collated else None]
    call = "(%s, %s::bson -> 'p', collation => %s)"
    yield 'FROM', answer(conn, f"SELECT d FROM collection_aggregate{call} AS d",
                         ['c0', *parameters])
    yield 'SELECT', answer(conn, f'SELECT collection_aggregate{call}', ['c0', *parameters])
    try:
        query = conn.execute(f'SELECT collection_aggregate_sql{call}',
                             ['c0', *parameters]).fetchone()[0]
    except psycopg.Error as error:
        yield 'text', f'{error.sqlstate} {error}'
    else:
        yield 'text', answer(conn, query, None)
    yield setting, answer(conn, f"SELECT d FROM collection_aggregate{call} AS d",
                          ['c0', *parameters], setting)


GROUPING = {'$group', '$bucketAuto', '$sortByCount', '$addToSet', '$setUnion', '$setIntersection',
            '$setDifference', '$densify', '$min', '$max', '$minN', '$maxN', '$top', '$bottom',
            '$lookup', '$setWindowFields', '$fill', '$sortArray'}


def words(v):
    if isinstance(v, dict):
        return set(v).union(*map(words, v.values()))
    return set().union(*map(words, v)) if isinstance(v, list) else set()


def wrong(conn, stages, setting):
    """What is wrong: the way, what it gave and what is right; None if nothing is."""
    rows = expected(stages)
    lax = words(stages) & GROUPING
    for way, seen in ways(conn, stages, setting):
        if differs(rows, seen, lax):
            return way, seen, rows
    return None


def smaller(conn, stages, setting):
    """Leaves out stages and documents as long as something is wrong."""
    def still(new):
        try:
            return wrong(conn, new, setting)
        except Exception:
            return None
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(stages))):
            new = stages[:i] + stages[i + 1:]
            if new and still(new):
                stages, changed = new, True
    for name in ('c0', 'c1'):
        size = max(1, len(OTHERS[name]) // 2)
        while size:
            i = 0
            while i < len(OTHERS[name]):
                docs = OTHERS[name]
                OTHERS[name] = docs[:i] + docs[i + size:]
                fill_table(conn, name, OTHERS[name], INDEXED[name])
                if not still(stages):
                    OTHERS[name] = docs
                    fill_table(conn, name, docs, INDEXED[name])
                    i += size
            size //= 2
    return stages


INDEXED = {'c0': (), 'c1': ()}


def renew(conn, r):
    mixed, size = r.random() < 0.5, r.choice((0, 1, 3, 8, 15, 25))
    others = r.choice((0, 2, 6, 10))
    OTHERS['c0'] = [document(r, i, mixed, others) for i in range(size)]
    OTHERS['c1'] = [document(r, i, mixed, others) for i in range(others)]
    for name in OTHERS:
        INDEXED[name] = [] if r.random() < 0.4 else r.sample(INDEXES, r.randint(1, 4))
        fill_table(conn, name, OTHERS[name], INDEXED[name])
        if r.random() < 0.5:
            conn.execute(f'ANALYZE {name}')


# Where mongomock 4.1.2 is not MongoDB: $set keeps fields whose new value is missing, comparisons of
# missing values give nothing, $not takes its array as true, the default null of $bucket comes last,
# $sort compares arrays as wholes, $push leaves out nulls, documents in expressions ({p: ..}) vanish
# if a field is missing and take included fields as constants, true is 1, null matches no path below
# a number, arrays are no expressions, and so on.  It also makes documents of none and has fields in
# another order.
MONGOMOCK_ERRS = {'$addFields', '$addToSet', '$arrayElemAt', '$avg', '$bucket', '$cmp',
                  '$elemMatch', '$eq', '$gt', '$gte', '$in', '$lookup', '$lt', '$lte', '$ne',
                  '$nin', '$not', '$push', '$set', '$size', '$sort', '$sum', 'depthField',
                  'includeArrayIndex', 'p'}


def with_mongomock(mongomock, stages):
    db = mongomock.MongoClient(tz_aware=True).db
    for name, docs in OTHERS.items():
        if docs:
            db[name].insert_many([wire(d) for d in docs])
    try:
        return [unwire(d) for d in db['c0'].aggregate(wire(stages))]
    except Exception as error:
        return repr(error)


def by_name(v):
    """The value with its fields in the order of their names."""
    if isinstance(v, dict):
        return {name: by_name(v[name]) for name in sorted(v)}
    return type(v)(map(by_name, v)) if isinstance(v, list) else v


def main():
    print(f'# SEED={SEED} PIPELINES={PIPELINES}', flush=True)
    conn = psycopg.connect(autocommit=True)
    bson_psycopg.register(conn)
    conn.execute("SET jit = off; SET client_min_messages = warning; SET statement_timeout = '20s'")
    mongomock = importlib.import_module('mongomock') if os.environ.get('MONGOMOCK') else None
    bad = collections.Counter()
    tally, stage_tally = collections.Counter(), collections.Counter()
    for i in range(PIPELINES):
        if int(os.environ.get('ONLY', i)) // 20 != i // 20:
            continue
        r = random.Random(SEED * 10**6 + i)
        if i % 20 == 0 or not OTHERS:
            renew(conn, random.Random(SEED * 10**6 + i // 20 * 20 + 999999))
        stages = write_pipeline(r)
        if int(os.environ.get('ONLY', i)) != i:
            continue
        if not stages:
            tally['empty'] += 1
            continue
        setting = r.choice(PLANS)
        model.collated = i % 4 == 3
        try:
            rows = expected(stages)
            fault = wrong(conn, stages, setting)
        except Unsure as reason:
            tally[f'unsure: {reason}'] += 1
            continue
        except psycopg.Error as error:
            rows, fault = None, ('internal error', str(error), None)
            if conn.closed:
                print('# the server closed the connection', stages)
                conn = psycopg.connect(autocommit=True)
                bson_psycopg.register(conn)
        tally['pipelines'] += 1
        tally['errors'] += rows is None
        tally['rows or an error'] += bool(rows and rows.poisoned)
        tally['rows'] += len(rows.docs) if rows else 0
        stage_tally.update(next(iter(stage)) for stage in stages)
        if mongomock and rows and not (rows.poisoned or model.collated):
            seen = by_name(with_mongomock(mongomock, stages))
            verdict = 'mongomock refuses' if isinstance(seen, str) else \
                'mongomock agrees' if not differs(
                    model.Rows(by_name(rows.docs), rows.ordered), seen, True) else \
                'mongomock errs' if not rows.docs or words(stages) & MONGOMOCK_ERRS or any(
                    text in str(stages) for text in (': None', '[[', "'_id': [")) else \
                'mongomock differs'
            tally[verdict] += 1
            if verdict == 'mongomock differs':
                bad[i] += 1
                print(f'# SEED={SEED} ONLY={i} mongomock: {stages}\n#   {seen}\n#   {rows.docs}')
        if fault:
            bad[i] += 1
            print(f'# SEED={SEED} ONLY={i}: {fault[0]}')
            if len(bad) <= int(os.environ.get('SHOWN', 5)):
                small = smaller(conn, stages, setting) if fault[0] != 'internal error' else stages
                way, seen, rows = (fault if fault[0] == 'internal error' else None) or \
                    wrong(conn, small, setting)
                for name in OTHERS:
                    print(f'#   {name} {INDEXED[name]}:', *OTHERS[name], sep='\n#     ')
                print(f'#   {small}\n#   {way}: {seen}'.replace('\n', '\n#   '))
                print(f"#   model: {rows.docs if rows else 'an error'}", flush=True)
                renew(conn, random.Random(SEED * 10**6 + i // 20 * 20 + 999999))
    print('#', {**tally, 'different': len(bad)}, dict(stage_tally))
    print('not ok' if bad else 'ok', '1 - pipelines give what the model gives')
    print('1..1')
    sys.exit(bool(bad))


main()
