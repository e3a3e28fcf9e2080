#!/usr/bin/python3
"""make readers: what real readers make of lakes that the sink wrote; tests/readers/MATRIX.md says it.

A log of a few hundred records in two queues, with fixed times over two days, is mirrored into a lake for each format,
layout and alignment of LAKES. Each engine reads each lake through the very text that `queen-s3 ddl` prints (engines.py,
one process for each engine), and what it finds is held against the log: counts by queue and partition, null payloads,
the order within objects, a hash over all rows, what lies under one dt (and hour), and the columns' types.
"""
import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/integration'))
import installed  # noqa: E402
import lake  # noqa: E402
from devbroker import DevBroker  # noqa: E402
from processes import BUILD, group, until  # noqa: E402
from sink import Sink, command, file_lake  # noqa: E402

MATRIX = ROOT / 'tests/readers/MATRIX.md'
DAY = lake.micros('2026-03-07T00:00:00.000000Z')
QUEUES = ('orders', 'clicks & views')
DELAYS = (0, 1, 1_000, 999_999, 7_000_123, 600_000_001)

CODECS = {'jsonl zstd': {}, 'jsonl gzip': {'QUEEN_S3_COMPRESSION': 'gzip'},
          'jsonl none': {'QUEEN_S3_COMPRESSION': 'none'}, 'parquet zstd': {'QUEEN_S3_FORMAT': 'parquet'},
          'parquet snappy': {'QUEEN_S3_FORMAT': 'parquet', 'QUEEN_S3_PARQUET_CODEC': 'snappy'}}
# (form, layout, align): each format in each layout, and each alignment with each format once.
LAKES = [(form, layout, 'hour') for form in CODECS for layout in ('merged', 'per-partition')] + \
    [('jsonl gzip', 'merged', 'day'), ('parquet zstd', 'per-partition', 'day'),
     ('jsonl gzip', 'per-partition', 'none'), ('parquet zstd', 'merged', 'none')]
# Where it is looked at whether a condition on dt and hour spares the objects elsewhere.
SPARING = [('jsonl gzip', 'merged', 'hour'), ('parquet zstd', 'merged', 'hour')]

ENGINES = {'duckdb': ('duckdb',), 'pyarrow': ('pyarrow',), 'polars': ('polars',),
           'pandas': ('pandas', 'pyarrow', 'zstandard'), 'clickhouse': ('chdb',), 'spark': ('pyspark',)}
TITLES = {'duckdb': 'DuckDB', 'pyarrow': 'PyArrow', 'polars': 'Polars', 'pandas': 'pandas',
          'clickhouse': 'ClickHouse (chDB)', 'spark': 'Spark (PySpark)'}
# What each calls the types of offset, ts and payload. (Spark's timestamp is a moment, whatever the session's zone.)
TYPES = {'duckdb': (r'BIGINT', r'TIMESTAMP WITH TIME ZONE', r'VARCHAR'),
         'pyarrow': (r'int64', r'timestamp\[us, tz=UTC\]', r'(large_)?string'),
         'polars': (r'Int64', r"Datetime\(time_unit='us', time_zone='UTC'\)", r'String'),
         'pandas': (r'int64', r'datetime64\[us, UTC\]', r'object|str|string'),
         'clickhouse': (r'Int64', r"DateTime64\(6, 'UTC'\)", r'Nullable\(String\)'),
         'spark': (r'bigint', r'timestamp', r'string')}
PAYLOADS = [
    'null', '{"a":1}', '12345678901234567890123456789.000000000000000000001', '1e400', '-0.0', '1.10', '"null"', '""',
    '"caf\u00e9 \U0001f600 \u65e5\u672c\u8a9e"', r'"caf\u00e9 \ud83d\ude00"', r'"tab\t quote\" back\\slash sol\/idus"',
    '{"deep":{"er":[[[{"x":[1,2,{"y":null}]}]]],"t":true,"f":false}}', '{ "spaced" : [ 1 , 2 ] }',
    r'{"text":",\"payload\":null}","payload":{"payload":"}"}}', '{"id":9007199254740993,"big":18446744073709551616}',
    'true', '[]', '"line\u2028separator and 100% \'quoted\', with a comma"', '{"\u00fc":"\u00df","":0}', '1E-7',
    '{"a":1,"a":2}', '[null,"null",{"null":null}]']
PARTITIONS = {'orders': ['eu/west', 'caf\u00e9', "o'hara & s\u00f8ns", '100%', '50%2F', 'a=b', '#7', 'q"uote, {brace}'],
              'clicks & views': ['eu/west', '\u65e5\u672c', 'x*y?[z]', 'back\\slash', '..']}


def make_log(queue: str) -> list[lake.Record]:
    """Records at awkward but fixed times: bursts of one ts, quiet hours, the last microsecond before midnight."""
    records = []
    hours = (1, 9, 23, 24, 33, 47)
    for p, partition in enumerate(PARTITIONS[queue]):
        offset = 3 * p
        for h in hours[p % 2:]:
            for i in range(2 + (p + h) % 5 + (queue == 'orders') * 2):
                ts = DAY + h * lake.HOUR + DELAYS[i % len(DELAYS)] + (p * 1_000_003 if i % 2 else 0)
                if h in (23, 47) and i == 0 and p % 3 == 0:
                    ts = DAY + (h + 1) * lake.HOUR - 1
                ts = max(ts, records[-1].ts if records and records[-1].partition == partition else 0)
                payload = PAYLOADS[len(records) % len(PAYLOADS)]
                records.append(lake.Record(partition, offset, f't-{p}-{offset} "\u00e9"', ts, payload))
                offset += 1
    return records


def packages() -> list[str]:
    """What the engines need, of PyPI."""
    return sorted({name for names in ENGINES.values() for name in names})


@dataclasses.dataclass
class Lake:
    name: str
    form: str
    layout: str
    align: str
    environment: dict
    # By queue: where each record (partition, offset) lies: the object's key and its dt and hour.
    where: dict[str, dict] = dataclasses.field(default_factory=dict)

    @property
    def hour(self) -> bool:
        return self.align != 'day'

    @property
    def title(self) -> str:
        return f'{self.form}, {self.layout}, {self.align}'

    @property
    def sparing(self) -> bool:
        return (self.form, self.layout, self.align) in SPARING


@dataclasses.dataclass
class Matrix:
    cells: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)  # (lake, engine): ok, or a fault
    spares: dict[tuple[str, str], bool] = dataclasses.field(default_factory=dict)
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)            # by engine
    records: int = 0

    @property
    def faults(self) -> list[str]:
        return [f'{engine}, {at}: {word}' for (at, engine), word in self.cells.items() if word != 'ok']

    def table(self) -> str:
        lines = ['| lake | ' + ' | '.join(TITLES[e] for e in ENGINES) + ' |', '|---' * (len(ENGINES) + 1) + '|']
        for title in (', '.join(form) for form in LAKES):
            words = []
            for engine in ENGINES:
                word = self.cells.get((title, engine), 'not run')
                words.append(word if word in ('ok', 'not run') else 'fault')
            lines.append(f'| {title} | ' + ' | '.join(words) + ' |')
        return '\n'.join(lines) + '\n'

    def sparing(self) -> str:
        lines = ['| lake | ' + ' | '.join(TITLES[e] for e in ENGINES) + ' |', '|---' * (len(ENGINES) + 1) + '|']
        for title in map(', '.join, SPARING):
            words = [{True: 'yes', False: 'no', None: 'not run'}[self.spares.get((title, e))] for e in ENGINES]
            lines.append(f'| {title} | ' + ' | '.join(words) + ' |')
        return '\n'.join(lines) + '\n'

    def text(self) -> str:
        versions = ', '.join(f'{name} {installed.VERSIONS[name]}' for name in packages())
        reasons = [f'- {TITLES[engine]}, not run: {why}' for engine, why in self.skipped.items()]
        reasons += [f'- {fault}' for fault in self.faults]
        return f'''# Readers

What real readers make of lakes that queen-s3 wrote: `make readers` writes this file.

A log of {self.records} records in {len(QUEUES)} queues, over two days, is mirrored into a lake for each line (format
and compression, layout, alignment). Each reader reads it through the text that `queen-s3 ddl` prints for it, unchanged,
and has to find: the records of each partition and how many of their payloads are null; all rows, by a hash over
partition, offset, transaction id, ts in microseconds, payload as text, dt and hour; the order of offsets within each
object; what lies under one dt (and hour) alone; offset as a 64-bit integer, ts as a moment in UTC, payload as text.

{self.table()}
Does a condition on dt and hour leave the other objects unread? Asked of the same lakes with another hour's object
spoiled. (The scripts for PyArrow and pandas read JSON Lines object by object, and Polars takes dt from the path as it
reads: there fewer paths do it.)

{self.sparing()}
Versions, from PyPI: {versions}; Spark on Java 17.

What isn't ok, and why:

{chr(10).join(reasons) or "- nothing"}

Spark reads .zst text by itself from 4.1 on; before that it wants Hadoop's native library, built with zstd.

No payload of this log has a lone surrogate such as `\\ud800`: strict JSON parsers, DuckDB's `payload::JSON` among them,
refuse it.
'''


def fill(folder: pathlib.Path, broker: DevBroker, made: Lake, logs: dict) -> None:
    with Sink(folder / f'sink-{made.name}', {
            'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': ','.join(QUEUES), 'QUEEN_S3_SINK': made.name,
            'QUEEN_S3_MAX_WINDOW_MS': '86400000', **made.environment}) as sink:
        sink.wait_records(sum(len(log) for log in logs.values()))
        if sink.terminate() != 0:
            raise AssertionError(sink.text())
    root = folder / made.name
    for queue, log in logs.items():
        where = made.where[queue] = {}
        for path in sorted((root / f'queen/queue={lake.escape(queue)}').rglob('w-*')):
            key = path.relative_to(root).as_posix()
            dt, hour = re.search(r'/dt=([^/]+)', key)[1], re.search(r'/hour=([^/]+)', key)
            extension = key.rsplit('/', 1)[1].split('.', 1)[1] if made.form.startswith('jsonl') else 'parquet'
            extension = extension[extension.index('jsonl'):] if 'jsonl' in extension else extension
            for record in lake.read_object(path.read_bytes(), extension, queue, made.form.split()[1]):
                where[record.partition, record.offset] = key, dt, int(hour[1]) if hour else None
        if len(where) != len(log):
            raise AssertionError(f'{made.title}: {len(where)} records of {queue}, in the log {len(log)}')


def spoil(folder: pathlib.Path, made: Lake) -> None:
    """A copy of the lake in another bucket, its last object of the first queue unreadable. (place() takes another.)"""
    shutil.copytree(folder / made.name, folder / f'{made.name}-spoiled')
    last = max(made.where[QUEUES[0]].values())
    if last[1:] == place(made, QUEUES[0]):
        raise AssertionError(f'{made.title}: the last object is the one to ask for')
    (folder / f'{made.name}-spoiled' / last[0]).write_bytes(b'spoiled ' * 100)


def expected_rows(made: Lake, queue: str, log: list[lake.Record]) -> list[tuple]:
    return [(r.partition, r.offset, r.transaction_id, r.ts, None if r.payload == 'null' else r.payload,
             *made.where[queue][r.partition, r.offset][1:]) for r in log]


def digest(rows: list[tuple]) -> str:
    lines = sorted(json.dumps(row, ensure_ascii=True) for row in rows)
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()


def place(made: Lake, queue: str) -> tuple[str, int]:
    """The dt and hour to ask for: those with the fewest records, so that an answer can't be right by chance."""
    counts = collections.Counter((dt, hour) for _, dt, hour in made.where[queue].values())
    return min(counts, key=lambda at: (counts[at], at[0], at[1] or 0))


def judge(engine: str, made: Lake, queue: str, log: list[lake.Record], answer: dict) -> str:
    """'ok', or what is wrong first."""
    if 'error' in answer:
        return answer['error']
    want = expected_rows(made, queue, log)
    rows = [tuple(row) for row in answer['rows']]
    groups = {name: (count, payloads) for name, count, payloads in answer['groups']}
    counts = {name: (sum(r[0] == name for r in want), sum(r[0] == name and r[4] is not None for r in want))
              for name in {r[0] for r in want}}
    if groups != counts:
        return f'{queue}: counts by partition {groups}, in the log {counts}'
    if digest(rows) != digest(want):
        differ = sorted(set(rows) ^ set(want), key=repr)[:2]
        return f'{queue}: rows differ from the log ({len(rows)} for {len(want)}), such as {differ!r:.300}'
    last: dict[str, tuple] = {}
    for partition, offset, *_ in rows:
        key = made.where[queue][partition, offset][0]
        here = partition.encode(), offset
        if last.get(key, here) > here:
            return f'{queue}: {key} is read out of order at {partition!r}/{offset}'
        last[key] = here
    dt, hour = place(made, queue)
    some = sum(row[5:] == (dt, hour) for row in want)
    if answer['some'] != some:
        return f'{queue}: {answer["some"]} records under dt {dt} and hour {hour}, in the lake {some}'
    for column, pattern in zip(('offset', 'ts', 'payload'), TYPES[engine]):
        if not re.fullmatch(pattern, answer['types'].get(column, '')):
            return f'{column} is {answer["types"].get(column)}'
    return 'ok'


def run_apart(command_line: list, asks: str, folder: pathlib.Path, environment: dict[str, str], log: pathlib.Path
              ) -> tuple[int, str]:
    """Exit code and output of a program, once it and all that it started have ended: PySpark leaves its virtual machine
    to end by itself."""
    with open(log, 'w') as errors, subprocess.Popen(command_line, cwd=folder, stdin=subprocess.PIPE,
                                                    stdout=subprocess.PIPE, stderr=errors, text=True, env=environment,
                                                    start_new_session=True) as program:
        try:
            output, _ = program.communicate(asks, timeout=600)
            until(lambda: not group(program.pid), 'end of all that a reader started')
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    return program.returncode, output


def run_engine(engine: str, python: pathlib.Path, folder: pathlib.Path, lakes: list[Lake],
               logs: dict) -> tuple[dict[str, str], dict[str, bool]]:
    """The engine's cell for each lake, by title, and whether it spares objects elsewhere."""
    asks = []
    for made in lakes:
        for queue in QUEUES:
            printed = command(made.environment, 'ddl', engine, queue)
            if printed.returncode:
                raise AssertionError(printed.stderr.decode())
            dt, hour = place(made, queue)
            asks.append({'cell': made.title, 'queue': queue, 'text': printed.stdout.decode(), 'hour': made.hour,
                         'dt': dt, 'at': hour})
            if made.sparing and queue == QUEUES[0]:
                spoiled = {**made.environment, 'QUEEN_S3_BUCKET': f'{made.name}-spoiled'}
                asks[-1]['spoiled'] = command(spoiled, 'ddl', engine, queue).stdout.decode()
    scratch = folder / f'scratch-{engine}'
    scratch.mkdir()
    environment = {'PATH': os.environ['PATH'], 'HOME': str(scratch), 'TMPDIR': str(scratch), 'TZ': 'America/New_York',
                   'LC_ALL': 'C.UTF-8', 'PYSPARK_PYTHON': str(python), 'SPARK_LOCAL_IP': '127.0.0.1',
                   'POLARS_MAX_THREADS': '2', 'OMP_NUM_THREADS': '1'}
    environment |= {'JAVA_HOME': os.environ['JAVA_HOME']} if 'JAVA_HOME' in os.environ else {}
    code, output = run_apart([python, ROOT / 'tests/readers/engines.py', engine], json.dumps(asks), scratch,
                             environment, folder / f'{engine}.log')
    answers = [json.loads(line) for line in output.splitlines()]
    last = ((folder / f'{engine}.log').read_text(errors='replace').strip().splitlines() or ['no output'])[-1]
    found = {(a['cell'], a['queue']): a for a in answers}
    missing = {'error': f'the reader ended with {code}: {last}'}
    cells: dict[str, str] = {}
    for made in lakes:
        words = [judge(engine, made, q, logs[q], found.get((made.title, q), missing)) for q in QUEUES]
        cells[made.title] = next((word for word in words if word != 'ok'), 'ok')
    spares = {title: answer['spared'] == answer.get('some') for (title, _), answer in found.items()
              if answer.get('spared', 0) is not None and 'spared' in answer}
    return cells, spares


def engine_python(engine: str) -> pathlib.Path:
    """SkipTest where it can't run here."""
    if engine == 'spark' and not shutil.which('java') and 'JAVA_HOME' not in os.environ:
        raise unittest.SkipTest('there is no Java')
    # One installation for all: the first one asks for everything.
    return installed.python(*packages())


@contextlib.contextmanager
def lakes_of_the_log():
    """The folder, the lakes and the logs by queue."""
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix='readers-', ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        arguments: list = ['--safe-lag-ms', 0]
        for i, queue in enumerate(QUEUES):
            path = folder / f'log-{i}.jsonl'
            lines = (lake.record_line(record) + '\n' for record in make_log(queue))
            path.write_text(''.join(lines), encoding='utf-8', newline='\n')
            arguments += ['--load-log', path, '--queue', queue]
        with DevBroker(folder, *arguments) as broker:
            logs = {queue: broker.log(queue) for queue in QUEUES}
            for queue in QUEUES:
                if sorted(logs[queue]) != sorted(make_log(queue)):
                    raise AssertionError(f'{queue}: the broker has another log than was loaded')
            lakes = []
            for i, (form, layout, align) in enumerate(LAKES):
                made = Lake(f'lake-{i}', form, layout, align, {
                    **file_lake(folder, f'lake-{i}'), 'QUEEN_S3_LAYOUT': layout, 'QUEEN_S3_ALIGN': align,
                    **CODECS[form]})
                lakes.append(made)
            # A drain waits more than it works: some at a time.
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda made: fill(folder, broker, made, logs), lakes))
        for made in lakes:
            if made.sparing:
                spoil(folder, made)
        yield folder, lakes, logs


def run_matrix(engines=tuple(ENGINES), tell=lambda line: None) -> Matrix:
    matrix = Matrix()
    pythons = {}
    for engine in engines:
        try:
            pythons[engine] = engine_python(engine)
        except unittest.SkipTest as e:
            matrix.skipped[engine] = str(e)
    with lakes_of_the_log() as (folder, lakes, logs):
        matrix.records = sum(len(log) for log in logs.values())
        tell(f'{len(lakes)} lakes of {matrix.records} records')
        for engine, python in pythons.items():
            cells, spares = run_engine(engine, python, folder, lakes, logs)
            matrix.spares |= {(title, engine): spares.get(title, False) for title in map(', '.join, SPARING)}
            matrix.cells |= {(title, engine): word for title, word in cells.items()}
            tell(f'{TITLES[engine]}: ' + ', '.join(f'{count} {word}' for word, count in collections.Counter(
                word if word == 'ok' else 'fault' for word in cells.values()).items()))
    return matrix


def main() -> int:
    engines = tuple(sys.argv[1:]) or tuple(ENGINES)
    matrix = run_matrix(engines, lambda line: print(line, flush=True))
    for engine, why in matrix.skipped.items():
        print(f'skipped: {TITLES[engine]}: {why}')
    for fault in matrix.faults:
        print(f'fault: {fault}')
    print(matrix.table() + matrix.sparing(), end='')
    if engines == tuple(ENGINES):
        MATRIX.write_text(matrix.text())
    return 1 if matrix.faults or not matrix.cells else 0


if __name__ == '__main__':
    sys.exit(main())
