"""A broker, a sink and the lake between them, for tests of the whole way.

    class SomeTest(mirror.MirrorTest):
        def test_it(self):
            broker = self.broker('--rate', 2000)
            sink = self.sink(broker, QUEEN_S3_COMPRESSION='gzip')
            self.wait_mirrored(broker, sink)
            self.hold(broker)                     # the lake is the log
"""
import collections
import json
import pathlib
import tempfile
import unittest
from collections.abc import Sequence

import lake
from devbroker import DevBroker
from http_client import request
from processes import BUILD, DEADLINE
from sink import Sink, command, file_lake

# Windows of a few hundred milliseconds, so that a test sees many of them.
QUICK = {'QUEEN_S3_MAX_WINDOW_MS': '300', 'QUEEN_S3_DISCOVERY_INTERVAL_MS': '50', 'QUEEN_S3_SAFE_GUARD_MS': '50',
         'QUEEN_S3_LEASE_TTL_MS': '2000', 'QUEEN_S3_CHECKPOINT_EVERY': '3'}


class MirrorTest(unittest.TestCase):
    queue = 'orders'
    bucket = 'lake'
    prefix = 'queen'
    sink_name = 'default'

    def setUp(self):
        BUILD.mkdir(exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=BUILD, prefix=f'{type(self).__name__}-', ignore_cleanup_errors=True)
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def broker(self, *arguments, safe_lag_ms: int = 100, queues: Sequence[str] | None = None) -> DevBroker:
        """With `queues` (the test's own, unless told otherwise) there, if empty: a sink that finds none of a name comes
        back a minute later."""
        broker = DevBroker(self.folder, '--queue', self.queue, '--safe-lag-ms', safe_lag_ms, *arguments)
        self.addCleanup(broker.stop)
        for queue in (self.queue,) if queues is None else queues:
            broker.call('POST', '/api/v1/configure', {'queue': queue, 'options': {}})
        return broker

    def sink(self, broker: DevBroker, name: str = 'sink', start: bool = True, **environment) -> Sink:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        sink = Sink(folder, {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': self.queue, **QUICK,
                             **file_lake(self.folder, self.bucket), **environment}, start=start)
        self.addCleanup(sink.kill)
        return sink

    @property
    def lake_folder(self) -> pathlib.Path:
        return self.folder / self.bucket

    def manifests(self, queue: str | None = None) -> list[dict]:
        windows = self.lake_folder / self.prefix / '_queen' / lake.escape(queue or self.queue) / 'windows'
        return [json.loads(p.read_bytes()) for p in sorted(windows.glob('*.json'))]

    def committed(self, broker: DevBroker, queue: str | None = None) -> dict:
        """The broker's pointer; empty where there is none."""
        return broker.document(lake.escape(queue or self.queue), 'committed', self.sink_name) or {}

    def mirrored(self, queue: str | None = None) -> int:
        """Records in committed or manifested windows, and those told as lost."""
        return sum(m['records'] for m in self.manifests(queue))

    def wait_mirrored(self, broker: DevBroker, sink: Sink, count: int | None = None, queue: str | None = None,
                      deadline: float = DEADLINE) -> int:
        """Waits until the lake has as many records as the broker's log (which must have stopped growing), and the
        pointer stands at the last manifest."""
        wanted = len(broker.log(queue or self.queue)) if count is None else count

        def whole() -> bool:
            manifests = self.manifests(queue)
            return sum(m['records'] for m in manifests) >= wanted and \
                self.committed(broker, queue).get('k') == len(manifests)
        sink.program.wait_for(whole, f'{wanted} records in the lake', deadline)
        return wanted

    def hold(self, broker: DevBroker, queue: str | None = None, **options) -> lake.Report:
        """The lake is the log, whole."""
        name = queue or self.queue
        usual = {'log': broker.log(name), 'complete': True, 'committed': self.committed(broker, name)}
        return lake.assert_lake(self, self.lake_folder, name, prefix=self.prefix, sink=self.sink_name,
                                **{**usual, **options})

    def lake_records(self, queue: str | None = None) -> list[lake.Record]:
        """All that the manifests name, in order."""
        return [record for m in self.manifests(queue) for entry in m['objects'] for record in lake.read_object(
            (self.lake_folder / entry['key']).read_bytes(), lake.EXTENSION[m['format'], m['compression']],
            m['queue'], m['compression'])]

    def lost(self, queue: str | None = None) -> list[tuple[str, int, int, str | None]]:
        """(partition, from, to, life) of all ranges in the manifests."""
        return [(r['partition'], r['from'], r['to'], r.get('life')) for m in self.manifests(queue) for r in m['lost']]

    def hold_lossy(self, broker: DevBroker, queue: str | None = None, told: float | None = None) -> int:
        """The lake and what the manifests say is lost are together the whole log, also what is deleted by now: nothing
        is missing in silence, nothing is told twice, nothing is told that is there. `told` is what the metric says
        (None: not asked). Returns how many records are lost."""
        name = queue or self.queue
        whole = broker.log(name, deleted=True)
        there = {(r.partition, r.offset, r.ts) for r in self.lake_records(name)}
        missing = collections.Counter((r.partition, r.offset) for r in whole
                                      if (r.partition, r.offset, r.ts) not in there)
        lost = collections.Counter((partition, offset) for partition, first, last, _ in self.lost(name)
                                   for offset in range(first, last + 1))
        self.assertEqual(sorted(missing.items()), sorted(lost.items()), 'what is missing and what is told as lost')
        if told is not None:
            self.assertEqual(told, lost.total(), 'queen_s3_records_lost_total')
        self.hold(broker, name, log=[r for r in whole if (r.partition, r.offset, r.ts) in there])
        return lost.total()

    def hold_lines(self, broker: DevBroker, queue: str | None = None) -> list[bytes]:
        """The lines of all objects of a queue are those of the broker's export of its log, byte for byte, whatever
        window they are in. (Far faster than `hold`, for lakes of hundreds of megabytes.)"""
        queue = queue or self.queue
        name = ''.join(f'%{b:02X}' for b in queue.encode())
        answer = request('GET', f'{broker.url}/_dev/log?queue={name}', timeout=120)
        self.assertEqual(answer.status, 200)
        lines = []
        for manifest in self.manifests(queue):
            for entry in manifest['objects']:
                key = entry['key']
                if manifest['format'] == 'parquet':
                    continue
                text = lake.decompress((self.lake_folder / key).read_bytes(), key[key.index('.jsonl') + 1:])
                self.assertTrue(text.endswith(b'\n'), key)
                lines += text[:-1].split(b'\n')
        if any(manifest['format'] == 'parquet' for manifest in self.manifests(queue)):
            printed = command({**file_lake(self.folder, self.bucket), 'QUEEN_S3_PREFIX': self.prefix}, 'cat', queue,
                              deadline=300)
            self.assertEqual((printed.returncode, printed.stderr), (0, b''))
            lines = printed.stdout[:-1].split(b'\n')
        wanted = answer.body[:-1].split(b'\n') if answer.body else []
        self.assertEqual(len(lines), len(wanted))
        for line, expected in zip(sorted(lines), sorted(wanted)):
            if line != expected:
                pairs = enumerate(zip(line, expected))
                at = next((i for i, (a, b) in pairs if a != b), min(len(line), len(expected)))
                near = slice(max(0, at - 60), at + 60)
                self.fail(f'at byte {at}: {line[near]!r} instead of {expected[near]!r}')
        return lines


def records(count: int, partitions: int = 7, queue: str = 'orders', size: int = 40, first: int = 0) -> list[dict]:
    return [{'queue': queue, 'partition': f'p-{i % partitions}', 'transactionId': f't-{i}',
             'payload': {'i': i, 'text': 'x' * size}} for i in range(first, first + count)]
