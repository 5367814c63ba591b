"""The cases of parameters.json with psycopg 3 and psycopg 2: strings have no type. TAP."""
import datetime
import json
import re
import psycopg
import psycopg2

cases = json.load(open('parameters.json'))
tests = 0


def parameter(value):
    if isinstance(value, dict) and 'time' in value:
        return datetime.datetime.fromisoformat(value['time'])
    return bytes.fromhex(value['bytes']) if isinstance(value, dict) and 'bytes' in value else value


def answer(conn, case):
    """What the first row has, or the SQLSTATE and whether the hint has what it must."""
    try:
        with conn.cursor() as cursor:
            cursor.execute(re.sub(r'\$\d', '%s', case['sql'].replace('%', '%%')),
                           [parameter(value) for value in case.get('with', [])])
            rows = cursor.fetchall() if cursor.description else [[None]]
            return str(rows) if 'has' in case else rows[0][0]
    except (psycopg.Error, psycopg2.Error) as error:
        return [error.diag.sqlstate, case.get('hint', '') in (error.diag.message_hint or ''),
                error.diag.message_primary, error.diag.message_hint]


for driver in (psycopg, psycopg2):
    conn = driver.connect('')
    conn.autocommit = True
    conn.cursor().execute(f'CREATE SCHEMA {driver.__name__}; '
                          f'SET search_path = {driver.__name__}, public')
    point = ''
    for case in cases:
        point = case.get('point', point)
        if 'sql' in case:
            seen = answer(conn, case)
            right = seen[:2] == [case['error'], True] if 'error' in case and seen else \
                case['has'] in seen if 'has' in case else seen == case.get('gives')
            tests += 1
            result = 'ok' if right else 'not ok'
            print(f"{result} {tests} - {driver.__name__}: {point}: {case['sql']}")
            if not right:
                print(f'#   {seen!r}')
    conn.close()
print(f'1..{tests}')
