"""Documents of docpatterns in Django, as Extended JSON by pymongo's bson."""
from bson import json_util
from django.db import models

JSON = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, tz_aware=True,
                             uuid_representation=4)


class BsonValueField(models.Field):
    def db_type(self, connection):
        return 'bson_value'

    def get_prep_value(self, value):
        return None if value is None else json_util.dumps(value, json_options=JSON)

    def from_db_value(self, text, expression, connection):
        return None if text is None else json_util.loads(text, json_options=JSON)


class BsonField(BsonValueField):
    def db_type(self, connection):
        return 'bson'

    def get_transform(self, name):
        return super().get_transform(name) or (lambda *args: Path(*args, path=name))


class Path(models.Transform):
    """doc__price is doc -> 'price', doc__size__width is doc -> 'size.width'."""
    output_field = BsonValueField()

    def __init__(self, *args, path):
        super().__init__(*args)
        self.path = path

    def get_transform(self, name):
        return lambda *args: Path(*self.source_expressions, path=f'{self.path}.{name}')

    def as_sql(self, compiler, connection):
        sql, params = compiler.compile(self.lhs)
        return f'({sql} -> %s)', [*params, self.path]


@BsonField.register_lookup
class Matches(models.Lookup):
    """doc__matches={'price': {'$lt': 10}}"""
    lookup_name = 'matches'

    def as_sql(self, compiler, connection):
        sql, params = self.process_lhs(compiler, connection)
        query, values = self.process_rhs(compiler, connection)
        return f'{sql} @@ {query}', [*params, *values]
