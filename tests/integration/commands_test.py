"""The commands that read, prove and describe a lake without a broker: windows, cat, verify, ddl, policy.

They are run on lakes that the sink wrote, into a folder and through the gateway, and on the original's six lakes
(../shared/data/original-lakes.tar.zst beside the project's root; skipped where that is missing). `ddl` is run in the
engines that installed.py puts into build/venv (duckdb, polars, pyarrow, pandas, chdb).
"""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import installed
import lake
import mirror
from devbroker import DevBroker
from gateway import Gateway
from processes import BUILD, ROOT, free_port
from sink import Sink, command, file_lake

SHARED = pathlib.Path(os.environ.get('QUEEN_S3_SHARED', ROOT.parent / 'shared'))
ORIGINAL = SHARED / 'data/original-lakes.tar.zst'
SEED = SHARED / 'seeds'
FORMS = {'zstd': {}, 'gzip': {'QUEEN_S3_COMPRESSION': 'gzip'}, 'none': {'QUEEN_S3_COMPRESSION': 'none'},
         'parquet': {'QUEEN_S3_FORMAT': 'parquet'},
         'snappy': {'QUEEN_S3_FORMAT': 'parquet', 'QUEEN_S3_PARQUET_CODEC': 'snappy'},
         'per-partition': {'QUEEN_S3_FORMAT': 'parquet', 'QUEEN_S3_LAYOUT': 'per-partition'}}
ORIGINALS = {'jsonl-zstd': 'zstd', 'jsonl-gzip': 'gzip', 'jsonl': 'none', 'parquet-zstd': 'parquet',
             'parquet-snappy': 'snappy', 'per-partition': 'per-partition'}
PACKAGES = 'duckdb', 'polars', 'pyarrow', 'pandas', 'zstandard', 'chdb'
TIME_LIMIT = 1200

# Reads the text of `ddl` on standard input in the engine that is named, and prints the rows as JSON, sorted by
# partition and offset: partition, offset, transaction_id, microseconds, payload, dt, hour, and the type of ts.
ENGINE = r'''
import datetime, json, sys
engine, table, text = sys.argv[1], sys.argv[2], sys.stdin.read()
if engine == 'duckdb':
    import duckdb
    db = duckdb.connect()
    db.execute(text)
    rows = db.sql(f'SELECT "partition", "offset", transaction_id, epoch_us(ts), payload, dt, hour, typeof(ts) '
                  f'FROM "{table}"').fetchall()
elif engine == 'chdb':
    from chdb import session
    db = session.Session()
    db.query('CREATE DATABASE d')
    db.query('USE d')
    db.query(text)
    out = db.query(f'SELECT partition, offset, transaction_id, toUnixTimestamp64Micro(ts), payload, dt, hour, '
                   f'toTypeName(ts) FROM "{table}"', 'JSONCompactEachRow').bytes().decode()
    rows = [json.loads(line) for line in out.splitlines()]
else:
    scope = {}
    exec(text, scope)
    df = scope['df']
    if engine == 'polars':
        rows, kind = df.rows(), str(df.schema['ts'])
    elif engine == 'pyarrow':
        rows, kind = [list(row.values()) for row in df.to_pylist()], str(df.schema.field('ts').type)
    else:
        rows = [list(row) for row in df.astype(object).where(df.notna(), None).itertuples(index=False)]
        kind = str(df['ts'].dtype)
    zero = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    rows = [[*row[:3], (row[3] - zero) // datetime.timedelta(microseconds=1), *row[4:], kind] for row in rows]
rows = [[row[0], int(row[1]), row[2], int(row[3]), row[4], str(row[5])[:10], int(row[6]), row[7]] for row in rows]
print(json.dumps(sorted(rows)))
'''


def lines_of(records: list[lake.Record]) -> list[bytes]:
    return [lake.record_line(r).encode() for r in records]


def by_name(records) -> list[lake.Record]:
    return sorted(records, key=lambda r: (r.partition.encode(), r.offset))


class CommandTest(unittest.TestCase):
    def run_command(self, environment: dict, *arguments, code: int = 0) -> str:
        """Standard output of a command that ends with `code`, and says why in one line where that isn't 0."""
        result = command(environment, *arguments)
        error = result.stderr.decode()
        self.assertEqual(result.returncode, code, error + result.stdout.decode(errors='replace')[-2000:])
        if code and arguments[0] != 'verify':
            self.assertRegex(error, r'\Aqueen-s3: [^\n]+\n\Z')
        elif not code:
            self.assertEqual(error, '')
        return result.stdout.decode()


class Lakes(CommandTest):
    """Lakes of a few windows that the sink wrote from one log, one for each form, made once."""

    @classmethod
    def setUpClass(cls):
        BUILD.mkdir(exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=BUILD, prefix='commands-', ignore_cleanup_errors=True)
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        broker = DevBroker(cls.folder, '--queue', 'orders', '--safe-lag-ms', 0)
        cls.addClassCleanup(broker.stop)
        broker.push(odd_records())
        for window in range(3):
            broker.push(mirror.records(400, partitions=11, size=300, first=window * 400))
            broker.control('clock', addUs=3_600_000_000)
        cls.log = broker.log('orders')
        cls.broker = broker

    @classmethod
    def environment(cls, form: str) -> dict:
        """Of the lake in that form, made when it is first asked for."""
        environment = {**file_lake(cls.folder), 'QUEEN_S3_PREFIX': form, **FORMS[form]}
        if not (cls.folder / 'lake' / form).exists():
            cls.fill(environment, form)
        return environment

    @classmethod
    def fill(cls, environment: dict, name: str) -> None:
        with Sink(cls.folder / f'sink-{name}', {'QUEEN_URL': cls.broker.url, 'QUEEN_S3_QUEUES': 'orders',
                                                'QUEEN_S3_SINK': name, 'QUEEN_S3_CHECKPOINT_EVERY': '2',
                                                'QUEEN_S3_MAX_WINDOW_MS': '86400000', **environment}) as sink:
            sink.wait_records(len(cls.log))
            if sink.terminate() != 0:
                raise AssertionError(sink.text())


def odd_records() -> list[dict]:
    payloads = [None, 'text', '', 'null', 1.5, [], {'a': {'b': [1, '}', ',"payload":']}}, 'caff\u00e8 \U0001f600',
                {'q"uote': '\\'}, False]
    names = ['a/b', 'caff\u00e8', 'q"', 'back\\slash', '..', 'x,"payload":y']
    return [{'queue': 'orders', 'partition': name, 'transactionId': f'{name}-{i}', 'payload': payload}
            for name in names for i, payload in enumerate(payloads)]


class ReadTest(Lakes):
    def test_every_form(self):
        self.assertGreater(len(self.log), 1200)
        for form in FORMS:
            with self.subTest(form):
                environment = self.environment(form)
                windows = [json.loads(line) for line in
                           self.run_command(environment, 'windows', 'orders', '--json').splitlines()]
                self.assertEqual([w['k'] for w in windows], list(range(1, len(windows) + 1)))
                self.assertEqual(sum(w['records'] for w in windows), len(self.log))
                expected = []
                for w in windows:
                    expected += by_name(r for r in self.log if w['tStart'] <= r.ts < w['tEnd'])
                self.assertEqual(self.run_command(environment, 'cat', 'orders').encode().split(b'\n')[:-1],
                                 lines_of(expected))
                for deep in [], ['--deep']:
                    said = self.run_command(environment, 'verify', 'orders', *deep)
                    self.assertRegex(said, rf'\Aorders: holds.*: {len(windows)} windows, 1 to {len(windows)}, .* '
                                           rf'{len(self.log)} records .* 0 lost\n\Z')

    def test_table(self):
        environment = self.environment('zstd')
        lines = self.run_command(environment, 'windows', 'orders').splitlines()
        windows = [json.loads(line) for line in
                   self.run_command(environment, 'windows', 'orders', '--json').splitlines()]
        self.assertEqual(lines[0].split(), ['k', 'from', 'to', 'records', 'bytes', 'partitions', 'lost', 'objects'])
        for line, w in zip(lines[1:], windows):
            self.assertEqual(line.split(), [str(w['k']), lake.iso(w['tStart']), lake.iso(w['tEnd']),
                                            str(w['records']), str(w['bytes']), str(w['partitions']), '0', '1'])
        self.assertEqual(lines[-1].split(), [str(len(windows)), 'windows', str(len(self.log)),
                                             str(sum(w['bytes'] for w in windows)), '0', str(len(windows))])
        self.assertEqual(len(lines), len(windows) + 2)

    def test_filters(self):
        for form in 'zstd', 'parquet', 'per-partition':
            with self.subTest(form):
                environment = self.environment(form)
                windows = [json.loads(line) for line in
                           self.run_command(environment, 'windows', 'orders', '--json').splitlines()]
                second = windows[1]
                inside = [r for r in self.log if second['tStart'] <= r.ts < second['tEnd']]
                self.assertEqual(self.run_command(environment, 'cat', 'orders', '--window', 2).splitlines(),
                                 [lake.record_line(r) for r in by_name(inside)])
                for name in 'p-3', 'caff\u00e8', 'x,"payload":y':
                    said = self.run_command(environment, 'cat', 'orders', '--partition', name)
                    self.assertEqual(said.encode().split(b'\n')[:-1],
                                     lines_of(by_name(r for r in self.log if r.partition == name)))
                since, until = sorted({r.ts for r in inside})[0] + 1, windows[2]['maxTs']
                expected = [r for r in self.log if since <= r.ts < until]
                for first, last in (str(since), str(until)), (lake.iso(since), lake.iso(until)):
                    said = self.run_command(environment, 'cat', 'orders', f'--since={first}', '--until', last)
                    self.assertEqual(sorted(said.encode().split(b'\n')[:-1]), sorted(lines_of(expected)))
                said = self.run_command(environment, 'windows', 'orders', '--json', '--since', second['tStart'],
                                        '--until', second['tEnd'])
                self.assertEqual([json.loads(line)['k'] for line in said.splitlines()], [2])

    def test_a_window_beside_the_stretch(self):
        """It is there, so nobody is told that it isn't."""
        environment = self.environment('none')
        second = json.loads(self.run_command(environment, 'windows', 'orders', '--json').splitlines()[1])
        for options, said in (([2, '--until', second['tStart']], 'no window 2 in that stretch of time'),
                              ([9], 'no window 9 in bucket')):
            result = command(environment, 'cat', 'orders', '--window', *options)
            self.assertEqual(result.returncode, 1)
            self.assertIn(said, result.stderr.decode())

    def test_only_what_can_match_is_read(self):
        """The objects of other windows and partitions may as well not be there."""
        environment = self.environment('per-partition')
        bucket = self.folder / 'part'
        shutil.copytree(self.folder / 'lake', bucket, dirs_exist_ok=True)
        self.addCleanup(shutil.rmtree, bucket)
        for path in (bucket / 'per-partition').rglob('w-*'):
            if not path.name.startswith('w-0000000002-') or '-p-p-3-' not in path.name:
                path.unlink()
        environment = {**environment, 'QUEEN_S3_BUCKET': 'part'}
        said = self.run_command(environment, 'cat', 'orders', '--window', 2, '--partition', 'p-3')
        self.assertGreater(len(said.splitlines()), 10)
        self.run_command(environment, 'cat', 'orders', code=1)

    def test_closed_pipe(self):
        environment = self.environment('none')
        whole = {'PATH': os.environ['PATH'], **environment}
        whole.update({k: v for k, v in os.environ.items() if k.endswith('SAN_OPTIONS')})
        for arguments in (['cat', 'orders'], ['windows', 'orders']):
            with subprocess.Popen([BUILD / 'queen-s3', *arguments], env=whole, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                process.stdout.read(1)
                process.stdout.close()
                self.assertEqual(process.stderr.read(), b'')
                self.assertEqual(process.wait(30), 0)
        for arguments in (['cat', 'orders'], ['help'], ['help', 'cat'], ['cat', '--help'], ['version']):
            with self.subTest(arguments), open('/dev/full', 'wb') as full:
                result = subprocess.run([BUILD / 'queen-s3', *arguments], env=whole, stdin=subprocess.DEVNULL,
                                        stdout=full, stderr=subprocess.PIPE, timeout=30)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, rb'\Aqueen-s3: standard output: [^\n]+\n\Z')

    def test_gateway(self):
        gateway = Gateway(self.folder / 'gateway')
        self.addCleanup(gateway.stop)
        gateway.make_bucket('lake')
        for form in 'zstd', 'parquet', 'per-partition':
            with self.subTest(form):
                environment = {**gateway.sink_environment('lake'), 'QUEEN_S3_PREFIX': form, **FORMS[form]}
                self.fill(environment, f'gateway-{form}')
                said = self.run_command(environment, 'cat', 'orders').encode()
                self.assertEqual(sorted(said.split(b'\n')[:-1]), sorted(lines_of(self.log)))
                self.assertIn('holds, every record of it', self.run_command(environment, 'verify', '--deep', 'orders'))
                self.assertIn('holds', self.run_command(environment, 'verify', 'orders'))
                key = next((gateway.bucket('lake') / form).rglob('w-0000000002-*'))
                key.write_bytes(key.read_bytes()[:-1])
                said = self.run_command(environment, 'verify', 'orders', code=1)
                self.assertIn(f'{key.relative_to(gateway.bucket("lake"))}: it has ', said)
        wrong = {**environment, 'QUEEN_S3_SECRET_KEY': 'wrong'}
        for name in 'windows', 'cat', 'verify':
            self.run_command(wrong, name, 'orders', code=3)


class LargeTest(mirror.MirrorTest, CommandTest):
    """Objects of many blocks, which are read a few at a time."""

    def test_large_objects(self):
        broker = self.broker(safe_lag_ms=0)
        chance = random.Random(1)
        for i in range(40):
            broker.push([{'queue': 'orders', 'partition': f'p-{i % 3}', 'transactionId': f't-{i}',
                          'payload': {'random': chance.randbytes(260_000 + i).hex()}}])
        log = broker.log('orders')
        for form in 'none', 'zstd', 'parquet':
            with self.subTest(form):
                environment = {**file_lake(self.folder), 'QUEEN_S3_PREFIX': form, **FORMS[form]}
                sink = self.sink(broker, form, QUEEN_S3_MAX_WINDOW_MS='86400000', QUEEN_S3_SINK=form, **environment)
                broker.control('clock', addUs=3_600_000_000)
                sink.wait_records(len(log))
                self.assertEqual(sink.terminate(), 0)
                said = self.run_command(environment, 'cat', 'orders').encode()
                self.assertEqual(said.split(b'\n')[:-1], lines_of(by_name(log)))
                self.assertIn('holds, every record', self.run_command(environment, 'verify', '--deep', 'orders'))
                key = next((self.folder / 'lake' / form).rglob('w-*'))
                self.assertGreater(key.stat().st_size, 8 << 20)
                self.assertEqual(len(self.run_command(environment, 'cat', 'orders', '--partition', 'p-2').splitlines()),
                                 13)
                with open(key, 'r+b') as file:
                    file.seek(7 << 20)
                    byte = file.read(1)
                    file.seek(7 << 20)
                    file.write(bytes([byte[0] ^ 4]))
                said = self.run_command(environment, 'verify', '--deep', 'orders', code=1)
                self.assertRegex(said, rf'{key.name}: sha256')


class OriginalTest(CommandTest):
    def test_six_lakes(self):
        if not ORIGINAL.exists():
            self.skipTest(f'the original lakes are not there ({ORIGINAL.name})')
        BUILD.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD, prefix='commands-original-') as folder:
            subprocess.run(f'zstd -qdc "{ORIGINAL}" | tar -x -C "{folder}"', shell=True, check=True)
            log = sorted(pathlib.Path(folder, 'log.jsonl').read_bytes().split(b'\n')[:-1])
            printed = set()
            for name in ORIGINALS:
                environment = {**file_lake(pathlib.Path(folder)), 'QUEEN_S3_PREFIX': name}
                said = self.run_command(environment, 'cat', 'orders').encode()
                self.assertEqual(sorted(said.split(b'\n')[:-1]), log, name)
                printed.add(said)
                self.assertIn('holds, every record of it: 3 windows, 1 to 3',
                              self.run_command(environment, 'verify', '--deep', 'orders'))
                self.assertIn('1422', self.run_command(environment, 'windows', 'orders').splitlines()[-1])
            self.assertEqual(len(printed), 1, 'the six lakes print the same lines in the same order')


class DamageTest(Lakes):
    """One thing wrong at a time, in a copy of a lake; what verify says of it."""

    def damage(self, form: str = 'none'):
        """The prefix's folder of a fresh copy, and its environment."""
        environment = self.environment(form)
        bucket = self.folder / 'damaged'
        shutil.rmtree(bucket, ignore_errors=True)
        shutil.copytree(self.folder / 'lake' / form, bucket / form)
        self.addCleanup(shutil.rmtree, bucket, ignore_errors=True)
        return bucket / form, {**environment, 'QUEEN_S3_BUCKET': 'damaged'}

    def found(self, environment: dict, *patterns: str, deep: bool = True, shallow: bool = True) -> str:
        """verify (with --deep, or without it too) tells of each pattern in a line of its own, and nothing else."""
        for options, finds in ([], shallow), (['--deep'], deep):
            said = self.run_command(environment, 'verify', *options, 'orders', code=1 if finds else 0)
            faults = [line for line in said.splitlines() if line.startswith('fault: ')]
            if not finds:
                self.assertEqual(faults, [])
                continue
            for pattern in patterns:
                self.assertTrue(any(re.search(pattern, line) for line in faults), f'no {pattern} in:\n{said}')
            self.assertEqual(len(faults), len(patterns), said)
            self.assertRegex(said.splitlines()[-1], rf'orders: {len(faults)} faults? in \d+ windows')
        return said

    def manifest(self, folder: pathlib.Path, k: int) -> pathlib.Path:
        return folder / f'_queen/orders/windows/{k:010d}.json'

    def edit(self, folder: pathlib.Path, k: int, **changes) -> None:
        path = self.manifest(folder, k)
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    def object(self, folder: pathlib.Path, k: int) -> pathlib.Path:
        return folder.parent / json.loads(self.manifest(folder, k).read_text())['objects'][0]['key']

    def rewrite(self, folder: pathlib.Path, k: int, lines: list[bytes], **changes) -> None:
        """The object anew from these lines, and its manifest as if that had always been so."""
        data = b''.join(line + b'\n' for line in lines)
        self.object(folder, k).write_bytes(data)
        manifest = json.loads(self.manifest(folder, k).read_text())
        manifest['objects'][0].update(bytes=len(data), records=len(lines), sha256=hashlib.sha256(data).hexdigest())
        manifest.update(bytes=len(data), records=len(lines), **changes)
        self.manifest(folder, k).write_text(json.dumps(manifest))

    def lines(self, folder: pathlib.Path, k: int) -> list[bytes]:
        return self.object(folder, k).read_bytes().split(b'\n')[:-1]

    def test_object_missing(self):
        for form in 'none', 'per-partition':
            folder, environment = self.damage(form)
            key = self.object(folder, 2)
            key.unlink()
            self.found(environment, rf'{re.escape(key.name)}: the object is missing')

    def test_object_cut(self):
        for form in 'zstd', 'parquet':
            folder, environment = self.damage(form)
            key = self.object(folder, 2)
            key.write_bytes(key.read_bytes()[:-7])
            self.found(environment, r'it has \d+ bytes: expected \d+')

    def test_object_longer(self):
        folder, environment = self.damage('gzip')
        key = self.object(folder, 1)
        key.write_bytes(key.read_bytes() + b'x')
        self.found(environment, r'it has \d+ bytes: expected \d+')

    def test_bit_flipped(self):
        for form in FORMS:
            with self.subTest(form):
                folder, environment = self.damage(form)
                key = self.object(folder, 2)
                data = bytearray(key.read_bytes())
                data[len(data) // 2] ^= 1
                key.write_bytes(data)
                said = self.run_command(environment, 'verify', '--deep', 'orders', code=1)
                self.assertRegex(said, rf'fault: \S*{re.escape(key.name)}: sha256 [0-9a-f]+: expected [0-9a-f]+')
                self.run_command(environment, 'verify', 'orders')

    def test_objects_swapped(self):
        folder, environment = self.damage()
        one, other = self.object(folder, 2), self.object(folder, 3)
        a, b = one.read_bytes(), other.read_bytes()
        one.write_bytes(b)
        other.write_bytes(a)
        said = self.run_command(environment, 'verify', '--deep', 'orders', code=1)
        self.assertIn(one.name, said)
        self.assertIn(other.name, said)

    def test_object_extra(self):
        folder, environment = self.damage()
        key = self.object(folder, 2)
        shutil.copy(key, key.with_name(key.name.replace('w-0000000002', 'w-0000000001')))
        (key.parent / 'notes.txt').write_text('x')
        self.found(environment, r'w-0000000001-\S+: no manifest names it', r'notes.txt: no manifest names it')

    def test_extra_file_among_the_manifests(self):
        folder, environment = self.damage()
        self.manifest(folder, 2).with_suffix('.bak').write_text('x')
        self.found(environment, r'0000000002.bak: no manifest or checkpoint has such a name')

    def test_manifest_missing(self):
        folder, environment = self.damage()
        self.manifest(folder, 2).unlink()
        self.found(environment, r'windows/0000000002.json: the manifest is missing',
                   r'w-0000000002-\S+: no manifest names it: expected one of window 2 that does')

    def test_what_is_listed_has_no_hole(self):
        """Who reads on behind a manifest that is missing leaves records out, so nobody does so unawares."""
        folder, environment = self.damage()
        third = json.loads(self.manifest(folder, 3).read_text())
        first = self.run_command(environment, 'cat', 'orders', '--window', 1)
        self.manifest(folder, 2).unlink()
        for arguments, printed in ((['cat', 'orders'], first.splitlines()), (['windows', '--json', 'orders'], [1])):
            result = command(environment, *arguments)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr.decode(), f'queen-s3: the manifest {folder.name}/_queen/orders/windows/'
                                                     '0000000002.json: missing, though window 3 is there\n')
            lines = result.stdout.decode().splitlines()
            self.assertEqual([json.loads(line)['k'] for line in lines] if printed == [1] else lines, printed)
        for arguments in ['cat', 'orders'], ['windows', 'orders']:
            self.run_command(environment, *arguments, '--since', third['tStart'])

    def test_first_and_last_manifest_missing(self):
        folder, environment = self.damage()
        last = len(list(self.manifest(folder, 1).parent.iterdir()))
        self.manifest(folder, 1).unlink()
        self.manifest(folder, last).unlink()
        said = self.run_command(environment, 'verify', 'orders', code=1)
        self.assertRegex(said, r'windows/0000000001.json: the manifest is missing')
        self.assertRegex(said, rf'w-{last:010d}-\S+: no manifest names it: window {last} is being written, or was')

    def test_manifest_is_none(self):
        folder, environment = self.damage()
        self.manifest(folder, 2).write_text('{"k":2')
        self.found(environment,
                   r'windows/0000000002.json: not a manifest: [^/]*: expected that of window 2 of the queue orders$',
                   r'w-0000000002-\S+: no manifest names it: expected one of window 2')
        self.run_command(environment, 'cat', 'orders', code=1)
        self.run_command(environment, 'windows', 'orders', code=1)

    def test_manifest_of_another_window(self):
        folder, environment = self.damage()
        shutil.copy(self.manifest(folder, 3), self.manifest(folder, 2))
        self.found(environment, r'windows/0000000002.json: it is that of window 3 of the queue orders: expected ',
                   r'w-0000000002-\S+: no manifest names it: expected one of window 2')

    def test_manifest_names_what_no_object_can_be_called(self):
        """A fault, and not a bucket that can't be reached: what follows is looked at too."""
        folder, environment = self.damage()
        entry = json.loads(self.manifest(folder, 2).read_text())['objects'][0]
        self.edit(folder, 2, objects=[{**entry, 'key': '../../etc/passwd'}])
        self.object(folder, 3).unlink()
        self.found(environment, r'windows/0000000002.json: it names the object ../../etc/passwd: expected ',
                   r' ../../etc/passwd: .* expected \d+ bytes', r'w-0000000003-\S+: the object is missing',
                   r'w-0000000002-\S+: no manifest names it: expected nothing of that name')

    def test_prefix_that_looks_like_an_hour(self):
        """The hour is a part of the key behind the prefix, and with windows of a day it is none."""
        folder, environment = self.damage()
        for path in list(folder.rglob('w-*')):
            path.rename(path.parent.parent / path.name)
            path.parent.rmdir()
        for path in self.manifest(folder, 1).parent.iterdir():
            path.write_text(re.sub(r'"none/(queue=orders/[^/]+/)hour=\d+/', r'"a/hour=7/\1', path.read_text()))
        (folder.parent / 'a').mkdir()
        folder.rename(folder.parent / 'a/hour=7')
        environment.update(QUEEN_S3_PREFIX='a/hour=7', QUEEN_S3_ALIGN='day')
        self.assertIn('holds', self.run_command(environment, 'verify', '--deep', 'orders'))

    def test_manifest_edited(self):
        folder, environment = self.damage()
        manifest = json.loads(self.manifest(folder, 2).read_text())
        for change, pattern, shallow in (
                ({'records': manifest['records'] + 1}, r'records \d+: expected \d+, what its objects add up to', True),
                ({'bytes': 1}, r'bytes 1: expected \d+', True),
                ({'partitions': manifest['partitions'] - 1},
                 r'windows/0000000002.json: partitions \d+: expected \d+, which its objects have', False),
                ({'minTs': manifest['minTs'] + 1},
                 r'windows/0000000002.json: records from .*: expected .*, as its objects have them', False),
                ({'maxTs': manifest['tEnd']}, r'expected them within the window', None),
                ({'sink': 'another'}, r'sink another: expected', True)):
            with self.subTest(**change):
                folder, environment = self.damage()
                self.edit(folder, 2, **change)
                if shallow is None:
                    self.assertRegex(self.run_command(environment, 'verify', 'orders', code=1), pattern)
                else:
                    self.found(environment, pattern, shallow=shallow)

    def test_windows_overlap(self):
        folder, environment = self.damage()
        before = json.loads(self.manifest(folder, 1).read_text())
        self.edit(folder, 2, tStart=before['tEnd'] - 1)
        said = self.run_command(environment, 'verify', 'orders', code=1)
        self.assertRegex(said, r'windows/0000000002.json: the window begins at .* window 1, or later: they overlap')
        self.assertRegex(said, r'it names the object \S+: expected \S+')

    def test_alignment(self):
        folder, environment = self.damage()
        manifest = json.loads(self.manifest(folder, 2).read_text())
        self.edit(folder, 2, tStart=manifest['tStart'] - 3_600_000_000)
        self.assertRegex(self.run_command(environment, 'verify', 'orders', code=1), r'expected it within one hour')

    def test_record_doubled(self):
        folder, environment = self.damage()
        lines = self.lines(folder, 2)
        self.rewrite(folder, 2, lines[:5] + lines[4:])
        self.found(environment, r'line 6, byte \d+: partition .*: once more behind', shallow=False)

    def test_record_missing(self):
        folder, environment = self.damage()
        lines = self.lines(folder, 2)
        manifest = json.loads(self.manifest(folder, 2).read_text())
        self.rewrite(folder, 2, lines[:5] + lines[6:])
        manifest['objects'][0]['records'] = len(lines)
        path = self.manifest(folder, 2)
        now = json.loads(path.read_text())
        now['objects'][0]['records'] = now['records'] = len(lines)
        path.write_text(json.dumps(now))
        self.found(environment, rf'{len(lines) - 1} records: expected {len(lines)}', shallow=False)

    def test_records_out_of_order(self):
        folder, environment = self.damage()
        lines = self.lines(folder, 2)
        lines[7], lines[8] = lines[8], lines[7]
        self.rewrite(folder, 2, lines)
        self.found(environment, r'line 9, byte \d+: partition .*: out of order behind', shallow=False)

    def test_record_in_two_windows(self):
        """As it is, it is outside of the second; with a time of it, its offset has been there."""
        folder, environment = self.damage()
        stray = next(line for line in self.lines(folder, 1) if b'"partition":"p-0","offset":1,' in line)
        lines = self.lines(folder, 3)
        at = next(i for i, line in enumerate(lines) if line.startswith(b'{"partition":"p-0"'))
        self.rewrite(folder, 3, lines[:at] + [stray] + lines[at:])
        said = self.run_command(environment, 'verify', '--deep', 'orders', code=1)
        self.assertRegex(said, r'partition p-0, offset 1: ts \S+: expected it in the window')
        ts = re.search(rb'"ts":"([^"]*)"', lines[at])[1]
        stray = re.sub(rb'"ts":"[^"]*"', b'"ts":"%s"' % ts, stray)
        self.rewrite(folder, 3, lines[:at] + [stray] + lines[at:])
        self.found(environment, r'partition p-0, offset 1: expected more than \d+, which window 2 has already',
                   shallow=False)

    def test_not_an_envelope(self):
        folder, environment = self.damage()
        lines = self.lines(folder, 2)
        lines[3] = lines[3].replace(b'"offset":', b'"offset": ')
        self.rewrite(folder, 2, lines)
        self.found(environment, r'line 4', shallow=False)
        self.assertIn('line 4', command(environment, 'cat', 'orders').stderr.decode())

    def test_per_partition_offsets(self):
        folder, environment = self.damage('per-partition')
        path = self.manifest(folder, 2)
        manifest = json.loads(path.read_text())
        manifest['objects'][0]['firstOffset'] += 1
        path.write_text(json.dumps(manifest))
        said = self.run_command(environment, 'verify', '--deep', 'orders', code=1)
        self.assertRegex(said, r'offsets \d+ to \d+: expected \d+ to \d+')
        self.assertRegex(said, r'it names the object \S+: expected \S+')

    def test_lost_is_told(self):
        folder, environment = self.damage()
        self.edit(folder, 2, lost=[{'partition': 'p-9', 'from': 3, 'to': 7}])
        said = self.run_command(environment, 'verify', '--deep', 'orders')
        self.assertIn('lost: window 2: partition p-9, offsets 3 to 7\n', said)
        self.assertRegex(said.splitlines()[-1], 'holds.* 5 lost')
        lines = self.run_command(environment, 'windows', 'orders').splitlines()
        self.assertEqual(lines[2].split()[6], '5')
        window = json.loads(self.run_command(environment, 'windows', 'orders', '--json').splitlines()[1])
        self.assertEqual(window['lost'], [{'partition': 'p-9', 'from': 3, 'to': 7}])

    def test_checkpoint_beyond_the_last_window(self):
        folder, environment = self.damage()
        checkpoints = sorted((folder / '_queen/orders/checkpoint').iterdir())
        shutil.copy(checkpoints[-1], checkpoints[-1].with_name('0000000099.json.zst'))
        self.found(environment, r'0000000099.json.zst: a checkpoint of window 99: its manifest is missing')

    def test_nobody_reads(self):
        """A reader that has gone makes nothing whole: 0 still means that all was looked at, and holds."""
        folder, environment = self.damage()
        self.assertEqual(self.unread(environment, 'verify', 'orders'), 0)
        self.object(folder, 2).unlink()
        for options in [], ['--deep']:
            self.assertEqual(self.unread(environment, 'verify', *options, 'orders'), 1)
        folder, environment = self.damage()
        self.edit(folder, 2, lost=[{'partition': f'p-{i}', 'from': 3, 'to': 7} for i in range(5000)])
        self.run_command(environment, 'verify', 'orders')
        self.assertEqual(self.unread(environment, 'verify', 'orders'), 1, 'it ended before all was proved')
        nowhere = {**environment, 'QUEEN_S3_QUEUES': 'orders', 'QUEEN_URL': f'http://127.0.0.1:{free_port()}'}
        self.assertEqual(self.unread(nowhere, 'check'), 3)

    def unread(self, environment: dict, *arguments) -> int:
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, 'wb') as pipe:
            return subprocess.run([BUILD / 'queen-s3', *arguments], env={'PATH': os.environ['PATH'], **environment},
                                  stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.DEVNULL,
                                  timeout=60).returncode

    def test_cat_of_damage(self):
        folder, environment = self.damage('parquet')
        key = self.object(folder, 2)
        whole = self.run_command(environment, 'cat', 'orders')
        data = bytearray(key.read_bytes())
        data[len(data) // 2] ^= 1
        key.write_bytes(data)
        result = command(environment, 'cat', 'orders')
        if result.returncode:
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr.decode(), rf'\Aqueen-s3: \S*{re.escape(key.name)}: [^\n]+\n\Z')
        self.assertTrue(result.stdout.decode(errors='replace')[:1000] == whole[:1000])
        key.unlink()
        self.assertIn(key.name, command(environment, 'cat', 'orders').stderr.decode())


class ExitCodeTest(CommandTest):
    def test_usage(self):
        environment = {'QUEEN_S3_ENDPOINT': 'file:///nowhere', 'QUEEN_S3_BUCKET': 'lake'}
        for arguments in (['windows'], ['windows', 'a', 'b'], ['windows', 'a', '--since', 'yesterday'],
                          ['windows', 'a', '--sinc', '1'], ['cat'], ['cat', 'a', '--window', '0'],
                          ['cat', 'a', '--window'], ['cat', ''], ['verify'], ['verify', 'a', '--deeper'],
                          ['ddl', 'duckdb'], ['ddl', 'oracle', 'a'], ['policy', 'x'], ['policy'], ['nothing'],
                          ['version', 'x'], ['run', 'x'], ['help', 'nothing']):
            with self.subTest(arguments):
                result = command(environment, *arguments)
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr.decode(), r'\Aqueen-s3: [^\n]+\n\Z')
                self.assertEqual(result.stdout, b'')

    def test_what_is_accepted_is_said(self):
        environment = {'QUEEN_S3_ENDPOINT': 'file:///nowhere', 'QUEEN_S3_BUCKET': 'lake'}
        for line, said in ((['ddl', 'oracle', 'a'], 'unknown engine oracle: expected duckdb, spark, trino, athena, '
                                                    'clickhouse, snowflake, polars, pyarrow or pandas'),
                           (['ddl', 'duckdb'], 'expected ddl ENGINE QUEUE'),
                           (['cat', 'a', '--since', '7', '--until', '2'],
                            '--until 2: expected a time after --since 7')):
            self.assertIn(said, command(environment, *line).stderr.decode())

    def test_settings(self):
        """What names the bucket is needed, and no more; what is set is checked."""
        s3 = {'QUEEN_S3_ENDPOINT': f'http://127.0.0.1:{free_port()}', 'QUEEN_S3_BUCKET': 'lake',
              'QUEEN_S3_REGION': 'eu-central-1', 'QUEEN_S3_ACCESS_KEY': 'k', 'QUEEN_S3_SECRET_KEY': 's',
              'QUEEN_S3_PATH_STYLE': 'true'}
        for name in s3:
            if name == 'QUEEN_S3_PATH_STYLE':
                continue
            for arguments in ['windows', 'a'], ['cat', 'a'], ['verify', 'a'], ['ddl', 'duckdb', 'a'], ['policy']:
                missing = {k: v for k, v in s3.items() if k != name}
                keys = name in ('QUEEN_S3_ACCESS_KEY', 'QUEEN_S3_SECRET_KEY')
                with self.subTest(name=name, arguments=arguments):
                    said = command(missing, *arguments).stderr.decode()
                    self.assertIn(name, said)
                    if keys and arguments[0] in ('ddl', 'policy'):
                        del missing['QUEEN_S3_SECRET_KEY' if 'ACCESS' in name else 'QUEEN_S3_ACCESS_KEY']
                        self.run_command(missing, *arguments)
        for arguments in ['windows', 'a'], ['cat', 'a'], ['verify', 'a'], ['ddl', 'duckdb', 'a'], ['policy']:
            with self.subTest(arguments=arguments):
                self.assertIn('QUEEN_S3_TARGET_MB', command({**s3, 'QUEEN_S3_TARGET_MB': '0'},
                                                            *arguments).stderr.decode())

    def test_unreachable(self):
        s3 = {'QUEEN_S3_ENDPOINT': f'http://127.0.0.1:{free_port()}', 'QUEEN_S3_BUCKET': 'lake',
              'QUEEN_S3_REGION': 'eu-central-1', 'QUEEN_S3_ACCESS_KEY': 'k', 'QUEEN_S3_SECRET_KEY': 's',
              'QUEEN_S3_PATH_STYLE': 'true'}
        self.run_command(s3, 'windows', 'orders', code=3)
        self.run_command(s3, 'verify', 'orders', code=3)
        with tempfile.TemporaryDirectory() as folder:
            nowhere = file_lake(pathlib.Path(folder), 'nothing')
            for name in 'windows', 'cat', 'verify':
                self.run_command(nowhere, name, 'orders', code=3)
            self.assertEqual(os.listdir(folder), [], 'reading makes no folder')
            os.mkdir(pathlib.Path(folder, 'nothing'))
            for name in 'windows', 'cat', 'verify':
                self.run_command(nowhere, name, 'orders', code=1)
            self.assertEqual(os.listdir(pathlib.Path(folder, 'nothing')), [])

    def test_names_that_act_or_hide(self):
        """What a person reads has them spelled out."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / 'lake').mkdir()
        name, spelled = '\x7f\u202esredro', r'\x7f\xe2\x80\xaesredro'
        broker = self.enterContext(DevBroker(folder))
        broker.push([{'queue': name, 'partition': 'p', 'payload': 1}])
        environment = {**file_lake(folder, 'lake'), 'QUEEN_URL': broker.url}
        for arguments in ['windows', name], ['cat', name], ['verify', name], ['recover', name], [name]:
            with self.subTest(arguments):
                result = command(environment, *arguments)
                self.assertIn(spelled, (result.stdout + result.stderr).decode())
                self.assertNotIn('\u202e', (result.stdout + result.stderr).decode())
        for queues, shown in (('*', [f'queues: * is 1 by now: {spelled}']),
                              (name + 'x', [f'queues={spelled}x', f'every minute: {spelled}x'])):
            with self.subTest(queues=queues):
                said = self.run_command({**environment, 'QUEEN_S3_QUEUES': queues}, 'check')
                for part in shown:
                    self.assertIn(part, said)
                self.assertNotIn('\u202e', said)

    def test_help(self):
        commands = re.findall(r'^  (\w+) ', self.run_command({}, 'help'), re.M)
        for name in 'run', 'windows', 'cat', 'verify', 'ddl', 'policy', 'version', 'help':
            self.assertIn(name, commands)
        for name in commands:
            said = self.run_command({}, 'help', name)
            self.assertTrue(said.startswith(f'usage: queen-s3 {name}'), said)
            self.assertEqual(self.run_command({}, name, '--help') if name != 'help' else said, said)
            self.assertFalse([line for line in said.splitlines() if len(line) > 120])


class PolicyTest(CommandTest):
    s3 = {'QUEEN_S3_ENDPOINT': 'https://s3.eu-central-1.amazonaws.com', 'QUEEN_S3_BUCKET': 'my-lake',
          'QUEEN_S3_REGION': 'eu-central-1'}

    def test_against_the_seed(self):
        document = json.loads(self.run_command(self.s3, 'policy'))
        by_action = {action: s for s in document['policy']['Statement'] for action in s['Action']}
        self.assertEqual(set(by_action), {'s3:ListBucket', 's3:PutObject', 's3:GetObject', 's3:AbortMultipartUpload',
                                          's3:DeleteObject'})
        self.assertNotIn('Condition', by_action['s3:ListBucket'])
        self.assertIn('404', document['why']['s3:ListBucket'])
        for s in document['policy']['Statement']:
            self.assertRegex(s['Sid'], r'\A[A-Za-z0-9]+\Z')
        self.assertEqual(document['lifecycle']['Rules'][0]['Filter'], {'Prefix': 'queen/'})
        self.assertIn('AbortIncompleteMultipartUpload', document['lifecycle']['Rules'][0])
        seeds = [p for p in SEED.glob('*.txt') if '"Version": "2012-10-17"' in p.read_text()] if SEED.is_dir() else []
        if not seeds:
            self.skipTest('the seed is not there: its policy was not compared')
        text = seeds[0].read_text()
        seed, _ = json.JSONDecoder().raw_decode(text[text.index('{\n  "Version": "2012-10-17"'):])
        for s in seed['Statement']:
            for action in s['Action']:
                self.assertEqual(by_action[action]['Resource'], s['Resource'], action)
                self.assertEqual(by_action[action]['Effect'], 'Allow')

    def test_kms(self):
        document = json.loads(self.run_command({**self.s3, 'QUEEN_S3_SSE': 'aws:kms',
                                                'QUEEN_S3_SSE_KMS_KEY_ID': 'abc'}, 'policy'))
        kms = document['policy']['Statement'][-1]
        self.assertEqual(set(kms['Action']), {'kms:GenerateDataKey', 'kms:Decrypt'})
        self.assertEqual(kms['Resource'], 'arn:aws:kms:eu-central-1:*:key/abc')


class HomeGateway(Gateway):
    region = 'us-east-1'  # ClickHouse takes another only from Amazon's host names, or from its configuration


class DdlTest(Lakes):
    def rows(self, engine: str, environment: dict, queue: str = 'orders', **keys: str) -> list:
        name = 'clickhouse' if engine == 'chdb' else engine
        text = self.run_command(environment, 'ddl', name, queue)
        for secret in 'QUEEN_S3_SECRET_KEY', 'QUEEN_S3_ACCESS_KEY':
            if environment.get(secret):
                self.assertNotIn(environment[secret], text)
        interpreter = installed.python(*PACKAGES)
        result = subprocess.run([interpreter, '-c', ENGINE, engine, queue], input=text.encode(), capture_output=True,
                                timeout=120, env={'PATH': os.environ['PATH'], 'HOME': str(self.folder), 'TZ': 'UTC',
                                                  **keys})
        self.assertEqual(result.returncode, 0, result.stderr.decode()[-2000:])
        return json.loads(result.stdout)

    def expect(self, rows: list) -> None:
        expected = sorted([r.partition, r.offset, r.transaction_id, r.ts, None if r.payload == 'null' else r.payload,
                           lake.iso(r.ts)[:10], int(lake.iso(r.ts)[11:13])] for r in self.log)
        self.assertEqual([row[:7] for row in rows], expected)
        self.assertRegex(rows[0][7], r'(?i)utc|with time zone')

    def run_engine(self, engine: str) -> None:
        for form in FORMS:
            with self.subTest(form):
                self.expect(self.rows(engine, self.environment(form)))

    def test_duckdb(self):
        self.run_engine('duckdb')

    def test_polars(self):
        self.run_engine('polars')

    def test_pyarrow(self):
        self.run_engine('pyarrow')

    def test_pandas(self):
        self.run_engine('pandas')

    def test_chdb(self):
        self.run_engine('chdb')

    def test_through_the_gateway(self):
        """Engines that have an S3 client of their own. (DuckDB loads one from its makers' site.)"""
        gateway = HomeGateway(self.folder / 'gateway-engines')
        self.addCleanup(gateway.stop)
        gateway.make_bucket('lake')
        keys = {'AWS_ACCESS_KEY_ID': gateway.access_key, 'AWS_SECRET_ACCESS_KEY': gateway.secret_key,
                'AWS_EC2_METADATA_DISABLED': 'true'}
        for form in 'zstd', 'parquet':
            environment = {**gateway.sink_environment('lake'), 'QUEEN_S3_PREFIX': form, **FORMS[form]}
            self.fill(environment, f'engines-{form}')
            for engine in 'polars', 'pyarrow', 'pandas', 'chdb':
                with self.subTest(form=form, engine=engine):
                    self.expect(self.rows(engine, environment, **keys))


if __name__ == '__main__':
    unittest.main()
