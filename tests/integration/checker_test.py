"""The tests' own lake check is itself held to account: it finds nothing in a whole lake, and something in each that
has one thing wrong."""
import hashlib
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import zstandard

import lake
from lake import HOUR, Record

BASE = 1788516000000000
ORIGINALS = pathlib.Path(__file__).resolve().parents[3] / 'shared/data/original-lakes.tar.zst'


def log() -> list[Record]:
    """Three partitions over three hours, with payloads and names that want escaping."""
    payloads = ['{"a":1}', 'null', '{\n "b" : [1e400,\t-0] }', '"\\ud800 \\/"', '[' * 2000 + ']' * 2000, '9' * 5000]
    return [Record(name, i, f'{name}-{i}', BASE + i * HOUR // 4 + n, payloads[(i + n) % len(payloads)])
            for n, name in enumerate(['b/"q"', 'a', 'caffè']) for i in range(12)]


def write_lake(folder: pathlib.Path, records: list[Record], layout: str = 'merged', hours: int = 3) -> None:
    """What a sink would have written, put together in the simplest way."""
    compress = zstandard.ZstdCompressor(level=3).compress
    for k in range(1, hours + 1):
        start, end = BASE + (k - 1) * HOUR, BASE + k * HOUR
        window = sorted((r for r in records if start <= r.ts < end), key=lambda r: (r.partition.encode(), r.offset))
        names = sorted({r.partition for r in window}, key=str.encode)
        groups = [window] if layout == 'merged' else [[r for r in window if r.partition == n] for n in names]
        manifest = {'sink': 'default', 'queue': 'orders', 'k': k, 'tStart': start, 'tEnd': end, 'format': 'jsonl',
                    'compression': 'zstd', 'layout': layout, 'objects': [], 'records': len(window), 'bytes': 0,
                    'partitions': len(names), 'minTs': min(r.ts for r in window), 'maxTs': max(r.ts for r in window),
                    'lost': [], 'writer': 'queen-s3/1.5.0 jsonl+zstd', 'committedAt': '2026-09-04T10:05:07.412000Z'}
        for group in groups:
            data = compress(''.join(lake.record_line(r._replace(payload=lake.one_line(r.payload))) + '\n'
                                    for r in group).encode())
            entry = {'records': len(group), 'bytes': len(data), 'sha256': hashlib.sha256(data).hexdigest()}
            if layout == 'per-partition':
                entry |= {'partition': group[0].partition, 'firstOffset': group[0].offset,
                          'lastOffset': group[-1].offset}
            entry['key'] = lake.expected_key(manifest, entry, 'queen', 'hour')
            manifest['objects'].append(entry)
            manifest['bytes'] += len(data)
            path = folder / entry['key']
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        write_manifest(folder, manifest)
    checkpoint = folder / 'queen/_queen/orders/checkpoint/0000000002.json.zst'
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    positions = [[name, 8] for name in sorted({r.partition for r in records}, key=str.encode)]
    checkpoint.write_bytes(compress(json.dumps({'k': 2, 'tEnd': BASE + 2 * HOUR, 'positions': positions}).encode()))


def manifest_path(folder: pathlib.Path, k: int) -> pathlib.Path:
    return folder / f'queen/_queen/orders/windows/{k:010d}.json'


def write_manifest(folder: pathlib.Path, manifest: dict) -> None:
    path = manifest_path(folder, manifest['k'])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(manifest))


def object_path(folder: pathlib.Path, k: int) -> pathlib.Path:
    return folder / json.loads(manifest_path(folder, k).read_text())['objects'][0]['key']


def rewrite(folder: pathlib.Path, k: int, change) -> None:
    """The lines of window k's object changed by `change`, and the manifest's bytes and hash with it."""
    path = object_path(folder, k)
    lines = lake.decompress(path.read_bytes(), 'jsonl.zst').decode().split('\n')[:-1]
    data = zstandard.ZstdCompressor().compress(''.join(line + '\n' for line in change(lines)).encode())
    path.write_bytes(data)
    manifest = json.loads(manifest_path(folder, k).read_text())
    manifest['objects'][0] |= {'bytes': len(data), 'sha256': hashlib.sha256(data).hexdigest()}
    manifest['bytes'] = len(data)
    write_manifest(folder, manifest)


def change_manifest(folder: pathlib.Path, k: int, **changes) -> None:
    write_manifest(folder, json.loads(manifest_path(folder, k).read_text()) | changes)


class Checker(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'lake'

    def faults(self, **options) -> list[str]:
        return lake.check(self.folder, 'orders', log=log(), complete=True, **options).faults

    def test_a_whole_lake_has_no_fault(self):
        for layout in ('merged', 'per-partition'):
            with self.subTest(layout=layout):
                shutil.rmtree(self.folder, ignore_errors=True)
                write_lake(self.folder, log(), layout)
                report = lake.assert_lake(self, self.folder, 'orders', log=log(), complete=True)
                self.assertEqual((report.windows, report.records), (3, 36))

    def test_each_fault_is_found(self):
        def swap(lines):
            return [lines[1], lines[0], *lines[2:]]

        def remove(name):
            return lambda f: manifest_path(f, 1).write_text(json.dumps(
                {k: v for k, v in json.loads(manifest_path(f, 1).read_text()).items() if k != name}))

        cases = {
            'order': ('out of order', lambda f: rewrite(f, 1, swap)),
            'a record twice': ('is in window', lambda f: rewrite(f, 1, lambda x: [*x, x[-1]])),
            'a record missing': ('missing', lambda f: rewrite(f, 2, lambda x: x[:-1])),
            'another payload': ('differs', lambda f: rewrite(f, 1, lambda x: [x[0].replace(':null}', ':true}'),
                                                                              *x[1:]])),
            'spelled otherwise': ('envelope', lambda f: rewrite(f, 1, lambda x: [x[0].replace('":"', '": "', 1),
                                                                                 *x[1:]])),
            'a needless escape': ('spelled', lambda f: rewrite(f, 1, lambda x: [x[0].replace('"a"', '"\\u0061"', 1),
                                                                                *x[1:]])),
            'payload no JSON': ('JSON', lambda f: rewrite(f, 1, lambda x: [x[0].replace(':null}', ':NaN}'),
                                                                           *x[1:]])),
            'a byte flipped': ('sha256', lambda f: object_path(f, 2).write_bytes(object_path(f, 2).read_bytes()[:-1])),
            'no object': ('FileNotFound', lambda f: object_path(f, 2).unlink()),
            'a stray object': ('no manifest names', lambda f: object_path(f, 2).with_name('x').write_bytes(b'')),
            'no manifest': ('expected 2', lambda f: manifest_path(f, 2).unlink()),
            'a stray manifest': ('stray', lambda f: manifest_path(f, 2).with_name('2.json').write_text('{}')),
            'overlap': ('before the end', lambda f: change_manifest(f, 2, tStart=BASE + HOUR - 1)),
            'straddles': ('straddles', lambda f: change_manifest(f, 3, tEnd=BASE + 3 * HOUR + 1)),
            'records': ('records', lambda f: change_manifest(f, 2, records=11)),
            'partitions': ('partitions', lambda f: change_manifest(f, 2, partitions=2)),
            'minTs': ('minTs', lambda f: change_manifest(f, 2, minTs=BASE)),
            'another queue': ('of queue', lambda f: change_manifest(f, 2, queue='clicks')),
            'writer': ('writer', lambda f: change_manifest(f, 2, writer='queen-s3/1.5.0 jsonl+gzip')),
            'field missing': ('has no lost', remove('lost')),
            'field too many': ('unknown', lambda f: change_manifest(f, 2, attempt=2)),
            'checkpoint': ('skips', lambda f: (f / 'queen/_queen/orders/checkpoint/0000000002.json.zst').write_bytes(
                zstandard.compress(json.dumps({'k': 2, 'tEnd': BASE + 2 * HOUR, 'positions': [['a', 9]]}).encode()))),
        }
        for name, (says, spoil) in cases.items():
            with self.subTest(name):
                shutil.rmtree(self.folder, ignore_errors=True)
                write_lake(self.folder, log())
                spoil(self.folder)
                faults = self.faults()
                self.assertTrue(any(says in fault for fault in faults), faults)

    def test_what_the_log_does_not_have(self):
        write_lake(self.folder, log() + [Record('z', 0, 'z', BASE, '1')])
        self.assertTrue(any('not in the log' in fault for fault in self.faults()))

    def test_lost_ranges_excuse(self):
        write_lake(self.folder, [r for r in log() if (r.partition, r.offset) != ('a', 5)])
        self.assertTrue(any("missing: 'a'/5" in fault for fault in self.faults()))
        change_manifest(self.folder, 2, lost=[{'partition': 'a', 'from': 5, 'to': 5}])
        self.assertEqual(self.faults(), [])

    def test_the_pointer(self):
        write_lake(self.folder, log())
        m = json.loads(manifest_path(self.folder, 3).read_text())
        committed = {'k': 3, 'tEnd': lake.iso(m['tEnd']), 'manifest': 'queen/_queen/orders/windows/0000000003.json',
                     'records': m['records'], 'bytes': m['bytes'], 'committedAtMs': 1}
        self.assertEqual(self.faults(committed=committed), [])
        for change in ({'k': 2}, {'tEnd': m['tEnd']}, {'records': 1}):
            self.assertEqual(len(self.faults(committed=committed | change)), 1, change)

    def test_names(self):
        self.assertEqual([lake.escape(n) for n in ('a/b', 'caffè', 'dt=x', '.', '..', '...', '~')],
                         ['a%2Fb', 'caff%C3%A8', 'dt%3Dx', '%2E', '%2E%2E', '...', '%7E'])
        self.assertEqual(lake.escape('x' * 160), 'x' * 160)
        self.assertEqual(lake.escape('x' * 161), 'x' * 143 + '~' + hashlib.sha256(b'x' * 161).hexdigest()[:16])
        self.assertEqual(lake.escape('x' + 'è' * 40)[:143], 'x' + '%C3%A8' * 23 + '%C3~')

    def test_the_lakes_of_the_original(self):
        if not ORIGINALS.exists():
            self.skipTest('../shared/data/original-lakes.tar.zst is not here')
        subprocess.run(['tar', '-C', self.folder.parent, '--zstd', '-xf', ORIGINALS], check=True, timeout=60)
        text = (self.folder.parent / 'log.jsonl').read_text('utf-8')
        records = [lake.line_record(line) for line in text.split('\n')[:-1]]
        for name in ('jsonl-zstd', 'jsonl-gzip', 'jsonl', 'parquet-zstd', 'parquet-snappy', 'per-partition'):
            with self.subTest(name):
                report = lake.assert_lake(self, self.folder, 'orders', name, log=records, foreign=True)
                self.assertEqual((report.windows, report.records), (3, 1422))


if __name__ == '__main__':
    unittest.main()
