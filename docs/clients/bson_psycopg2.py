"""Documents of docpatterns as dicts in psycopg 2, by pymongo's bson."""
import bson
from bson import json_util
from psycopg2 import Binary, errors, extensions

CODEC = bson.codec_options.CodecOptions(tz_aware=True, uuid_representation=4)
JSON = json_util.JSONOptions(tz_aware=True, uuid_representation=4)


class Cast:
    """What psycopg 2 writes for a value, with a cast."""
    def __init__(self, value, adapter, sql_type):
        self.adapted, self.sql_type = adapter(value), sql_type

    def prepare(self, conn):
        self.adapted.prepare(conn)

    def getquoted(self):
        return self.adapted.getquoted() + b'::' + self.sql_type


def register(conn):
    def load(text, cursor):
        return None if text is None else json_util.loads(text, json_options=JSON)

    def load_id(text, cursor):
        return None if text is None else bson.ObjectId(text)

    with conn.cursor() as cursor:
        for name, loader in (('bson', load), ('bson_value', load), ('objectid', load_id)):
            cursor.execute('SELECT %s::regtype::oid, (%s || %s)::regtype::oid', (name, name, '[]'))
            oid, array = cursor.fetchone()
            single = extensions.new_type((oid,), name, loader)
            extensions.register_type(single, conn)
            extensions.register_type(extensions.new_array_type((array,), name + '[]', single), conn)
    extensions.register_adapter(dict, lambda doc: Cast(
        bson.encode(doc, codec_options=CODEC), Binary, b'bson'))
    extensions.register_adapter(bson.ObjectId, lambda id: Cast(
        str(id), extensions.QuotedString, b'objectid'))


def transaction(conn, work, tries=10):
    """Runs work(conn) in a transaction, again if it conflicts with another one."""
    for left in reversed(range(tries)):
        try:
            with conn:
                return work(conn)
        except (errors.SerializationFailure, errors.DeadlockDetected):
            if not left:
                raise
