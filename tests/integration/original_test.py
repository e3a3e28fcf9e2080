"""The original's lakes, reproduced: the same log gives the same windows, keys and lines, and a sink that is given the
original's pointers goes on from its lake.

The lakes are ../shared/data/original-lakes.tar.zst beside the project's root; where that is missing these tests are
skipped and say so.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import lake
from devbroker import DevBroker
from processes import BUILD, ROOT
from sink import Sink, command, file_lake

SHARED = pathlib.Path(os.environ.get('QUEEN_S3_SHARED', ROOT.parent / 'shared'))
ARCHIVE = SHARED / 'data/original-lakes.tar.zst'
SPELLED_ANEW = ('committedAt', 'objects', 'bytes', 'writer')


def unpack(folder: pathlib.Path) -> pathlib.Path:
    if not ARCHIVE.exists():
        raise unittest.SkipTest(f'the original lakes are not there ({ARCHIVE.name})')
    subprocess.run(f'zstd -qdc "{ARCHIVE}" | tar -x -C "{folder}"', shell=True, check=True)
    return folder


class OriginalTest(unittest.TestCase):
    def setUp(self):
        BUILD.mkdir(exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=BUILD, prefix='original-')
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.original = unpack(self.folder)

    def broker(self) -> DevBroker:
        broker = DevBroker(self.folder, '--queue', 'orders', '--load-log', self.original / 'log.jsonl')
        self.addCleanup(broker.stop)
        return broker

    def sink(self, broker: DevBroker, name: str, compression: str) -> Sink:
        sink = Sink(self.folder, {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': 'orders', 'QUEEN_S3_PREFIX': name,
                                  'QUEEN_S3_COMPRESSION': compression, 'QUEEN_S3_CHECKPOINT_EVERY': '2',
                                  **file_lake(self.folder, 'mine')})
        self.addCleanup(sink.kill)
        return sink

    def same_objects(self, name: str, ours_from: int = 1) -> None:
        """Keys, and lines byte for byte once decompressed. Windows below `ours_from` are the original's still."""
        ours, theirs = self.folder / 'mine', self.original / 'lake'
        keys = sorted(p.relative_to(theirs) for p in (theirs / name).rglob('w-*'))
        self.assertEqual(keys, sorted(p.relative_to(ours) for p in (ours / name).rglob('w-*')))
        self.assertTrue(keys)
        for key in keys:
            extension = key.name.split('.', 1)[1]
            have = lake.decompress((ours / key).read_bytes(), extension, foreign=int(key.name[2:12]) < ours_from)
            want = lake.decompress((theirs / key).read_bytes(), extension, foreign=True)
            self.assertEqual(have, want, key)

    def same_manifests(self, name: str) -> None:
        for path in sorted((self.original / 'lake' / name / '_queen/orders/windows').iterdir()):
            want = json.loads(path.read_text())
            have = json.loads((self.folder / 'mine' / path.relative_to(self.original / 'lake')).read_text())
            self.assertEqual(list(have), list(want), 'the order of keys')
            for field in have:
                if field not in SPELLED_ANEW:
                    self.assertEqual(have[field], want[field], field)
            self.assertEqual([(o['key'], o['records']) for o in have['objects']],
                             [(o['key'], o['records']) for o in want['objects']])

    def reproduce(self, name: str, compression: str) -> None:
        broker = self.broker()
        sink = self.sink(broker, name, compression)
        sink.wait_records(1422)
        self.assertEqual(sink.terminate(), 0)
        self.same_objects(name)
        self.same_manifests(name)
        lake.assert_lake(self, self.folder / 'mine', 'orders', prefix=name, log=broker.log('orders'), complete=True,
                         committed=broker.document('orders', 'committed'))

    def reproduce_parquet(self, name: str, **environment) -> None:
        """The same keys, and the same log once printed; sizes and hashes are this writer's own."""
        broker = self.broker()
        sink = Sink(self.folder, {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': 'orders', 'QUEEN_S3_PREFIX': name,
                                  'QUEEN_S3_FORMAT': 'parquet', 'QUEEN_S3_CHECKPOINT_EVERY': '2',
                                  **file_lake(self.folder, 'mine'), **environment})
        self.addCleanup(sink.kill)
        sink.wait_records(1422)
        self.assertEqual(sink.terminate(), 0)
        ours, theirs = self.folder / 'mine', self.original / 'lake'
        keys = [sorted(p.relative_to(where) for p in (where / name).rglob('w-*')) for where in (ours, theirs)]
        self.assertTrue(keys[0])
        self.assertEqual(keys[0], keys[1])
        printed = [command({**file_lake(where.parent, where.name), 'QUEEN_S3_PREFIX': name}, 'cat', 'orders')
                   for where in (ours, theirs)]
        self.assertEqual([p.returncode for p in printed], [0, 0], printed)
        self.assertEqual(printed[0].stdout, printed[1].stdout)
        lake.assert_lake(self, ours, 'orders', prefix=name, log=broker.log('orders'), complete=True,
                         committed=broker.document('orders', 'committed'))

    def test_parquet_zstd(self):
        self.reproduce_parquet('parquet-zstd')

    def test_parquet_snappy(self):
        self.reproduce_parquet('parquet-snappy', QUEEN_S3_PARQUET_CODEC='snappy')

    def test_per_partition(self):
        self.reproduce_parquet('per-partition', QUEEN_S3_LAYOUT='per-partition')

    def test_zstd(self):
        self.reproduce('jsonl-zstd', 'zstd')

    def test_gzip(self):
        self.reproduce('jsonl-gzip', 'gzip')

    def test_plain(self):
        self.reproduce('jsonl', 'none')

    def test_goes_on_from_the_originals_pointers(self):
        """Pointers, manifests and checkpoint as the original left them: the next window is the fourth."""
        broker = self.broker()
        shutil.copytree(self.original / 'lake/jsonl-zstd', self.folder / 'mine/jsonl-zstd')
        broker.call('PUT', '/_dev/kv', json.loads((self.original / 'kv/jsonl-zstd.json').read_text()))
        broker.push([{'queue': 'orders', 'partition': f'p-{i % 5}', 'transactionId': f't-{i}', 'payload': {'i': i}}
                     for i in range(100)])
        sink = self.sink(broker, 'jsonl-zstd', 'zstd')
        sink.program.wait_for(lambda: sink.metric('queen_s3_buffer_bytes') > 0 or
                              sink.metric('queen_s3_records_written_total') > 0, 'records read')
        broker.control('clock', addUs=3_600_000_000 + 6_000_000)
        sink.wait_records(100)
        self.assertEqual(sink.terminate(), 0)
        lake.assert_lake(self, self.folder / 'mine', 'orders', prefix='jsonl-zstd', log=broker.log('orders'),
                         complete=True, foreign=True, committed=broker.document('orders', 'committed'))
        last = json.loads((self.folder / 'mine/jsonl-zstd/_queen/orders/windows/0000000004.json').read_text())
        self.assertEqual((last['k'], last['records']), (4, 100))

    # Taken over in the middle: what the original wrote after its second window is taken away, and comes again.

    def take_over_at_two(self, name: str, compression: str, intent: bool, checkpoint: bool, objects: bool) -> Sink:
        broker = self.broker()
        shutil.copytree(self.original / f'lake/{name}', self.folder / f'mine/{name}')
        root = self.folder / f'mine/{name}'
        second = json.loads((root / '_queen/orders/windows/0000000002.json').read_text())
        documents = json.loads((self.original / f'kv/{name}.json').read_text())
        documents['s3:default:orders:committed'] = {
            'k': 2, 'tEnd': second['tEnd'], 'records': second['records'], 'bytes': second['bytes'],
            'manifest': f'{name}/_queen/orders/windows/0000000002.json', 'committedAtMs': 1795966751374}
        self.assertFalse({'align', 'prefix'} & set(documents['s3:default:orders:intent']))
        if not intent:
            documents['s3:default:orders:intent'] = {**documents['s3:default:orders:intent'], 'k': 2,
                                                     'tStart': second['tStart'], 'tEnd': second['tEnd']}
        broker.call('PUT', '/_dev/kv', documents)
        (root / '_queen/orders/windows/0000000003.json').unlink()
        if not objects:
            for path in root.glob('queue=orders/**/w-0000000003-*'):
                path.unlink()
        if not checkpoint:
            shutil.rmtree(root / '_queen/orders/checkpoint')
        third = sum(r.ts >= second['tEnd'] for r in broker.log('orders'))
        sink = self.sink(broker, name, compression)
        sink.wait_records(third)
        asked = broker.stats()['routes']['fetch']['entries']
        self.assertEqual(sink.terminate(), 0)
        self.same_objects(name, ours_from=3)
        self.same_manifests(name)
        lake.assert_lake(self, self.folder / 'mine', 'orders', prefix=name, log=broker.log('orders'), complete=True,
                         foreign=True, committed=broker.document('orders', 'committed'))
        if checkpoint:
            # Each partition is read from where the checkpoint says; none is sought, none is read again.
            self.assertLessEqual(asked, len({r.partition for r in broker.log('orders') if r.ts >= second['tEnd']}))
        return sink

    def test_goes_on_from_the_originals_checkpoint(self):
        self.take_over_at_two('jsonl-zstd', 'zstd', intent=False, checkpoint=True, objects=False)

    def test_goes_on_without_its_checkpoint(self):
        self.take_over_at_two('jsonl', 'none', intent=False, checkpoint=False, objects=False)

    def test_redoes_the_originals_window(self):
        sink = self.take_over_at_two('jsonl-gzip', 'gzip', intent=True, checkpoint=True, objects=True)
        self.assertIn('redoes window 3', sink.text())

    def test_redoes_the_originals_window_with_another_compression_set(self):
        sink = self.take_over_at_two('jsonl', 'gzip', intent=True, checkpoint=True, objects=False)
        self.assertIn('redoes window 3', sink.text())


if __name__ == '__main__':
    unittest.main()
