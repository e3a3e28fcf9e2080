"""`recover`: a pointer that was lost is rebuilt from the manifests, and only then; the sink goes on from it with
nothing twice and nothing left out."""
import json
import signal
import unittest

import mirror
from processes import free_port, until
from sink import Sink, command, file_lake

KEY = 's3:default:orders:'
POINTS = ('after_intent', 'mid_upload', 'after_upload', 'before_commit')


class RecoverTest(mirror.MirrorTest):
    pushed = 0

    def push(self, broker, count: int, partitions: int = 7) -> None:
        broker.push(mirror.records(count, first=self.pushed, partitions=partitions))
        self.pushed += count

    def some_windows(self, broker, **environment) -> Sink:
        """A sink that has committed four windows or more (and a checkpoint), and has stopped."""
        sink = self.sink(broker, **environment)
        for _ in range(4):
            self.push(broker, 40)
            self.wait_mirrored(broker, sink, self.pushed)
        self.assertEqual(sink.terminate(), 0)
        self.assertIsNone(broker.document(self.queue, 'lease'))
        return sink

    def forget(self, broker, *which: str) -> dict:
        """Takes documents of the queue away; returns those there were."""
        had = {name: broker.document(self.queue, name) for name in ('intent', 'committed')}
        broker.kv(*({'op': 'delete', 'key': KEY + name} for name in which))
        return had

    def put(self, broker, which: str, value) -> None:
        broker.kv({'op': 'put', 'key': KEY + which, 'value': value, 'forever': True})

    def recover(self, broker, code: int, *arguments, **environment) -> str:
        """Exit code and all that it says."""
        result = command({'QUEEN_URL': broker if isinstance(broker, str) else broker.url,
                          **file_lake(self.folder, self.bucket), **environment}, 'recover', self.queue, *arguments)
        text = result.stdout.decode() + result.stderr.decode()
        self.assertEqual(result.returncode, code, text)
        for line in result.stderr.decode().splitlines():
            self.assertTrue(line.startswith('queen-s3: orders: '), line)
        return text

    def refused(self, broker, said: str, **environment) -> None:
        """With --yes too, and with nothing changed by it."""
        before = broker.call('GET', '/_dev/kv')
        text = self.recover(broker, 1, '--yes', **environment)
        self.assertIn(said, text)
        self.assertIn('; nothing was written\n', text)
        self.assertEqual(broker.call('GET', '/_dev/kv'), before)

    def recovered(self, broker) -> dict:
        """Shown first, then written: the pointer."""
        text = self.recover(broker, 0)
        self.assertIn('orders: holds: ', text)
        self.assertIn('nothing was written: --yes writes it', text)
        line = next(line for line in text.splitlines() if KEY in line)
        shown = json.loads(line[line.index('{'):])
        text = self.recover(broker, 0, '--yes')
        self.assertIn('orders: written; ', text)
        pointer = broker.document(self.queue, 'committed')
        self.assertEqual({**pointer, 'committedAtMs': 0}, {**shown, 'committedAtMs': 0})
        self.assertIsNone(broker.document(self.queue, 'lease'))
        return pointer

    def goes_on(self, broker, sink: Sink, **changes) -> None:
        """The sink that is started now brings the lake to what the log is."""
        before = {path: path.read_bytes() for path in self.lake_folder.rglob('*.json') if 'windows' in path.parts}
        sink.start(**changes)
        self.push(broker, 50)
        self.wait_mirrored(broker, sink, self.pushed)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)
        for path, text in before.items():
            self.assertEqual(path.read_bytes(), text, f'{path} was written again')

    # The way it is meant

    def lose(self, generation: int, start: str, **environment) -> None:
        broker = self.broker('--broker', generation)
        sink = self.some_windows(broker, **environment)
        had = broker.document(self.queue, 'committed')
        self.push(broker, 30)  # while nobody looks
        broker.call('DELETE', '/_dev/kv')
        # A sink alone stops, whatever START says.
        sink.start(QUEEN_S3_START=start)
        self.assertIn('queen-s3 recover', sink.wait_line('its pointer is gone'))
        self.assertEqual(sink.terminate(), 0)
        self.assertIsNone(broker.document(self.queue, 'committed'))
        pointer = self.recovered(broker)
        had.pop('committedAtMs')
        self.assertEqual({name: pointer[name] for name in had}, had)
        self.refused(broker, f'the pointer is there, at window {pointer["k"]}')
        self.goes_on(broker, sink)

    def test_lost_and_started_from_the_earliest(self):
        self.lose(1, 'earliest')

    def test_lost_and_started_from_the_latest(self):
        self.lose(1, 'latest')

    def test_lost_without_a_checkpoint(self):
        self.lose(1, 'latest', QUEEN_S3_CHECKPOINT_EVERY='1000')

    def test_lost_on_a_second_generation(self):
        self.lose(2, 'earliest')

    def test_lost_of_parquet_per_partition(self):
        self.lose(2, 'latest', QUEEN_S3_FORMAT='parquet', QUEEN_S3_LAYOUT='per-partition')

    def test_partitions_that_were_created_again(self):
        """Before the documents were lost, and between that and the recovery."""
        for generation in 1, 2:
            with self.subTest(generation=generation):
                self.setUp()
                self.pushed = 0
                broker = self.broker('--broker', generation)
                sink = self.some_windows(broker)
                broker.control('recreate', queue=self.queue, partition='p-0')
                self.push(broker, 3, partitions=1)
                broker.call('DELETE', '/_dev/kv')
                broker.control('recreate', queue=self.queue, partition='p-1')
                self.push(broker, 14)
                self.recovered(broker)
                sink.start()
                self.push(broker, 7)
                until(lambda: self.mirrored() == self.pushed, 'all of both lives in the lake')
                self.assertEqual(sink.terminate(), 0)
                self.assertEqual(self.hold_lossy(broker, told=0), 0)
                self.doCleanups()

    def test_a_window_that_was_begun(self):
        """The pointer alone is lost, at each step of a commit: the intent's window is redone, or is the last one."""
        broker = self.broker()
        sink = self.some_windows(broker, QUEEN_S3_LEASE_TTL_MS='1000')
        layouts = {'after_upload': 'per-partition'}
        for point in POINTS:
            with self.subTest(point=point):
                k = broker.document(self.queue, 'committed')['k']
                self.push(broker, 60)
                sink.start(QUEEN_S3_CRASH_AT=point, QUEEN_S3_LAYOUT=layouts.get(point, 'merged'))
                self.assertEqual(sink.wait(), -signal.SIGKILL)
                self.forget(broker, 'committed')
                until(lambda: broker.document(self.queue, 'lease') is None, 'end of the lease')
                pointer = self.recovered(broker)
                self.assertEqual(pointer['k'], k + 1 if point == 'before_commit' else k)
                self.goes_on(broker, sink, QUEEN_S3_CRASH_AT='never')

    def test_a_pointer_that_cannot_be_right(self):
        broker = self.broker()
        sink = self.some_windows(broker)
        had = self.forget(broker)
        intent, committed = had['intent'], had['committed']
        for value in ({'k': 'x'}, {'k': committed['k'], 'tEnd': 'yesterday'}, [], 'text', {**committed, 'k': 1}):
            with self.subTest(value=value):
                self.put(broker, 'committed', value)
                self.assertEqual(self.recovered(broker)['k'], committed['k'])
        # One that is behind, with nothing beside it that says so: the manifests do.
        self.forget(broker, 'intent')
        self.put(broker, 'committed', {**committed, 'k': 1})
        self.assertEqual(self.recovered(broker)['k'], committed['k'])
        self.refused(broker, f'the pointer is there, at window {committed["k"]}')
        self.put(broker, 'intent', intent)
        self.goes_on(broker, sink)

    def test_a_backup_that_was_restored(self):
        """Both documents are of an earlier time, and fit each other: a sink that went on from them would write the
        windows since then once more."""
        broker = self.broker()
        sink = self.sink(broker)
        backups = []
        for _ in range(5):
            self.push(broker, 40)
            self.wait_mirrored(broker, sink, self.pushed)
            backups.append({name: broker.document(self.queue, name) for name in ('committed', 'intent')})
        self.assertEqual(sink.terminate(), 0)
        last = backups[-1]['committed']['k']
        # Made after a commit, and in the middle of one.
        for committed, intent in ((backups[1], backups[1]), (backups[1], backups[2])):
            with self.subTest(k=committed['committed']['k'], intent=intent['intent']['k']):
                lake = {path: path.read_bytes() for path in self.lake_folder.rglob('*') if path.is_file()}
                self.put(broker, 'committed', committed['committed'])
                self.put(broker, 'intent', intent['intent'])
                self.push(broker, 30)
                sink.start()
                self.assertIn('queen-s3 recover', sink.wait_line('the pointer was set back'))
                self.assertEqual(sink.terminate(), 0)
                self.assertEqual({path: path.read_bytes() for path in lake}, lake)
                self.assertEqual(self.recovered(broker)['k'], last)
                self.goes_on(broker, sink)
                last = broker.document(self.queue, 'committed')['k']

    # What it refuses

    def test_a_lease_that_is_held(self):
        broker = self.broker()
        self.some_windows(broker)
        self.forget(broker, 'committed')
        broker.kv({'op': 'put', 'key': KEY + 'lease', 'value': {'instance': 'sink-7', 'incarnation': 'f' * 16},
                   'ttlSeconds': 60})
        self.refused(broker, 'instance sink-7 holds the lease: stop it, or wait')

    def test_an_intent_that_disagrees(self):
        broker = self.broker()
        self.some_windows(broker)
        had = self.forget(broker, 'committed')
        intent = had['intent']
        k = intent['k']
        for changes, said in (({'tStart': intent['tStart'] - 1}, f'the intent for window {k}, from '),
                              ({'tEnd': intent['tEnd'] + 1}, 'disagrees with the manifest of that window'),
                              ({'k': k + 1}, 'disagrees with the last window'),
                              ({'k': k - 1}, f'the intent for window {k - 1}, from '),
                              ({'k': k + 2}, f'the intent is for window {k + 2} and the last manifest is {k}'),
                              ({'prefix': 'elsewhere'}, 'the intent is for the prefix elsewhere: set QUEEN_S3_PREFIX'),
                              ({'k': None}, "an intent that can't be read")):
            with self.subTest(changes=changes):
                self.put(broker, 'intent', {**intent, **changes})
                self.refused(broker, said)
        self.put(broker, 'intent', intent)
        self.recovered(broker)

    def test_a_lake_that_is_not_whole(self):
        broker = self.broker()
        self.some_windows(broker)
        self.forget(broker, 'committed', 'intent')
        windows = self.lake_folder / 'queen/_queen/orders/windows'
        paths = sorted(windows.glob('*.json'))
        data = sorted(self.lake_folder.rglob('w-*'))
        bare = "the lake isn't whole, so no pointer can be made of it; nothing was written"
        for path, said in ((paths[1], 'the manifest is missing: expected window 2'),
                           (data[2], 'the object is missing: expected'),
                           (paths[-1], 'no manifest names it: window')):
            with self.subTest(missing=path.name):
                text = path.read_bytes()
                path.unlink()
                self.refused(broker, said)
                self.refused(broker, bare)
                path.write_bytes(text)
        # What a sink was writing when its intent was lost: it goes first.
        stray = data[-1].with_name(data[-1].name.replace(f'w-{len(paths):010}-', f'w-{len(paths) + 1:010}-'))
        stray.write_bytes(b'half of it')
        self.refused(broker, 'no manifest names it: window')
        stray.unlink()
        self.refused(broker, 'the lake is of the sink default: set QUEEN_S3_SINK, which is other',
                     QUEEN_S3_SINK='other')
        self.recovered(broker)

    def test_no_lake(self):
        broker = self.broker()
        self.lake_folder.mkdir()
        self.refused(broker, 'there is no window in bucket lake below queen: expected one')

    # What does not answer

    def test_a_broker_that_does_not_answer(self):
        broker = self.broker()
        self.some_windows(broker)
        self.forget(broker, 'committed')
        url = f'http://127.0.0.1:{free_port()}'
        self.assertIn('check QUEEN_URL', self.recover(url, 3, '--yes'))
        broker.fault(route='kv', kind='status', status=403, count=1)
        self.assertIn('403', self.recover(broker, 3, '--yes'))
        self.assertIsNone(broker.document(self.queue, 'committed'))
        # What passes is asked again; an answer that is lost is looked after.
        broker.fault(route='kv', kind='status', status=503, count=2)
        broker.fault(route='kv', kind='reset-after', count=2, skip=1)
        self.assertIn('orders: written; ', self.recover(broker, 0, '--yes'))
        self.assertEqual(broker.document(self.queue, 'committed')['k'], len(self.manifests()))

    def test_arguments(self):
        for line, said in ((['recover'], 'an argument is missing'), (['recover', 'a', 'b'], 'unexpected argument b'),
                           (['recover', 'a', '--now'], 'unknown option --now')):
            with self.subTest(line=line):
                result = command(file_lake(self.folder), *line)
                self.assertEqual(result.returncode, 2)
                self.assertIn(said, result.stderr.decode())


if __name__ == '__main__':
    unittest.main()
