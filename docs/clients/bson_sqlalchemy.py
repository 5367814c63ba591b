"""Documents of docpatterns in SQLAlchemy, as Extended JSON by pymongo's bson: for any driver."""
from bson import json_util
from sqlalchemy import Text, literal
from sqlalchemy.types import UserDefinedType

JSON = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, tz_aware=True,
                             uuid_representation=4)


class BsonValue(UserDefinedType):
    cache_ok = True
    name = 'bson_value'

    def get_col_spec(self, **options):
        return self.name

    def bind_processor(self, dialect):
        return lambda value: None if value is None else json_util.dumps(value, json_options=JSON)

    def result_processor(self, dialect, coltype):
        return lambda text: None if text is None else json_util.loads(text, json_options=JSON)


class Bson(BsonValue):
    cache_ok = True
    name = 'bson'

    class comparator_factory(UserDefinedType.Comparator):
        def __getitem__(self, path):
            return self.op('->', return_type=BsonValue())(literal(path, Text))

        def text(self, path):
            return self.op('->>', return_type=Text())(literal(path, Text))

        def matches(self, query):
            return self.bool_op('@@')(query)
