"""A broker, a sink and the lake between them, for tests of the whole way.

    class SomeTest(mirror.MirrorTest):
        def test_it(self):
            broker = self.broker('--rate', 2000)
            sink = self.sink(broker, QUEEN_S3_COMPRESSION='gzip')
            self.wait_mirrored(broker, sink)
            self.hold(broker)                     # the lake is the log
"""
import json
import pathlib
import tempfile
import unittest

import lake
from devbroker import DevBroker
from processes import BUILD, DEADLINE
from sink import Sink, file_lake

# Windows of a few hundred milliseconds, so that a test sees many of them.
QUICK = {'QUEEN_S3_MAX_WINDOW_MS': '300', 'QUEEN_S3_DISCOVERY_INTERVAL_MS': '50', 'QUEEN_S3_SAFE_GUARD_MS': '50',
         'QUEEN_S3_LEASE_TTL_MS': '2000', 'QUEEN_S3_CHECKPOINT_EVERY': '3'}


class MirrorTest(unittest.TestCase):
    queue = 'orders'
    bucket = 'lake'
    prefix = 'queen'

    def setUp(self):
        BUILD.mkdir(exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=BUILD, prefix=f'{type(self).__name__}-', ignore_cleanup_errors=True)
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def broker(self, *arguments, safe_lag_ms: int = 100) -> DevBroker:
        broker = DevBroker(self.folder, '--queue', self.queue, '--safe-lag-ms', safe_lag_ms, *arguments)
        self.addCleanup(broker.stop)
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
            committed = broker.document(lake.escape(queue or self.queue), 'committed') or {}
            return sum(m['records'] for m in manifests) >= wanted and committed.get('k') == len(manifests)
        sink.program.wait_for(whole, f'{wanted} records in the lake', deadline)
        return wanted

    def hold(self, broker: DevBroker, queue: str | None = None, **options) -> lake.Report:
        """The lake is the log, whole."""
        name = queue or self.queue
        return lake.assert_lake(self, self.lake_folder, name, prefix=self.prefix, log=broker.log(name),
                                **{'complete': True, 'committed': broker.document(lake.escape(name), 'committed'), **options})


def records(count: int, partitions: int = 7, queue: str = 'orders', size: int = 40, first: int = 0) -> list[dict]:
    return [{'queue': queue, 'partition': f'p-{i % partitions}', 'transactionId': f't-{i}',
             'payload': {'i': i, 'text': 'x' * size}} for i in range(first, first + count)]
