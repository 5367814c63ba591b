"""Documents of docpatterns as dicts in psycopg 3, by pymongo's bson."""
import bson
from bson import json_util
from psycopg import errors, pq
from psycopg.adapt import Dumper, Loader
from psycopg.types import TypeInfo

CODEC = bson.codec_options.CodecOptions(tz_aware=True, uuid_representation=4)
JSON = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, tz_aware=True,
                             uuid_representation=4)


def value(data):  # one byte of type, then the value: a document with one field
    size = (len(data) + 6).to_bytes(4, 'little')
    return bson.decode(size + data[:1] + b'\0' + data[1:] + b'\0', CODEC)['']


def json(data):
    return json_util.loads(bytes(data), json_options=JSON)


LOADERS = {'bson': (json, lambda data: bson.decode(data, CODEC)),
           'bson_value': (json, value),
           'objectid': (lambda data: bson.ObjectId(bytes(data).decode()),
                        lambda data: bson.ObjectId(bytes(data)))}
DUMPERS = {'bson': (dict, lambda doc: json_util.dumps(doc, json_options=JSON).encode(),
                    lambda doc: bson.encode(doc, codec_options=CODEC)),
           'objectid': (bson.ObjectId, lambda id: str(id).encode(), lambda id: id.binary)}


def register(conn):
    for name, loaders in LOADERS.items():
        info = TypeInfo.fetch(conn, name)
        info.register(conn)  # also arrays of it
        for format, load in zip(pq.Format, loaders):
            conn.adapters.register_loader(info.oid, type('BsonLoader', (Loader,), {
                'format': format, 'load': staticmethod(load)}))
        if name in DUMPERS:
            python, *dumpers = DUMPERS[name]
            for format, dump in zip(pq.Format, dumpers):
                conn.adapters.register_dumper(python, type('BsonDumper', (Dumper,), {
                    'format': format, 'oid': info.oid, 'dump': staticmethod(dump)}))


def transaction(conn, work, tries=10):
    """Runs work(conn) in a transaction, again if it conflicts with another one."""
    for left in reversed(range(tries)):
        try:
            with conn.transaction():
                return work(conn)
        except (errors.SerializationFailure, errors.DeadlockDetected):
            if not left:
                raise
