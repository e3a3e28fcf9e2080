"""One reader in a process of its own: lakes are read through the text that `queen-s3 ddl` prints, and told as JSON.

    python engines.py ENGINE <requests >answers

A request is {cell, queue, text, hour, dt, at}: the printed text, whether the lake has hours, and a dt (and hour) to
ask for alone. An answer is {cell, queue, types, rows, groups, some} or {cell, queue, error}. `rows` are partition,
offset, transaction_id, microseconds, payload, dt and hour, as they come; `groups` are partition, records and payloads
that aren't null, counted by the engine; `some` is how many records the engine finds under that dt and hour. With a
`spoiled` text, of the same lake with its last object unreadable, the answer has `spared` too: `some` of that lake, or
null where the engine can't tell without that object.
"""
import contextlib
import datetime
import json
import os
import sys
import tempfile

ZERO = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class DuckDb:
    def __init__(self):
        import duckdb
        self.db = duckdb.connect(config={'threads': 1, 'autoinstall_known_extensions': False})

    def read(self, ask: dict) -> dict:
        self.db.execute(ask['text'])
        view = '"' + ask['queue'].replace('"', '""') + '"'
        hour = 'hour' if ask['hour'] else 'NULL'
        where = f"dt = DATE '{ask['dt']}'" + (f' AND hour = {ask["at"]}' if ask['hour'] else '')
        return {
            'types': dict((row[0], row[1]) for row in self.db.sql(f'DESCRIBE {view}').fetchall()),
            'rows': self.db.sql('SELECT "partition", "offset", transaction_id, epoch_us(ts), payload, dt::VARCHAR, '
                                f'{hour} FROM {view}').fetchall(),
            'groups': self.db.sql(f'SELECT "partition", count(*), count(payload) FROM {view} GROUP BY 1').fetchall(),
            'some': self.db.sql(f'SELECT count(*) FROM {view} WHERE {where}').fetchall()[0][0],
        }

    def spared(self, ask: dict) -> int:
        self.db.execute(ask['spoiled'])
        expect_failure(lambda: self.db.sql(f"""SELECT count("offset") FROM "{ask['queue']}" """).fetchall())
        return self.db.sql(f"""SELECT count("offset") FROM "{ask['queue']}" WHERE dt = DATE '{ask['dt']}'
                               AND hour = {ask['at']}""").fetchall()[0][0]


class ClickHouse:
    def __init__(self):
        from chdb import session
        self.db = session.Session()
        self.db.query('CREATE DATABASE lakes')
        self.db.query('USE lakes')
        self.db.query('SET max_threads = 1')

    def ask(self, query: str) -> list:
        text = self.db.query(query + ' SETTINGS output_format_json_quote_64bit_integers = 0', 'JSONCompactEachRow')
        return [json.loads(line) for line in text.bytes().decode().splitlines()]

    def read(self, ask: dict) -> dict:
        self.db.query(ask['text'])
        view = '"' + ask['queue'].replace('\\', '\\\\').replace('"', '\\"') + '"'
        hour = 'hour' if ask['hour'] else 'NULL'
        where = f"dt = '{ask['dt']}'" + (f' AND hour = {ask["at"]}' if ask['hour'] else '')
        return {
            'types': {row[0]: row[1] for row in self.ask(f'DESCRIBE {view}')},
            'rows': self.ask(f'SELECT partition, offset, transaction_id, toUnixTimestamp64Micro(ts), payload, '
                             f'toString(dt), {hour} FROM {view}'),
            'groups': self.ask(f'SELECT partition, count(), count(payload) FROM {view} GROUP BY 1'),
            'some': self.ask(f'SELECT count() FROM {view} WHERE {where}')[0][0],
        }

    def spared(self, ask: dict) -> int:
        self.db.query(ask['spoiled'])
        expect_failure(lambda: self.ask(f"""SELECT count(offset) FROM "{ask['queue']}" """))
        return self.ask(f"""SELECT count(offset) FROM "{ask['queue']}" WHERE dt = '{ask['dt']}'
                            AND hour = {ask['at']}""")[0][0]


class Spark:
    def __init__(self):
        from pyspark.sql import SparkSession
        folder = tempfile.gettempdir()
        settings = {
            'spark.ui.enabled': 'false', 'spark.driver.bindAddress': '127.0.0.1', 'spark.driver.host': '127.0.0.1',
            'spark.local.dir': folder, 'spark.sql.warehouse.dir': f'{folder}/warehouse', 'spark.log.level': 'OFF',
            'spark.sql.session.timeZone': 'UTC', 'spark.driver.memory': '1g',
            # What costs seconds at this size: compiling each plan, listing and reading as if it were a cluster.
            'spark.driver.extraJavaOptions': '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC',
            'spark.sql.codegen.wholeStage': 'false', 'spark.sql.codegen.factoryMode': 'NO_CODEGEN',
            'spark.sql.sources.parallelPartitionDiscovery.threshold': '10000', 'spark.sql.adaptive.enabled': 'false',
            'spark.sql.shuffle.partitions': '1', 'spark.sql.files.openCostInBytes': '1024'}
        builder = SparkSession.builder.master('local[1]').appName('readers')
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.db = builder.getOrCreate()

    def read(self, ask: dict) -> dict:
        self.db.sql(ask['text'])
        view = '`' + ask['queue'].replace('`', '``') + '`'
        hour = 'hour' if ask['hour'] else 'NULL'
        where = f"dt = DATE '{ask['dt']}'" + (f' AND hour = {ask["at"]}' if ask['hour'] else '')

        def rows(query: str) -> list:
            return [list(row) for row in self.db.sql(query).collect()]
        return {
            'types': dict(self.db.table(view).dtypes),
            'rows': rows(f'SELECT `partition`, `offset`, transaction_id, unix_micros(ts), payload, '
                         f'CAST(dt AS STRING), {hour} FROM {view}'),
            'groups': rows(f'SELECT `partition`, count(*), count(payload) FROM {view} GROUP BY 1'),
            'some': rows(f'SELECT count(*) FROM {view} WHERE {where}')[0][0],
        }

    def spared(self, ask: dict) -> int:
        self.db.sql(ask['spoiled'])
        expect_failure(self.db.sql(f"SELECT count(`offset`) FROM `{ask['queue']}`").collect)
        return self.db.sql(f"""SELECT count(`offset`) FROM `{ask['queue']}` WHERE dt = DATE '{ask['dt']}'
                               AND hour = {ask['at']}""").collect()[0][0]


class Polars:
    def read(self, ask: dict) -> dict:
        import polars as pl
        scope = {}
        exec(ask['text'], scope)
        df = scope['df']
        some = pl.col('dt') == datetime.date.fromisoformat(ask['dt'])
        if ask['hour']:
            some &= pl.col('hour') == ask['at']
        groups = df.group_by('partition').agg(pl.len(), pl.col('payload').count().alias('payloads'))
        return {'types': {name: str(kind) for name, kind in df.schema.items()}, 'rows': plain(df.rows(), ask['hour']),
                'groups': groups.rows(), 'some': scope['scan'].filter(some).select(pl.len()).collect().item()}

    def spared(self, ask: dict) -> int:
        import polars as pl
        scan = unread(ask['spoiled'])['scan']
        some = (pl.col('dt') == datetime.date.fromisoformat(ask['dt'])) & (pl.col('hour') == ask['at'])
        return scan.filter(some).select(pl.col('offset').count()).collect().item()


class PyArrow:
    def read(self, ask: dict) -> dict:
        import pyarrow.dataset as ds
        scope = {}
        exec(ask['text'], scope)
        df = scope['df']
        some = ds.field('dt') == datetime.date.fromisoformat(ask['dt'])
        if ask['hour']:
            some &= ds.field('hour') == ask['at']
        groups = df.group_by('partition').aggregate([([], 'count_all'), ('payload', 'count')]).to_pydict()
        return {'types': {field.name: str(field.type) for field in df.schema},
                'rows': plain([row.values() for row in df.to_pylist()], ask['hour']),
                'groups': list(zip(groups['partition'], groups['count_all'], groups['payload_count'])),
                'some': scope['dataset'].count_rows(filter=some) if 'dataset' in scope else df.filter(some).num_rows}

    def spared(self, ask: dict) -> int:
        import pyarrow.dataset as ds
        dataset = unread(ask['spoiled'])['dataset']
        some = (ds.field('dt') == datetime.date.fromisoformat(ask['dt'])) & (ds.field('hour') == ask['at'])
        return dataset.to_table(filter=some).num_rows


class Pandas(PyArrow):
    def read(self, ask: dict) -> dict:
        scope = {}
        exec(ask['text'], scope)
        df = scope['df']
        some = df['dt'].astype(str) == ask['dt']
        if ask['hour']:
            some &= df['hour'] == ask['at']
        groups = df.groupby('partition')['payload'].agg(['size', 'count'])
        types = {name: str(kind) for name, kind in df.dtypes.items()}
        values = df.astype(object).where(df.notna(), None).itertuples(index=False)
        return {'types': types, 'rows': plain(values, ask['hour']), 'some': int(some.sum()),
                'groups': [[name, int(row['size']), int(row['count'])] for name, row in groups.iterrows()]}


def expect_failure(read) -> None:
    """A whole read of a spoiled lake has to fail, or a partial one that doesn't says nothing."""
    try:
        read()
    except Exception:
        return
    raise AssertionError('the spoiled object was read')


def unread(text: str) -> dict:
    """What a script has defined by the time it fails to read an object."""
    scope = {}
    with contextlib.suppress(Exception):
        exec(text, scope)
    if 'df' in scope:
        raise AssertionError('the spoiled object was read')
    return scope


def plain(rows, hour: bool) -> list:
    """Rows of a data frame with ts in microseconds and dt as text."""
    told = []
    for partition, offset, transaction_id, ts, payload, dt, *at in rows:
        us = (ts - ZERO) // datetime.timedelta(microseconds=1)
        told.append([partition, int(offset), transaction_id, us, payload, str(dt)[:10], int(at[0]) if hour else None])
    return told


ENGINES = {'duckdb': DuckDb, 'clickhouse': ClickHouse, 'spark': Spark, 'polars': Polars, 'pyarrow': PyArrow,
           'pandas': Pandas}


def main() -> None:
    # Engines print where they like: the answers have the descriptor that was standard output, and nothing else has.
    out = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    asks = json.load(sys.stdin)
    engine = ENGINES[sys.argv[1]]()
    for ask in asks:
        answer = {'cell': ask['cell'], 'queue': ask['queue']}
        try:
            answer |= engine.read(ask)
        except Exception as e:
            lines = [line.strip() for line in str(e).splitlines() if line.strip()]
            answer['error'] = f'{type(e).__name__}: {lines[0] if lines else ""}'[:400]
        if 'spoiled' in ask:
            answer['spared'] = None
            with contextlib.suppress(Exception):
                answer['spared'] = engine.spared(ask)
        out.write(json.dumps(answer) + '\n')
        out.flush()
    with contextlib.suppress(AttributeError):
        engine.db.stop()


if __name__ == '__main__':
    main()
