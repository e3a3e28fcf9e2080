"""Where a queue starts: what its documents, its lake and its checkpoints say, and what happens when they say something
else than they should."""
import json
import signal
import time
import unittest

import zstandard

import lake
import mirror

# The log of these lies hours back: a single window an hour, whatever the moment at which it is read.
OLD = ('--base-time', '2026-01-05T10:20:00.000000Z', '--segment-records', 10)


class OriginTest(mirror.MirrorTest):
    pushed = 0

    def push(self, broker, count: int = 50, queue: str = 'orders') -> None:
        broker.push(mirror.records(count, first=self.pushed, queue=queue))
        self.pushed += count

    def files(self, prefix: str = 'queen', queue: str = 'orders') -> dict[str, bytes]:
        """All of the queue's lake, by key."""
        root = self.lake_folder / prefix
        found = [*(root / f'queue={queue}').rglob('*'), *(root / f'_queen/{queue}').rglob('*')]
        return {p.relative_to(self.lake_folder).as_posix(): p.read_bytes() for p in found if p.is_file()}

    def mirror_some(self, broker, **environment):
        """A lake of a few windows; the sink is stopped."""
        sink = self.sink(broker, **environment)
        for _ in range(4):
            self.push(broker)
            self.wait_mirrored(broker, sink, self.pushed)
        self.assertEqual(sink.terminate(), 0)
        self.assertGreaterEqual(len(self.manifests()), 4)
        return sink

    def put(self, broker, which: str, value) -> None:
        broker.call('PUT', '/_dev/kv', {f's3:default:orders:{which}': value})

    # Pointers

    def test_a_lost_pointer_stops_the_queue_alone(self):
        broker = self.broker(queues=('orders', 'clicks'))
        sink = self.sink(broker, QUEEN_S3_QUEUES='orders,clicks')
        for queue in ('orders', 'clicks'):
            self.push(broker, 60, queue)
            self.wait_mirrored(broker, sink, 60, queue)
        self.assertEqual(sink.terminate(), 0)
        before, pointer = self.files(), self.committed(broker)
        for start in ('earliest', 'latest'):
            with self.subTest(start=start):
                broker.kv({'op': 'delete', 'key': 's3:default:orders:committed'})
                broker.kv({'op': 'delete', 'key': 's3:default:orders:intent'})
                sink.start(QUEEN_S3_START=start)
                self.assertIn('recover', sink.wait_line('orders: stopped'))
                clicks = self.mirrored('clicks')
                for queue in ('orders', 'clicks'):
                    self.push(broker, 40, queue)
                self.wait_mirrored(broker, sink, clicks + 40, 'clicks')
                self.assertEqual(self.files(), before)
                self.assertEqual(self.committed(broker), {})
                self.assertIsNone(broker.document('orders', 'lease'), 'a queue that is stopped gives its lease back')
                self.assertEqual(sink.terminate(), 0)
        self.put(broker, 'committed', pointer)
        sink.start()
        for queue in ('orders', 'clicks'):
            self.wait_mirrored(broker, sink, queue=queue)
        self.assertEqual(sink.terminate(), 0)
        for queue in ('orders', 'clicks'):
            self.hold(broker, queue)

    def test_pointers_that_cannot_be_true(self):
        broker = self.broker()
        sink = self.mirror_some(broker)
        before = self.files()
        pointer, intent = self.committed(broker), broker.document('orders', 'intent')
        end = lake.micros(pointer['tEnd'])
        above = {**intent, 'k': pointer['k'] + 2, 'tStart': end, 'tEnd': end + 1_000_000}
        self.push(broker)
        for which, value in (('committed', 'garbage'), ('committed', None), ('committed', []), ('committed', {}),
                             ('committed', {**pointer, 'k': '4'}), ('committed', {**pointer, 'k': -1}),
                             ('committed', {**pointer, 'k': 1.5}), ('committed', {**pointer, 'tEnd': 'yesterday'}),
                             ('committed', {**pointer, 'tEnd': None}), ('intent', above), ('intent', 7),
                             ('intent', {**above, 'k': pointer['k'] + 1, 'tEnd': end}),
                             ('intent', {**above, 'k': pointer['k'] + 1, 'format': 'csv'})):
            with self.subTest(which=which, value=value):
                self.put(broker, 'committed', pointer)
                self.put(broker, 'intent', intent)
                self.put(broker, which, value)
                sink.start()
                self.assertIn('recover', sink.wait_line('orders: stopped'))
                self.assertEqual(sink.terminate(), 0)
                self.assertEqual(self.files(), before)
        self.put(broker, 'committed', pointer)
        self.put(broker, 'intent', intent)
        sink.start()
        self.wait_mirrored(broker, sink)
        sink.terminate()
        self.hold(broker)

    def test_another_sinks_lake(self):
        broker = self.broker()
        self.mirror_some(broker)
        before = self.files()
        for start in ('earliest', 'latest'):
            with self.subTest(start=start):
                other = self.sink(broker, QUEEN_S3_SINK='other', QUEEN_S3_START=start)
                self.assertIn('two sinks never share', other.wait_line('orders: stopped'))
                self.assertEqual(other.terminate(), 0)
                self.assertEqual(self.files(), before)
        self.hold(broker)

    # A redo

    def redo_with_other_settings(self, point: str, **changes) -> None:
        log = self.folder / 'old.ndjson'
        log.write_text(''.join(f'{{"n":{i}}}\n' for i in range(300)))
        broker = self.broker('--load', log, *OLD)
        sink = self.sink(broker, QUEEN_S3_CRASH_AT=point, QUEEN_S3_LEASE_TTL_MS='1000')
        self.assertEqual(sink.wait(), -signal.SIGKILL)
        intent = broker.document('orders', 'intent')
        sink.start(QUEEN_S3_CRASH_AT='never', **changes)
        self.wait_mirrored(broker, sink, 300)
        self.hold(broker)
        self.assertEqual(broker.document('orders', 'intent'), intent)
        self.assertEqual(len([key for key in self.files() if '/w-' in key]), 1)
        # What comes now follows the settings of now.
        self.push(broker)
        self.prefix = changes.get('QUEEN_S3_PREFIX', self.prefix)
        sink.program.wait_for(lambda: self.committed(broker).get('k') == 2, 'second window')
        self.assertEqual(sink.terminate(), 0)
        m = next(m for m in self.manifests() if m['k'] == 2)
        self.assertEqual(m['records'], 50)
        compression, align = changes.get('QUEEN_S3_COMPRESSION', 'zstd'), changes.get('QUEEN_S3_ALIGN', 'hour')
        self.assertEqual(m['compression'], compression)
        self.assertEqual([e['key'] for e in m['objects']],
                         [lake.expected_key(m, e, self.prefix, align) for e in m['objects']])

    def test_redo_with_another_compression(self):
        self.redo_with_other_settings('after_intent', QUEEN_S3_COMPRESSION='gzip')

    def test_redo_with_another_alignment(self):
        self.redo_with_other_settings('mid_upload', QUEEN_S3_ALIGN='day', QUEEN_S3_COMPRESSION='none')

    def test_redo_without_alignment(self):
        self.redo_with_other_settings('after_upload', QUEEN_S3_ALIGN='none')

    def test_redo_under_another_prefix(self):
        self.redo_with_other_settings('mid_upload', QUEEN_S3_PREFIX='elsewhere', QUEEN_S3_COMPRESSION='gzip')

    def test_redo_under_another_prefix_with_the_manifest_up(self):
        self.redo_with_other_settings('before_commit', QUEEN_S3_PREFIX='elsewhere', QUEEN_S3_ALIGN='day')

    # START

    def test_latest_skips_the_past_and_nothing_else(self):
        """The first window is still open when the sink is killed, and again when it is stopped."""
        broker = self.broker()
        self.push(broker, 200)
        last = max(r.ts for r in broker.log('orders'))
        sink = self.sink(broker, start=False, QUEEN_S3_START='latest', QUEEN_S3_MAX_WINDOW_MS='600000',
                         QUEEN_S3_LEASE_TTL_MS='1000')
        sink.start()
        # T_0 is a safeTime: the past is what lies below it.
        began = sink.program.wait_for(lambda: self.committed(broker), 'T_0')
        self.assertEqual((began['k'], began['records'], began['manifest']), (0, 0, ''))
        start = lake.micros(began['tEnd'])
        self.assertLessEqual(start, last + 2_000_000)
        self.push(broker)
        sink.wait_metric('queen_s3_buffer_bytes', 1)
        sink.kill()
        self.push(broker)
        sink.start()
        sink.wait_metric('queen_s3_buffer_bytes', 1)
        self.push(broker)
        sink.terminate()
        self.assertEqual(self.committed(broker), began)
        self.assertEqual(self.manifests(), [])
        self.push(broker)
        wanted = sum(r.ts >= start for r in broker.log('orders'))
        self.assertGreaterEqual(wanted, 200)
        sink.start(QUEEN_S3_MAX_WINDOW_MS='300')
        self.wait_mirrored(broker, sink, wanted)
        sink.terminate()
        self.hold(broker, start=start)

    def test_earliest_of_an_empty_queue(self):
        """Healthy and idle until the first record comes; its hour is where the first window begins."""
        broker = self.broker()
        sink = self.sink(broker)
        sink.wait_metric('queen_s3_safe_lag_seconds', 0.001)
        before = broker.stats()['routes']['changed']['calls']
        sink.program.wait_for(lambda: broker.stats()['routes']['changed']['calls'] > before + 40, 'many passes')
        self.assertEqual(sink.health()[0], 200)
        self.assertEqual(self.committed(broker), {})
        self.push(broker)
        self.wait_mirrored(broker, sink, 50)
        self.assertEqual(sink.terminate(), 0)
        first = min(r.ts for r in broker.log('orders'))
        self.assertEqual(self.manifests()[0]['tStart'], first // lake.HOUR * lake.HOUR)
        self.hold(broker)

    # Checkpoints

    def checkpoints(self):
        return sorted((self.lake_folder / 'queen/_queen/orders/checkpoint').iterdir())

    def test_checkpoints_that_are_lost_broken_or_foreign(self):
        """A cache: whatever becomes of it, the lake is the log."""
        def lose(path):
            path.unlink()

        def cut(path):
            path.write_bytes(path.read_bytes()[:-9])

        def garble(path):
            path.write_bytes(b'{"k":1}')

        def change(path, **fields):
            document = json.loads(zstandard.decompress(path.read_bytes()))
            path.write_bytes(zstandard.compress(json.dumps({**document, **fields}).encode()))

        def of_another_time(path):
            # All of it read, it says; but its end is not that of its window's manifest.
            change(path, tEnd=int(time.time()) * 1_000_000, positions=[[f'p-{i}', 10 ** 6] for i in range(7)])

        def of_another_window(path):
            change(path, k=1, positions=[[f'p-{i}', 10 ** 6] for i in range(7)])

        def cut_positions(path):
            change(path, positions=[['p-0', 3], ['p-1']])

        def of_the_future(path):
            path.rename(path.with_name('0000009999.json.zst'))

        broker = self.broker()
        sink = self.mirror_some(broker, QUEEN_S3_CHECKPOINT_EVERY='2')
        for harm in (lose, cut, garble, of_another_time, of_another_window, cut_positions, of_the_future):
            with self.subTest(harm=harm.__name__):
                for path in self.checkpoints():
                    harm(path)
                self.push(broker)
                sink.start()
                self.wait_mirrored(broker, sink, self.pushed)
                self.assertEqual(sink.terminate(), 0)
                for path in self.checkpoints():
                    if int(path.name[:10]) != len(self.manifests()):
                        path.unlink()  # what the test broke is not what the sink wrote
                self.assertEqual(len(self.checkpoints()), 1)
                self.hold(broker)

    def test_at_most_two_checkpoints_are_kept(self):
        broker = self.broker('--rate', 1000, '--rate-records', 3000)
        sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1', QUEEN_S3_MAX_WINDOW_MS='150')
        self.wait_mirrored(broker, sink, 3000)
        self.assertEqual(sink.terminate(), 0)
        self.assertLessEqual(len(self.checkpoints()), 3)
        self.assertEqual(int(self.checkpoints()[-1].name[:10]), len(self.manifests()))
        self.hold(broker)


if __name__ == '__main__':
    unittest.main()
