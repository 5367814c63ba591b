"""A model of MongoDB's aggregation pipelines on lists of dicts, from its documentation.

run(stages, docs, others) returns a Rows. Numbers are int (int32), Int64, float and Decimal.
An array whose order is not determined is a Bag. Unsure is raised where the documentation leaves
the result open, Refused where it asks for an error. A computed field or document that fails is a
Poison, because nothing has to compute what nothing reads.
"""
import datetime
import math
import unicodedata
from decimal import Context, Decimal
from fractions import Fraction
from bson import Int64, MaxKey, MinKey, ObjectId

DECIMAL = Context(prec=34)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MS = datetime.timedelta(milliseconds=1)


class Unsure(Exception):
    pass


class Refused(Exception):
    pass


class Missing:
    def __repr__(self):
        return 'MISSING'


class Poison:
    pass


class Bag(list):
    pass


MISSING = Missing()

LETTERS = ' _-,;:!?."()[]{}@*/&#%+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz'
collated = False


class Rows:
    def __init__(self, docs, ordered=False, poisoned=False):
        self.docs = docs
        self.sorted = ordered
        self.poisoned = poisoned

    @property
    def ordered(self):
        return self.sorted or len(self.docs) < 2


# ---------------------------------------------------------------- values

def null(v):
    return v is None or v is MISSING


def rank(v):
    """The type of a number, or None."""
    if isinstance(v, bool):
        return None
    return 3 if isinstance(v, Decimal) else 2 if isinstance(v, float) else \
        1 if isinstance(v, Int64) else 0 if isinstance(v, int) else None


def is_nan(v):
    return isinstance(v, float) and v != v or isinstance(v, Decimal) and v.is_nan()


def kind(v):
    """The place of a value's type in the order of types."""
    if rank(v) is not None:
        return 10
    for types, place in (((Missing,), 0), ((type(None),), 5), ((str,), 15), ((dict,), 20),
                         ((list,), 25), ((bytes,), 30), ((ObjectId,), 35), ((bool,), 40),
                         ((datetime.datetime,), 45), ((MinKey,), -1), ((MaxKey,), 127)):
        if isinstance(v, types):
            return place
    raise Refused('a value that failed')


def base_letters(s):
    """What compares as the string by {locale: 'en', strength: 1}."""
    letters = [c for c in unicodedata.normalize('NFD', s).lower() if not unicodedata.combining(c)]
    if not set(letters) <= set(LETTERS):
        raise Unsure('a letter whose place is not known')
    return tuple(map(LETTERS.index, letters))


def key(v):
    """What compares as the value."""
    place = kind(v)
    if place == 10:
        return (10, 0) if is_nan(v) else (10, 1, v)
    if place == 15:
        return 15, base_letters(v) if collated else v.encode()
    if place == 20:
        return 20, tuple((kind(x), name.encode(), key(x)) for name, x in v.items())
    if place == 25:
        if isinstance(v, Bag) and len(v) > 1:
            raise Unsure('the order of a bag')
        return 25, tuple(map(key, v))
    if place == 30:
        return 30, len(v), v
    if place in (35, 40, 45):
        return place, v
    return place,


def same(a, b, lax=False, near=1e-9):
    """Whether b, an answer, is a; lax leaves the types of numbers open."""
    if rank(a) is not None and rank(b) is not None:
        if not lax and rank(a) != rank(b):
            return False
        if is_nan(a) or is_nan(b):
            return is_nan(a) and is_nan(b)
        if a == b:
            return True
        return rank(a) > 1 and math.isclose(float(a), float(b), rel_tol=near, abs_tol=near)
    if isinstance(a, Poison) or isinstance(b, Poison) or kind(a) != kind(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name], lax) for name in a)
    if isinstance(a, Bag):
        return same_bag(a, b, lax)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y, lax) for x, y in zip(a, b))
    return a == b or lax and collated and key(a) == key(b)


def same_bag(a, b, lax=False):
    if len(a) != len(b):
        return False
    left = list(b)
    for x in a:
        for i, y in enumerate(left):
            if same(x, y, lax):
                del left[i]
                break
        else:
            return False
    return True


def number(place, v):
    """A number of the type, or of a wider one that holds it."""
    if place == 0 and not -2**31 <= v < 2**31:
        place = 1
    if place == 1 and not -2**63 <= v < 2**63:
        place = 2
    return (int, Int64, float, decimal)[place](v)


def decimal(v):
    return v if isinstance(v, Decimal) else Decimal('%.15g' % v if isinstance(v, float) else v)


def truth(v):
    return not (null(v) or v is False or rank(v) is not None and v == 0)


def failed(v):
    return isinstance(v, Poison) or isinstance(v, dict) and any(map(failed, v.values())) or \
        isinstance(v, list) and any(map(failed, v))


def step_into(v, parts):
    """A path of an expression."""
    if isinstance(v, Poison):
        return v
    for i, name in enumerate(parts):
        if isinstance(v, list):
            found = [step_into(x, parts[i:]) for x in v if isinstance(x, dict)]
            return type(v)(x for x in found if x is not MISSING)
        v = v.get(name, MISSING) if isinstance(v, dict) else MISSING
    return v


# ---------------------------------------------------------------- expressions

def variables(doc, let):
    return {**let, 'ROOT': doc, 'CURRENT': doc, 'REMOVE': MISSING}


def evaluate(e, names):
    if isinstance(e, str) and e.startswith('$'):
        if e.startswith('$$'):
            name, *parts = e[2:].split('.')
            v = step_into(names[name], parts)
        else:
            v = step_into(names['CURRENT'], e[1:].split('.'))
        if failed(v):
            raise Refused('a value that failed')
        return v
    if isinstance(e, dict):
        op = next(iter(e), '')
        if op.startswith('$'):
            return operator(op, e[op], names)
        made = {name: evaluate(x, names) for name, x in e.items()}
        return {name: x for name, x in made.items() if x is not MISSING}
    if isinstance(e, list):
        return [None if x is MISSING else x for x in (evaluate(x, names) for x in e)]
    return e


LISTS = {'$sum', '$avg', '$min', '$max', '$size', '$setUnion', '$isArray', '$in', '$ifNull',
         '$cond', '$first', '$last', '$concatArrays', '$let', '$literal', '$and', '$or', '$not',
         '$mergeObjects', '$reverseArray', '$filter', '$map', '$sortArray', '$isNumber', '$type'}


def operator(op, arg, names):
    if op == '$literal':
        return arg
    if op in SPECIAL:
        return SPECIAL[op](arg, names)
    args = []
    for x in arg if isinstance(arg, list) else [arg]:
        try:
            args.append(evaluate(x, names))
        except Refused:
            if any(map(null, args)):
                raise Unsure('null before an error')
            raise
    if op not in LISTS and any(isinstance(x, Bag) and len(x) > 1 for x in args):
        raise Unsure(op)
    return PLAIN[op](*args)


def cond(arg, names):
    test, yes, no = arg if isinstance(arg, list) else (arg['if'], arg['then'], arg['else'])
    return evaluate(yes if truth(evaluate(test, names)) else no, names)


def if_null(arg, names):
    for e in arg:
        v = evaluate(e, names)
        if not null(v):
            break
    return v


def switch(arg, names):
    for branch in arg['branches']:
        if truth(evaluate(branch['case'], names)):
            return evaluate(branch['then'], names)
    if 'default' not in arg:
        raise Refused('$switch')
    return evaluate(arg['default'], names)


def let(arg, names):
    return evaluate(arg['in'], {**names, **{name: evaluate(e, names)
                                            for name, e in arg['vars'].items()}})


def array(v, op):
    if null(v):
        return None
    if not isinstance(v, list):
        raise Refused(op)
    return v


def filter_array(arg, names):
    v = array(evaluate(arg['input'], names), '$filter')
    return v if v is None else type(v)(x for x in v if truth(evaluate(
        arg['cond'], {**names, arg.get('as', 'this'): x})))


def map_array(arg, names):
    v = array(evaluate(arg['input'], names), '$map')
    if v is None:
        return v
    made = [evaluate(arg['in'], {**names, arg.get('as', 'this'): x}) for x in v]
    return type(v)(None if x is MISSING else x for x in made)


def reduce_array(arg, names):
    v = array(evaluate(arg['input'], names), '$reduce')
    if v is None:
        return v
    if isinstance(v, Bag) and len(v) > 1:
        raise Unsure('$reduce')
    total = evaluate(arg['initialValue'], names)
    for x in v:
        total = evaluate(arg['in'], {**names, 'this': x, 'value': total})
    return total


def whole_value(doc, parts):
    """What $sortArray compares: arrays as wholes, unlike $sort."""
    v = step_into(doc, parts)
    return [None if v is MISSING else v]


def sort_array(arg, names):
    v = array(evaluate(arg['input'], names), '$sortArray')
    if v is None:
        return v
    by = arg['sortBy']
    if isinstance(by, dict):
        rows = sort(Rows(list(v)), by, whole_value)
        return list(rows.docs) if rows.ordered else Bag(rows.docs)
    return sorted(v, key=key, reverse=by < 0)


def get_field(arg, names):
    field, v = (arg, names['CURRENT']) if isinstance(arg, str) else \
        (arg['field'], evaluate(arg['input'], names))
    v = v.get(field, MISSING) if isinstance(v, dict) else None if v is None else MISSING
    return refuse('a value that failed') if failed(v) else v


def both(test):
    return lambda arg, names: test(truth(evaluate(e, names)) for e in arg)


SPECIAL = {'$cond': cond, '$ifNull': if_null, '$switch': switch, '$let': let,
           '$filter': filter_array, '$map': map_array, '$reduce': reduce_array,
           '$sortArray': sort_array, '$getField': get_field, '$and': both(all), '$or': both(any)}


def numbers(op, args):
    """The widest type, or None if one of the numbers is null."""
    if any(null(v) for v in args):
        return None
    if any(rank(v) is None for v in args):
        raise Refused(op)
    return max(map(rank, args))


def is_date(v):
    return isinstance(v, datetime.datetime)


def shift(v, ms):
    return v + datetime.timedelta(milliseconds=round(float(ms)))


def add(*args):
    dates = [v for v in args if is_date(v)]
    rest = [v for v in args if not is_date(v)]
    if any(null(v) for v in args):
        if any(not null(v) and not is_date(v) and rank(v) is None for v in args):
            raise Unsure('null before an error')
        return None
    if len(dates) > 1:
        raise Refused('$add')
    place = numbers('$add', rest) if rest else 0
    total = total_of(place, rest)
    return shift(dates[0], total) if dates else total


def total_of(place, values):
    if place == 3:
        total = Decimal(0)
        for v in values:
            total = DECIMAL.add(total, decimal(v))
        return total
    if place == 2:
        try:
            return math.fsum(values)
        except (ValueError, OverflowError):
            return float(sum(values))
    return number(place, sum(values))


def subtract(a, b):
    if null(a) or null(b):
        return None
    if is_date(a) and is_date(b):
        return Int64((a - b) // MS)
    if is_date(a) and rank(b) is not None:
        return shift(a, -b)
    place = numbers('$subtract', (a, b))
    return DECIMAL.subtract(decimal(a), decimal(b)) if place == 3 else \
        number(place, float(a) - float(b) if place == 2 else int(a) - int(b))


def multiply(*args):
    if any(null(v) for v in args):
        if any(not null(v) and rank(v) is None for v in args):
            raise Unsure('null before an error')
        return None
    place, product = numbers('$multiply', args), 1
    for v in args:
        product = DECIMAL.multiply(decimal(product), decimal(v)) if place == 3 else \
            float(product) * float(v) if place == 2 else product * v
    return number(place, product)


def divide(a, b):
    place = numbers('$divide', (a, b))
    if place is None:
        if not null(a) and rank(a) is None or not null(b) and rank(b) is None:
            raise Unsure('null before an error')
        return None
    if b == 0:
        raise Refused('$divide')
    return DECIMAL.divide(decimal(a), decimal(b)) if place == 3 else float(a) / float(b)


def mod(a, b):
    place = numbers('$mod', (a, b))
    if place is None:
        if not null(a) and rank(a) is None or not null(b) and rank(b) is None:
            raise Unsure('null before an error')
        return None
    if b == 0:
        raise Refused('$mod')
    if place == 3:
        return DECIMAL.remainder(decimal(a), decimal(b))
    try:
        result = math.fmod(a, b)
    except ValueError:
        result = math.nan
    return number(place, result if place == 2 else int(result))


def rounded(op, function):
    def call(v):
        place = numbers(op, (v,))
        if place is None or place < 2:
            return None if place is None else v
        return v if is_nan(v) or abs(v) == math.inf else \
            Decimal(function(v)) if place == 3 else float(function(v))
    return call


def absolute(v):
    place = numbers('$abs', (v,))
    return None if place is None else number(place, abs(v))


def compare(test):
    def call(a, b):
        a, b = key(a), key(b)
        return test((a > b) - (a < b))
    return call


def concat(*args):
    if any(not null(v) and not isinstance(v, str) for v in args):
        if any(null(v) for v in args):
            raise Unsure('null before an error')
        raise Refused('$concat')
    return None if any(null(v) for v in args) else ''.join(args)


def text(function):
    def call(v):
        if null(v):
            return ''
        if not isinstance(v, str):
            raise (Unsure if rank(v) is not None or is_date(v) else Refused)('text')
        return function(v)
    return call


def str_len(v):
    if not isinstance(v, str):
        raise Refused('$strLenCP')
    return len(v)


def size(v):
    if not isinstance(v, list):
        raise Refused('$size')
    return len(v)


def array_elem_at(v, i):
    if null(v) or null(i):
        return None
    if not isinstance(v, list) or rank(i) is None or i != int(i):
        raise Refused('$arrayElemAt')
    return v[int(i)] if -len(v) <= i < len(v) else MISSING


def end_of(i):
    def call(v):
        if null(v):
            return None
        if isinstance(v, Bag) and len(v) > 1:
            raise Unsure('an end of a bag')
        return (v[i] if v else MISSING) if isinstance(v, list) else refuse('$first')
    return call


def refuse(what):
    raise Refused(what)


def cut(v, a, n=None):
    if null(v):
        return None
    if not isinstance(v, list):
        raise Refused('$slice')
    if n is None:
        return v[:a] if a >= 0 else v[a:]
    start = min(a, len(v)) if a >= 0 else max(len(v) + a, 0)
    return v[start:start + n]


def is_in(v, values):
    if not isinstance(values, list):
        raise Refused('$in')
    return any(key(v) == key(x) for x in values)


def concat_arrays(*args):
    if any(not null(v) and not isinstance(v, list) for v in args):
        if any(null(v) for v in args):
            raise Unsure('null before an error')
        raise Refused('$concatArrays')
    if any(null(v) for v in args):
        return None
    many = any(isinstance(v, Bag) and len(v) > 1 for v in args)
    return (Bag if many else list)(x for v in args for x in v)


def reverse(v):
    v = array(v, '$reverseArray')
    return v if v is None else type(v)(v[::-1])


def unique(values):
    seen = {}
    for v in values:
        seen.setdefault(key(v), v)
    return Bag(seen.values())


def sets(op, combine):
    def call(*args):
        if any(not null(v) and not isinstance(v, list) for v in args):
            if any(null(v) for v in args):
                raise Unsure('null before an error')
            raise Refused(op)
        return None if any(null(v) for v in args) else combine(*args)
    return call


def set_intersection(a, b):
    keys = {key(v) for v in b}
    return unique(v for v in a if key(v) in keys)


def set_difference(a, b):
    keys = {key(v) for v in b}
    return unique(v for v in a if key(v) not in keys)


def merge_objects(*args):
    if len(args) == 1 and isinstance(args[0], list):
        if isinstance(args[0], Bag) and len(args[0]) > 1:
            raise Unsure('$mergeObjects')
        args = args[0]
    made = {}
    for v in args:
        if not null(v):
            if not isinstance(v, dict):
                raise Refused('$mergeObjects')
            made.update(v)
    return made


def object_to_array(v):
    if null(v):
        return None
    return [{'k': name, 'v': x} for name, x in v.items()] if isinstance(v, dict) else \
        refuse('$objectToArray')


def of_date(part):
    def call(v):
        return None if null(v) else getattr(v, part) if is_date(v) else \
            refuse(part) if not isinstance(v, ObjectId) else refuse_unsure()
    return call


def refuse_unsure():
    raise Unsure('date of an id')


def folded(name):
    """An accumulator as an expression: one array, or several values."""
    def call(*args):
        values = args[0] if len(args) == 1 and isinstance(args[0], list) else args
        return FOLDS[name](list(values))
    return call


PLAIN = {
    '$add': add, '$subtract': subtract, '$multiply': multiply, '$divide': divide, '$mod': mod,
    '$abs': absolute, '$floor': rounded('$floor', math.floor),
    '$ceil': rounded('$ceil', math.ceil),
    '$trunc': rounded('$trunc', math.trunc),
    '$cmp': compare(lambda c: c), '$eq': compare(lambda c: c == 0),
    '$ne': compare(lambda c: c != 0),
    '$gt': compare(lambda c: c > 0), '$gte': compare(lambda c: c >= 0),
    '$lt': compare(lambda c: c < 0), '$lte': compare(lambda c: c <= 0),
    '$not': lambda v: not truth(v), '$concat': concat,
    '$toUpper': text(lambda v: v.encode().upper().decode()),
    '$toLower': text(lambda v: v.encode().lower().decode()), '$strLenCP': str_len, '$size': size,
    '$arrayElemAt': array_elem_at, '$first': end_of(0), '$last': end_of(-1), '$slice': cut,
    '$in': is_in, '$concatArrays': concat_arrays, '$reverseArray': reverse,
    '$isArray': lambda v: isinstance(v, list), '$isNumber': lambda v: rank(v) is not None,
    '$setUnion': sets('$setUnion', lambda *a: unique(x for v in a for x in v)),
    '$setIntersection': sets('$setIntersection', set_intersection),
    '$setDifference': sets('$setDifference', set_difference),
    '$mergeObjects': merge_objects, '$objectToArray': object_to_array,
    '$year': of_date('year'), '$month': of_date('month'), '$dayOfMonth': of_date('day'),
    **{name: folded(name) for name in ('$sum', '$avg', '$min', '$max')}}


# ---------------------------------------------------------------- accumulators

def fold_sum(values):
    values = [v for v in values if rank(v) is not None]
    return total_of(max(map(rank, values), default=0), values)


def fold_avg(values):
    values = [v for v in values if rank(v) is not None]
    if not values:
        return None
    total = fold_sum(values)
    return DECIMAL.divide(total, Decimal(len(values))) if rank(total) == 3 else \
        float(total) / len(values)


def fold_end(pick):
    def call(values):
        values = [v for v in values if not null(v)]
        return pick(values, key=key) if values else None
    return call


def fold_dev(less):
    def call(values):
        values = [float(v) for v in values if rank(v) is not None]
        if len(values) <= less:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan if len(values) > 1 or values[0] != values[0] else refuse_unsure()
        exact = list(map(Fraction, values))
        mean = sum(exact) / len(exact)
        return math.sqrt(sum((v - mean) ** 2 for v in exact) / (len(exact) - less))
    return call


FOLDS = {'$sum': fold_sum, '$avg': fold_avg, '$min': fold_end(min), '$max': fold_end(max),
         '$stdDevPop': fold_dev(0), '$stdDevSamp': fold_dev(1)}


def accumulate(spec, rows, names):
    """The value of an accumulator over rows; in no order, it may be a Bag or not sure."""
    op, arg = next(iter(spec.items()))

    def values(e):
        found, failures = [], 0
        for doc in rows.docs:
            try:
                found.append(evaluate(e, variables(doc, names)))
            except Refused:
                failures += 1
        if failures and found and op in ('$first', '$firstN'):
            raise Unsure('an error that only later documents give')
        return found if not failures else refuse(op)

    def in_order(found):
        if not rows.ordered and any(not same(found[0], v, near=0) for v in found):
            raise Unsure(op)
        return [None if v is MISSING else v for v in found]

    if op == '$count':
        return len(rows.docs)
    if op in FOLDS:
        return FOLDS[op](values(arg))
    if op == '$push':
        return (list if rows.ordered else Bag)(v for v in values(arg) if v is not MISSING)
    if op == '$addToSet':
        return unique(v for v in values(arg) if v is not MISSING)
    if op in ('$first', '$last'):
        found = in_order(values(arg))
        return found[0 if op == '$first' else -1] if found else None
    if op in ('$firstN', '$lastN'):
        found = in_order(values(arg['input']))
        return found[:arg['n']] if op == '$firstN' else found[-arg['n']:]
    if op in ('$minN', '$maxN'):
        found = [v for v in values(arg['input']) if not null(v)]
        return sorted(found, key=key, reverse=op == '$maxN')[:arg['n']]
    if op == '$mergeObjects':
        found = values(arg)
        if not rows.ordered and len([v for v in found if v]) > 1:
            raise Unsure(op)
        return merge_objects(found)
    if op in ('$top', '$bottom', '$topN', '$bottomN'):
        ranked = sort(Rows(rows.docs), arg['sortBy'])
        if not ranked.ordered:
            raise Unsure(op)
        found = [None if v is MISSING else v for v in
                 (evaluate(arg['output'], variables(doc, names)) for doc in ranked.docs)]
        if op in ('$top', '$bottom'):
            return found[0 if op == '$top' else -1] if found else None
        return found[:arg['n']] if op == '$topN' else found[-arg['n']:]
    raise Unsure(op)


# ---------------------------------------------------------------- filters

def candidates(v, parts):
    """What a condition on a path sees: values, arrays and their elements."""
    if not parts:
        return [*v, v] if isinstance(v, list) else [v]
    if isinstance(v, list):
        return [x for item in v if isinstance(item, dict) for x in candidates(item, parts)]
    return candidates(v.get(parts[0], MISSING) if isinstance(v, dict) else MISSING, parts[1:])


def through_array(v, parts):
    for name in parts[:-1]:
        v = v.get(name) if isinstance(v, dict) else None
        if isinstance(v, list):
            return True
    return False


def compares(op, v, operand):
    if null(operand):
        return op in ('$eq', '$gte', '$lte') and null(v)
    if v is MISSING or kind(v) != kind(operand):
        return False
    if op != '$eq' and is_nan(v) != is_nan(operand):
        return False
    a, b = key(v), key(operand)
    return {'$eq': a == b, '$gt': a > b, '$gte': a >= b, '$lt': a < b, '$lte': a <= b}[op]


def condition(doc, path, op, operand, let):
    parts = path.split('.')
    if op == '$not':
        return not all(condition(doc, path, o, x, let) for o, x in operand.items())
    if op in ('$ne', '$nin'):
        return not condition(doc, path, '$eq' if op == '$ne' else '$in', operand, let)
    if through_array(doc, parts) and (operand is None or op == '$in' and None in operand):
        raise Unsure('null behind an array')
    found = candidates(doc, parts)
    if any(isinstance(v, Bag) and len(v) > 1 for v in found):
        found = [v for v in found if not isinstance(v, Bag)]
        if isinstance(operand, list) and op != '$in':
            raise Unsure('a bag in a filter')
    if op == '$in':
        return any(compares('$eq', v, x) for v in found for x in operand)
    if op == '$exists':
        return any(v is not MISSING for v in candidates(doc, parts)) == operand
    if op in ('$size', '$elemMatch'):
        arrays = [x for x in candidates(doc, parts) if isinstance(x, list)]
        if any(isinstance(y, list) for x in arrays for y in x):
            raise Unsure('arrays in arrays')
        if op == '$size':
            return any(len(x) == operand for x in arrays)
        if next(iter(operand)).startswith('$'):
            return any(all(compares(o, y, z) for o, z in operand.items())
                       for x in arrays for y in x)
        return any(isinstance(y, dict) and matches(y, operand, let) for x in arrays for y in x)
    return any(compares(op, v, operand) for v in found)


def matches(doc, query, let):
    for name, operand in query.items():
        if name == '$expr':
            right = truth(evaluate(operand, variables(doc, let)))
        elif name == '$and':
            right = all([matches(doc, q, let) for q in operand])
        elif name == '$or':
            right = any([matches(doc, q, let) for q in operand])
        elif name == '$nor':
            right = not any([matches(doc, q, let) for q in operand])
        else:
            if failed(step_into(doc, name.split('.')[:1])):
                raise Refused('a value that failed')
            if not (isinstance(operand, dict) and next(iter(operand), '').startswith('$')):
                operand = {'$eq': operand}
            right = all([condition(doc, name, op, x, let) for op, x in operand.items()])
        if not right:
            return False
    return True


# ---------------------------------------------------------------- order

def sort_values(v, parts):
    if not parts:
        return (list(v) or [MISSING]) if isinstance(v, list) else [None if v is MISSING else v]
    if isinstance(v, list):
        if not v or not all(isinstance(x, dict) for x in v):
            raise Unsure('an order through an array')
        return [x for item in v for x in sort_values(item, parts)]
    return sort_values(v.get(parts[0], MISSING) if isinstance(v, dict) else MISSING, parts[1:])


class Reversed:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return other.v < self.v

    def __eq__(self, other):
        return other.v == self.v


def sort_key(doc, spec, values_of=sort_values):
    found, arrays = [], 0
    for path, direction in spec.items():
        parts = path.split('.')
        values = [key(v) for v in values_of(doc, parts)]
        arrays += isinstance(step_into(doc, parts), list)
        found.append(min(values) if direction > 0 else Reversed(max(values)))
    if arrays > 1:
        raise Unsure('an order by several arrays')
    return found


def sort(rows, spec, values_of=sort_values):
    if any(isinstance(doc, Poison) for doc in rows.docs):
        raise Refused('a document that failed')
    pairs = sorted(((sort_key(doc, spec, values_of), i, doc) for i, doc in enumerate(rows.docs)),
                   key=lambda pair: pair[0])
    ordered = all(a[0] != b[0] or same(a[2], b[2], near=0) for a, b in zip(pairs, pairs[1:]))
    return Rows([doc for _, _, doc in pairs], ordered, rows.poisoned)


# ---------------------------------------------------------------- documents

def put(doc, parts, v):
    """$addFields: each array on the way gets it in all of its elements."""
    if isinstance(doc, list):
        return type(doc)(put(x, parts, v) for x in doc)
    doc = dict(doc) if isinstance(doc, dict) else {}
    if len(parts) == 1:
        if v is MISSING:
            doc.pop(parts[0], None)
        else:
            doc[parts[0]] = v
    else:
        doc[parts[0]] = put(doc.get(parts[0]), parts[1:], v)
    return doc


def put_field(doc, parts, v):
    """The same without arrays, which documents replace as they do other values."""
    doc = dict(doc) if isinstance(doc, dict) else {}
    doc[parts[0]] = put_field(doc.get(parts[0]), parts[1:], v) if parts[1:] else v
    return doc


def drop(v, parts):
    if isinstance(v, list):
        return type(v)(drop(x, parts) for x in v)
    if not isinstance(v, dict) or parts[0] not in v:
        return v
    if len(parts) == 1:
        return {name: x for name, x in v.items() if name != parts[0]}
    return {name: drop(x, parts[1:]) if name == parts[0] else x for name, x in v.items()}


def keep(v, tree):
    """The fields of a tree of names; MISSING if it is no document."""
    if isinstance(v, list):
        kept = [keep(x, tree) for x in v]
        return type(v)(x for x in kept if x is not MISSING)
    if not isinstance(v, dict):
        return MISSING
    made = {}
    for name, x in v.items():
        if name in tree:
            x = x if tree[name] is True else keep(x, tree[name])
            if x is not MISSING:
                made[name] = x
    return made


def computed(e, doc, let, rows):
    try:
        return evaluate(e, variables(doc, let))
    except Refused:
        rows.poisoned = True
        return Poison()


def leaves(spec):
    """The paths of a specification: documents in it that are no expressions have parts of them."""
    flat = {}
    for path, e in spec.items():
        if isinstance(e, dict) and not next(iter(e), '$').startswith('$'):
            flat.update({f'{path}.{name}': x for name, x in leaves(e).items()})
        else:
            flat[path] = e
    return flat


def add_fields(rows, spec, let, others):
    spec = leaves(spec)
    made = Rows([], rows.ordered, rows.poisoned)
    for doc in rows.docs:
        values = [(path, computed(e, doc, let, made)) for path, e in spec.items()]
        for path, v in values:
            doc = put(doc, path.split('.'), v)
        made.docs.append(doc)
    return Rows(made.docs, rows.ordered, made.poisoned)


def project(rows, spec, let, others):
    spec = leaves(spec)
    rest = {name: e for name, e in spec.items() if name != '_id'}
    if all(rank(e) is not None and e == 0 for e in rest.values()) and (rest or spec['_id'] == 0):
        docs = rows.docs
        for path, e in spec.items():
            if e == 0:
                docs = [drop(doc, path.split('.')) for doc in docs]
        return Rows(docs, rows.ordered, rows.poisoned)
    if any(rank(e) is not None and e == 0 for e in rest.values()):
        raise Unsure('fields that are excluded beside others')
    tree, made = {}, Rows([], rows.ordered, rows.poisoned)
    exprs = {path: e for path, e in spec.items() if rank(e) is None and not isinstance(e, bool)}
    if not any(path.startswith('_id.') for path in spec):
        spec = {'_id': 1, **spec}
    for path, e in spec.items():
        branch, parts = tree, path.split('.')
        for name in parts[:-1]:
            branch = branch.setdefault(name, {})
        if path not in exprs and e:
            branch[parts[-1]] = True
    for doc in rows.docs:
        new = keep(doc, tree)
        for path, e in exprs.items():
            v, parts = computed(e, doc, let, made), path.split('.')
            if len(parts) > 1 and isinstance(doc.get(parts[0]), list):
                raise Unsure('a computed field in an array')
            if v is not MISSING or len(parts) > 1:
                new = put(new, parts, v)
        made.docs.append(new)
    return made


def unset(rows, spec, let, others):
    return project(rows, {path: 0 for path in ([spec] if isinstance(spec, str) else spec)}, let,
                   others)


def replace(rows, spec, let, others):
    made = Rows([], rows.ordered, rows.poisoned)
    for doc in rows.docs:
        v = computed(spec, doc, let, made)
        made.docs.append(v if isinstance(v, dict) else Poison())
        made.poisoned |= not isinstance(v, dict)
    return made


def redact(rows, spec, let, others):
    def descend(doc):
        verdict = evaluate(spec, {**variables(doc, let), 'ROOT': root, 'KEEP': 'keep',
                                  'PRUNE': 'prune', 'DESCEND': 'descend'})
        if verdict == 'keep':
            return doc
        if verdict == 'prune':
            return MISSING
        made = {name: inside(x) for name, x in doc.items()}
        return {name: x for name, x in made.items() if x is not MISSING}

    def inside(v):
        if isinstance(v, dict):
            return descend(v)
        if isinstance(v, list):
            kept = [inside(x) for x in v]
            return type(v)(x for x in kept if x is not MISSING)
        return v
    docs = []
    for root in rows.docs:
        doc = descend(root)
        if doc is not MISSING:
            docs.append(doc)
    return Rows(docs, rows.ordered, rows.poisoned)


# ---------------------------------------------------------------- stages

def match(rows, spec, let, others):
    try:
        found = [doc for doc in rows.docs if matches(doc, spec, let)]
    except Refused:
        if list(spec) != ['$expr']:
            raise Unsure('which condition comes first')
        raise
    return Rows(found, rows.ordered, rows.poisoned)


def sort_stage(rows, spec, let, others):
    if any(failed(step_into(doc, [path.split('.')[0]])) for doc in rows.docs for path in spec):
        raise Refused('a value that failed')
    return sort(rows, spec)


def part(rows, first, last):
    if not rows.ordered and rows.docs[first:last] not in ([], rows.docs):
        raise Unsure('a part of rows without an order')
    return Rows(rows.docs[first:last], rows.ordered, rows.poisoned)


def unwind(rows, spec, let, others):
    spec = {'path': spec} if isinstance(spec, str) else spec
    parts, index, docs = spec['path'][1:].split('.'), spec.get('includeArrayIndex'), []
    ordered = rows.sorted

    def plain(doc):
        for name in parts:
            if isinstance(doc, list):
                raise Unsure('$unwind through an array')
            doc = doc.get(name, MISSING) if isinstance(doc, dict) else MISSING
        return doc

    for doc in rows.docs:
        v = plain(doc)
        if failed(v):
            raise Refused('a value that failed')
        if isinstance(v, list) and v:
            if isinstance(v, Bag) and len(v) > 1:
                ordered = False
                if index:
                    raise Unsure('the index in a bag')
            for i, x in enumerate(v):
                new = put(doc, parts, x)
                docs.append({**new, index: Int64(i)} if index else new)
        elif not null(v) and not isinstance(v, list) or spec.get('preserveNullAndEmptyArrays'):
            new = drop(doc, parts) if isinstance(v, list) else doc
            docs.append({**new, index: None} if index else new)
    return Rows(docs, ordered, rows.poisoned)


def groups_of(rows, value):
    groups = {}
    for doc in rows.docs:
        v = value(doc)
        groups.setdefault(key(v), (v, []))[1].append(doc)
    return groups.values()


def totals(head, fields, rows, let, made):
    for name, spec in fields.items():
        try:
            head[name] = accumulate(spec, rows, let)
        except Refused:
            made.poisoned = True
            head[name] = Poison()
    made.docs.append(head)


def check_key(by):
    if isinstance(by, dict) and not next(iter(by), '$').startswith('$') and any(
            rank(e) is not None or isinstance(e, bool) for e in by.values()):
        raise Refused('a key with included fields')


def group(rows, spec, let, others):
    made, by = Rows([], False, rows.poisoned), spec['_id']
    fields = {name: e for name, e in spec.items() if name != '_id'}
    check_key(by)

    def value(doc):
        v = evaluate(by, variables(doc, let))
        return None if v is MISSING else v
    for v, docs in groups_of(rows, value):
        totals({'_id': v}, fields, Rows(docs, rows.ordered), let, made)
    return Rows(made.docs, False, made.poisoned)


COUNT = {'count': {'$sum': 1}}


def bucket(rows, spec, let, others):
    made, bounds = Rows([], True, rows.poisoned), spec['boundaries']

    def value(doc):
        v = evaluate(spec['groupBy'], variables(doc, let))
        for low, high in zip(bounds, bounds[1:]):
            if key(low) <= key(v) < key(high):
                return low
        if 'default' not in spec:
            raise Refused('$bucket')
        return spec['default']
    for v, docs in sorted(groups_of(rows, value), key=lambda g: key(g[0])):
        totals({'_id': v}, spec.get('output', COUNT), Rows(docs, rows.ordered), let, made)
    return made


def bucket_auto(rows, spec, let, others):
    made = Rows([], True, rows.poisoned)
    pairs = []
    for doc in rows.docs:
        v = evaluate(spec['groupBy'], variables(doc, let))
        pairs.append((None if v is MISSING else v, doc))
    pairs.sort(key=lambda pair: key(pair[0]))
    keys = [key(v) for v, _ in pairs]
    size, i, number = max(1, math.floor(len(pairs) / spec['buckets'] + 0.5)), 0, 1
    while i < len(pairs):
        end = len(pairs) if number == spec['buckets'] else min(i + size, len(pairs))
        while end < len(pairs) and keys[end] == keys[end - 1]:
            end += 1
        high = pairs[min(end, len(pairs) - 1)][0]
        # which documents come first among equal ones is open, unless all of them are in
        inside = Rows([doc for _, doc in pairs[i:end]],
                      len(set(keys[i:end])) == end - i or rows.ordered)
        totals({'_id': {'min': pairs[i][0], 'max': high}}, spec.get('output', COUNT), inside, let,
               made)
        i, number = end, number + 1
    return made


def sort_by_count(rows, spec, let, others):
    return sort(group(rows, {'_id': spec, **COUNT}, let, others), {'count': -1})


def count(rows, spec, let, others):
    return Rows([{spec: len(rows.docs)}] if rows.docs else [], True, rows.poisoned)


def as_array(rows):
    return list(rows.docs) if rows.ordered else Bag(rows.docs)


def local_values(v, parts):
    """The values by which $lookup joins; None stands for a missing one."""
    if not parts:
        return list(v) if isinstance(v, list) else [v]
    if isinstance(v, list):
        return [x for item in v if isinstance(item, dict) for x in local_values(item, parts)
                if x is not MISSING]
    return local_values(v.get(parts[0], MISSING) if isinstance(v, dict) else MISSING, parts[1:])


def lookup(rows, spec, let, others):
    made = Rows([], rows.ordered, rows.poisoned)
    for stage in spec.get('pipeline', []):
        if '$group' in stage:
            check_key(stage['$group']['_id'])
    if not rows.docs and not {'localField', 'let'} & set(spec):
        # what depends on no document may be computed before there is one
        try:
            inside = run(spec['pipeline'], others[spec['from']], others, let)
            made.poisoned |= inside.poisoned or failed(inside.docs)
        except (Refused, Unsure):
            made.poisoned = True
    for doc in rows.docs:
        found = others[spec['from']]
        if 'localField' in spec and found:
            if failed(step_into(doc, spec['localField'].split('.')[:1])):
                raise Refused('a value that failed')
            values = local_values(doc, spec['localField'].split('.'))
            if not values or any(isinstance(v, list) for v in values):
                raise Unsure('$lookup by an empty array or arrays in arrays')
            path = spec['foreignField'].split('.')
            if any(null(v) for v in values) and any(through_array(d, path) for d in found):
                raise Unsure('null behind an array')
            found = [d for d in found
                     if any(compares('$eq', x, v) for x in candidates(d, path) for v in values)]
        inner = {name: evaluate(e, variables(doc, let)) for name, e in spec.get('let', {}).items()}
        inside = run(spec.get('pipeline', []), found, others, {**let, **inner})
        made.poisoned |= inside.poisoned
        made.docs.append(put_field(doc, spec['as'].split('.'), as_array(inside)))
    return made


def graph_lookup(rows, spec, let, others):
    docs = []
    to, source = spec['connectToField'].split('.'), spec['connectFromField'].split('.')
    for doc in rows.docs:
        start = evaluate(spec['startWith'], variables(doc, let))
        front = list(start) if isinstance(start, list) else [start]
        depth, seen = 0, {}
        while front:
            if any(null(v) or isinstance(v, list) for v in front):
                raise Unsure('$graphLookup by null')
            new = [d for d in others[spec['from']] if key(d['_id']) not in seen and
                   matches(d, spec.get('restrictSearchWithMatch', {}), {}) and
                   any(compares('$eq', x, v) for x in candidates(d, to) for v in front)]
            for d in new:
                seen[key(d['_id'])] = {**d, spec['depthField']: Int64(depth)} \
                    if 'depthField' in spec else d
            depth += 1
            if depth > spec.get('maxDepth', math.inf):
                break
            front = [v for d in new for v in local_values(d, source) if v is not MISSING]
        docs.append(put_field(doc, spec['as'].split('.'), Bag(seen.values())))
    return Rows(docs, rows.ordered, rows.poisoned)


def union_with(rows, spec, let, others):
    spec = {'coll': spec} if isinstance(spec, str) else spec
    more = run(spec.get('pipeline', []), others[spec['coll']], others, let)
    return Rows(rows.docs + more.docs, False, rows.poisoned or more.poisoned)


def facet(rows, spec, let, others):
    made = Rows([{}], True, rows.poisoned)
    for name, stages in spec.items():
        part = run(stages, rows.docs, others, let, rows.ordered)
        made.docs[0][name] = as_array(part)
        made.poisoned |= part.poisoned
    return made


# ---------------------------------------------------------------- windows

def frame(docs, i, keys, window):
    if not window:
        return docs
    if 'documents' in window:
        low, high = ({'unbounded': None, 'current': 0}.get(x, x) for x in window['documents'])
        return docs[max(0, 0 if low is None else i + low):
                    None if high is None else max(0, i + high + 1)]
    low, high = ({'unbounded': None, 'current': 0}.get(x, x) for x in window['range'])
    return [d for d, k in zip(docs, keys) if (low is None or k >= keys[i] + low) and
            (high is None or k <= keys[i] + high)]


def window_value(spec, docs, i, order, let):
    window = spec.get('window')
    op = next(name for name in spec if name != 'window')
    arg = spec[op]
    ranked = [sort_key(doc, order) for doc in docs] if order else []
    if op in ('$documentNumber', '$rank', '$denseRank') and len(order) != 1:
        raise Unsure('a rank in an order of several fields')
    if op == '$documentNumber':
        return i + 1
    if op == '$rank':
        return ranked.index(ranked[i]) + 1
    if op == '$denseRank':
        return 1 + sum(a != b for a, b in zip(ranked[:i + 1], ranked[1:i + 1]))
    if op == '$shift':
        j = i + arg['by']
        v = evaluate(arg['output'], variables(docs[j], let)) if 0 <= j < len(docs) else \
            arg.get('default')
        return None if v is MISSING else v
    if op == '$locf':
        values = [evaluate(arg, variables(doc, let)) for doc in docs[:i + 1]]
        return next((v for v in reversed(values) if not null(v)), None)
    if op == '$linearFill':
        return linear(docs, i, next(iter(order)), arg, let)
    keys = None
    if window and 'range' in window:
        keys = [step_into(doc, next(iter(order)).split('.')) for doc in docs]
        if any(rank(v) is None or is_nan(v) for v in keys):
            raise Unsure('a range of something else than numbers')
    docs = frame(docs, i, keys, window)
    return accumulate({op: arg}, Rows(docs, bool(order)), let)


def linear(docs, i, path, e, let):
    values = [evaluate(e, variables(doc, let)) for doc in docs]
    keys = [step_into(doc, path.split('.')) for doc in docs]
    if any(rank(v) is None for v in keys) or any(rank(v) is None for v in values if not null(v)) \
            or len(set(keys)) < len(keys) or any(map(is_nan, keys)):
        raise Unsure('interpolation of something else than numbers')
    if not null(values[i]):
        return values[i]
    low = next((j for j in range(i, -1, -1) if not null(values[j])), None)
    high = next((j for j in range(i, len(docs)) if not null(values[j])), None)
    if low is None or high is None:
        return None
    exact = any(rank(v) == 3 for v in (values[low], values[high], keys[low], keys[high], keys[i]))
    a, b, x, y, z = (decimal(v) if exact else float(v) for v in
                     (values[low], values[high], keys[low], keys[high], keys[i]))
    return a + (b - a) * (z - x) / (y - x)


def set_window_fields(rows, spec, let, others):
    made, order = Rows([], False, rows.poisoned), spec.get('sortBy')

    def value(doc):
        v = evaluate(spec.get('partitionBy'), variables(doc, let))
        if isinstance(v, list):
            raise Refused('$setWindowFields')
        return None if v is MISSING else v
    for _, docs in groups_of(rows, value):
        part = sort(Rows(docs), order) if order else Rows(docs)
        if not part.ordered and not all(
                'window' not in w and next(iter(w)) in FOLDS for w in spec['output'].values()):
            raise Unsure('a window without an order')
        for i, doc in enumerate(part.docs):
            for path, w in spec['output'].items():
                try:
                    v = window_value(w, part.docs, i, order, let)
                except Refused:
                    made.poisoned, v = True, Poison()
                doc = put(doc, path.split('.'), v)
            made.docs.append(doc)
    return Rows(made.docs, False, made.poisoned)


def partitions(rows, spec, let):
    def value(doc):
        if 'partitionByFields' in spec:
            found = {name: step_into(doc, name.split('.')) for name in spec['partitionByFields']}
            return {name: v for name, v in found.items() if v is not MISSING}
        v = evaluate(spec.get('partitionBy'), variables(doc, let))
        if isinstance(v, list):
            raise Refused('a partition by an array')
        return None if v is MISSING else v
    return groups_of(rows, value)


def densify(rows, spec, let, others):
    path, step, bounds = spec['field'], spec['range']['step'], spec['range']['bounds']
    parts, docs, made = path.split('.'), rows.docs, list(rows.docs)
    values = [step_into(doc, parts) for doc in docs]
    if any(not null(v) and rank(v) is None for v in values):
        raise Refused('$densify')
    if any(is_nan(v) or not null(v) and abs(v) == math.inf for v in values):
        raise Unsure('$densify')
    known = [v for v in values if not null(v)]
    if not known and isinstance(bounds, list):
        raise Unsure('$densify without values')
    for v, inside in partitions(rows, spec, let):
        have = sorted(x for x in (step_into(doc, parts) for doc in inside) if not null(x))
        if not have:
            if isinstance(bounds, list) or bounds == 'full':
                raise Unsure('$densify of a partition without values')
            continue
        low, high = (have[0], have[-1]) if bounds == 'partition' else bounds \
            if isinstance(bounds, list) else (min(known), max(known))
        x, i = low, 0
        if float(high) - float(low) > 500 * float(step):
            raise Unsure('$densify of very many')
        while x < high or x == high and not isinstance(bounds, list):
            if not any(x == y for y in have):
                new = {}
                for name, y in (v.items() if 'partitionByFields' in spec else ()):
                    new = put(new, name.split('.'), y)
                made.append(put(new, parts, x))
            i += 1
            x = add(low, multiply(step, i))
    return Rows(made, False, rows.poisoned)


def fill(rows, spec, let, others):
    order, made = spec.get('sortBy'), Rows([], False, rows.poisoned)
    if all('value' in how for how in spec['output'].values()):
        docs = []
        for doc in rows.docs:
            new = doc
            for path, how in spec['output'].items():
                v = step_into(doc, path.split('.'))
                v = evaluate(how['value'], variables(doc, let)) if null(v) else v
                new = put(new, path.split('.'), v)
            docs.append(new)
        return Rows(docs, rows.ordered, rows.poisoned)
    for _, docs in partitions(rows, spec, let):
        part = sort(Rows(docs), order)
        if not part.ordered:
            raise Unsure('$fill without an order')
        for i, doc in enumerate(part.docs):
            new = doc
            methods = new
            for path, how in sorted(spec['output'].items(), key=lambda item: 'value' in item[1]):
                if 'value' in how:
                    v = step_into(methods, path.split('.'))
                    v = evaluate(how['value'], variables(methods, let)) if null(v) else v
                else:
                    op = {'locf': '$locf', 'linear': '$linearFill'}[how['method']]
                    v = window_value({op: '$' + path}, part.docs, i, order, let)
                new = put(new, path.split('.'), v)
                if 'value' not in how:
                    methods = new
            made.docs.append(new)
    return Rows(made.docs, False, made.poisoned)


STAGES = {
    '$match': match, '$project': project, '$addFields': add_fields, '$set': add_fields,
    '$unset': unset, '$replaceWith': replace, '$redact': redact, '$group': group,
    '$replaceRoot': lambda rows, spec, *rest: replace(rows, spec['newRoot'], *rest),
    '$bucket': bucket, '$bucketAuto': bucket_auto, '$sortByCount': sort_by_count, '$count': count,
    '$sort': sort_stage, '$limit': lambda rows, spec, *rest: part(rows, 0, spec),
    '$skip': lambda rows, spec, *rest: part(rows, spec, None), '$unwind': unwind,
    '$lookup': lookup, '$graphLookup': graph_lookup, '$unionWith': union_with, '$facet': facet,
    '$setWindowFields': set_window_fields, '$densify': densify, '$fill': fill}


COUNTING = {'$count', '$facet', '$group', '$limit', '$skip', '$unionWith'}
COMPUTING = {'$addFields', '$graphLookup', '$lookup', '$project', '$set', '$unset'}


def run(stages, docs, others, let={}, ordered=False):
    rows = Rows(docs, ordered)
    for stage in stages:
        name, spec = next(iter(stage.items()))
        if name not in COUNTING and any(isinstance(doc, Poison) for doc in rows.docs):
            if name in COMPUTING:
                continue
            raise Refused('a document that failed')
        rows = STAGES[name](rows, spec, let, others)
        if name == '$match' and '$expr' in str(spec):
            # the condition may come first, also for documents that a stage leaves out
            try:
                match(Rows(docs), spec, let, others)
            except (Refused, Unsure):
                rows.poisoned = True
    return rows
