"""Memory of the whole process tree (the sum of proportional set sizes) against QUEEN_S3_MEMORY_MB, whatever happens
with a backlog larger than the budget behind it; and no growth with time."""
import json
import random
import signal
import threading
import time
import unittest

import mirror
from devbroker import DevBroker
from gateway import Gateway
from processes import BUILD, pss, tree
from sink import Sink

MIB = 1 << 20
BUDGET = 256
# A sanitizer adds zones between, and keeps for a while what was freed.
ALLOWED = 4 if BUILD.name in ('asan', 'tsan') else 1.15
TIME_LIMIT = 1500
BASE_TIME = '2026-03-01T10:00:00.000000Z'


class Sampler:
    """The largest memory of a sink's tree while it runs, taken every few milliseconds; samples at the same moments."""

    def __init__(self, sink: Sink):
        self.sink, self.samples, self.over = sink, [], threading.Event()
        self.parts: list[int] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.over.is_set():
            pids = tree(self.sink.pid)
            parts = [pss([pid]) for pid in pids]
            if sum(parts) > max(self.samples, default=0):
                self.parts = parts
            self.samples.append(sum(parts))
            self.over.wait(0.02)

    @property
    def peak(self) -> int:
        return max(self.samples, default=0)

    def stop(self) -> int:
        self.over.set()
        self.thread.join()
        return self.peak


def make_records(path, megabytes: int, average: int = 1500, partitions: int = 40) -> int:
    """A file of made-up records of one field `p` and some text that compresses as events do; how many."""
    choose = random.Random(11)
    words = [''.join(choose.choices('abcdefghijklmnopqrstuvwxyz', k=choose.randint(2, 11))) for _ in range(5000)]
    count = size = 0
    with open(path, 'w', encoding='utf-8') as file:
        while size < megabytes * MIB:
            text = ' '.join(choose.choices(words, k=choose.randint(1, max(1, average // 4))))
            line = json.dumps({'p': f'p-{choose.randrange(partitions)}', 'id': choose.getrandbits(64), 'text': text})
            file.write(line + '\n')
            size += len(line) + 1
            count += 1
    return count


class MemoryTest(mirror.MirrorTest):
    budget = BUDGET
    megabytes = 20
    repeat = 16

    def backlog(self, *arguments, average: int = 1500, partitions: int = 40, step_us: int = 20000, segment: int = 100
                ) -> DevBroker:
        """A broker with megabytes × repeat of records in the past, step_us from one segment's ts to the next."""
        path = self.folder / 'records.ndjson'
        self.count = self.repeat * make_records(path, self.megabytes, average, partitions)
        return self.broker('--load', path, '--partition-by', 'p', '--load-repeat', self.repeat,
                           '--base-time', BASE_TIME, '--time-step-us', step_us, '--segment-records', segment,
                           *arguments)

    def small_sink(self, broker: DevBroker, **environment) -> Sink:
        return self.sink(broker, **{'QUEEN_S3_MEMORY_MB': BUDGET, 'QUEEN_S3_MAX_WINDOW_MS': 300000,
                                    'QUEEN_S3_LEASE_TTL_MS': 10000, **environment})

    def assert_within(self, sampler: Sampler, what: str) -> None:
        peak = sampler.stop()
        shown = ' + '.join(f'{part / MIB:.1f}' for part in sampler.parts)
        print(f'{what}: peak {peak / MIB:.0f} MiB of {self.budget} ({shown})')
        self.assertLessEqual(peak, self.budget * MIB * ALLOWED, what)

    def settled(self, sink: Sink, least: int = 20 * MIB) -> float:
        """Waits until what the sink buffers has not changed for a while: it took what it can."""
        before: list[float] = []

        def look() -> bool:
            before.append(sink.metric('queen_s3_buffer_bytes'))
            time.sleep(0.1)  # between two looks of which 20 in a row have to be the same
            return len(before) > 20 and before[-1] > least and len(set(before[-20:])) == 1
        sink.program.wait_for(look, 'buffers that stay as they are', 60)
        return before[-1]

    def finish(self, broker: DevBroker, sink: Sink, sampler: Sampler, what: str) -> None:
        self.wait_mirrored(broker, sink, self.count, deadline=120)
        self.assert_within(sampler, what)
        self.assertEqual(sink.terminate(), 0)
        self.hold_lines(broker)

    def drain(self, what: str, **environment) -> None:
        broker = self.backlog()
        sink = self.small_sink(broker, **environment)
        self.finish(broker, sink, Sampler(sink), what)

    def test_drain_zstd(self):
        self.drain('a drain, zstd', QUEEN_S3_COMPRESSION='zstd')

    def test_drain_gzip(self):
        self.repeat = 13
        self.drain('a drain, gzip', QUEEN_S3_COMPRESSION='gzip')

    def test_drain_none(self):
        self.drain('a drain, uncompressed', QUEEN_S3_COMPRESSION='none')

    def test_drain_parquet(self):
        self.drain('a drain, Parquet', QUEEN_S3_FORMAT='parquet')

    def test_drain_parquet_per_partition(self):
        self.drain('a drain, Parquet snappy per partition', QUEEN_S3_FORMAT='parquet', QUEEN_S3_PARQUET_CODEC='snappy',
                   QUEEN_S3_LAYOUT='per-partition')

    def test_drain_small_records(self):
        """Where a record's own struct weighs as much as its bytes."""
        self.megabytes, self.repeat = 10, 8
        broker = self.backlog(average=10, segment=1000)
        sink = self.small_sink(broker)
        self.finish(broker, sink, Sampler(sink), 'a drain of small records')

    def test_drain_into_the_gateway(self):
        """Over S3, with parts."""
        with Gateway(self.folder) as s3:
            self.bucket = s3.make_bucket('lake').relative_to(self.folder.resolve()).as_posix()
            broker = self.backlog()
            sink = self.small_sink(broker, QUEEN_S3_COMPRESSION='none', QUEEN_S3_MULTIPART_THRESHOLD_MB='5',
                                   **s3.sink_environment('lake'))
            self.finish(broker, sink, Sampler(sink), 'a drain into the gateway')

    def test_two_workers(self):
        """The budget is the whole tree's: each worker keeps to its share, with a backlog larger than that behind it."""
        self.megabytes = 10
        broker = self.backlog('--load', self.folder / 'records.ndjson', '--queue', 'clicks', '--partition-by', 'p',
                              '--load-repeat', self.repeat, '--base-time', BASE_TIME, '--time-step-us', 20000,
                              '--segment-records', 100)
        sink = self.small_sink(broker, QUEEN_S3_QUEUES='orders,clicks', QUEEN_S3_WORKERS='2')
        sampler = Sampler(sink)
        self.wait_mirrored(broker, sink, self.count, 'clicks', deadline=120)
        self.assertEqual(len(sink.workers()), 2)
        self.finish(broker, sink, sampler, 'two workers')
        self.hold_lines(broker, 'clicks')

    def test_bucket_down(self):
        """A bucket that is away while a backlog is there: it takes what fits, and no more."""
        with Gateway(self.folder) as s3:
            self.bucket = s3.make_bucket('lake').relative_to(self.folder.resolve()).as_posix()
            broker = self.backlog()
            sink = self.small_sink(broker, QUEEN_S3_TARGET_MB='16', **s3.sink_environment('lake'))
            sampler = Sampler(sink)
            sink.wait_metric('queen_s3_windows_committed_total', 1)
            s3.stop()
            self.settled(sink)
            s3.start()
            self.finish(broker, sink, sampler, 'a bucket that is down')

    def test_safe_time_pinned(self):
        """It reads ahead of a safeTime that stands still, within the budget."""
        broker = self.backlog()
        broker.control('safe-time', mode='pinned', at='2026-03-01T10:00:02.000000Z')
        sink = self.small_sink(broker)
        sampler = Sampler(sink)
        self.settled(sink)
        broker.control('safe-time', mode='normal')
        self.finish(broker, sink, sampler, 'safeTime pinned')

    def test_one_partition_blocked(self):
        """One partition's fetch fails: nothing may close, and what the others bring stays within the budget."""
        broker = self.backlog()
        broker.fault(route='fetch', kind='entry-error', partition='p-7', count=-1)
        sink = self.small_sink(broker)
        sampler = Sampler(sink)
        self.settled(sink)
        self.assertEqual(self.manifests(), [])
        broker.clear_faults()
        self.finish(broker, sink, sampler, 'a partition that is blocked')

    def redo(self, compression: str, budget: int = BUDGET) -> None:
        """A window larger than the budget, begun by a larger sink: made again at a budget that can't hold it."""
        broker = self.backlog(step_us=1000)
        self.budget = budget
        sink = self.small_sink(broker, QUEEN_S3_MEMORY_MB='2048', QUEEN_S3_TARGET_MB='300',
                               QUEEN_S3_COMPRESSION=compression, QUEEN_S3_CRASH_AT='after_intent')
        self.assertEqual(sink.wait(60), -signal.SIGKILL)
        intent = broker.document(self.queue, 'intent')
        sink.start(QUEEN_S3_MEMORY_MB=budget, QUEEN_S3_CRASH_AT='never')
        sampler = Sampler(sink)
        self.wait_mirrored(broker, sink, self.count, deadline=120)
        first = self.manifests()[0]
        self.assertEqual((first['tStart'], first['tEnd']), (intent['tStart'], intent['tEnd']))
        self.assertGreater(first['records'], self.count // 2)
        self.finish(broker, sink, sampler, f'a redo larger than the budget, {compression}')

    def test_redo_zstd(self):
        self.redo('zstd')

    def test_redo_gzip(self):
        self.repeat = 7
        self.redo('gzip', 96)

    def test_redo_none(self):
        self.redo('none')

    def test_no_growth(self):
        """Under live load, after it has warmed up: what it needs later is what it needed before."""
        broker = self.broker('--rate', 8000, '--rate-partitions', 200, '--rate-payload-bytes', 500)
        sink = self.sink(broker, QUEEN_S3_MAX_WINDOW_MS='200', QUEEN_S3_CHECKPOINT_EVERY='5')
        sink.wait_metric('queen_s3_windows_committed_total', 20)
        warm = self.median_memory(sink, 60)
        later = self.median_memory(sink, 120)
        print(f'live load: {warm / MIB:.1f} MiB after {60} windows, {later / MIB:.1f} MiB after {120}')
        self.assertLess(later, warm * 1.1 + 2 * MIB)
        self.assertEqual(sink.terminate(), 0)

    def median_memory(self, sink: Sink, windows: int) -> int:
        """Of the samples taken until so many windows are committed."""
        sampler = Sampler(sink)
        sink.wait_metric('queen_s3_windows_committed_total', windows)
        sampler.stop()
        return sorted(sampler.samples)[len(sampler.samples) // 2]


if __name__ == '__main__':
    unittest.main()
