"""The broker or the bucket away, slow, broken or busy: the sink lags, costs next to nothing meanwhile, and catches up
to exactly the log."""
import signal
import time
import unittest

import mirror
from gateway import Gateway

BUSY = 0.15  # of a processor, at most, while there is nothing to do but wait
ROUTES = ('fetch', 'changed', 'kv')


class OutageTest(mirror.MirrorTest):
    def assert_idle(self, sink, seconds: float) -> None:
        """Over that time, which is what is measured: next to no processor time, and memory that stays."""
        cpu, memory, began = sink.cpu_seconds(), sink.pss(), time.monotonic()
        time.sleep(seconds)
        used = (sink.cpu_seconds() - cpu) / (time.monotonic() - began)
        self.assertLess(used, BUSY, 'of a processor while down')
        self.assertLess(sink.pss(), memory * 1.2 + (16 << 20))

    def finish(self, broker, sink, count: int, deadline: float = 60) -> None:
        self.wait_mirrored(broker, sink, count, deadline=deadline)
        self.assertEqual(sink.terminate(), 0, sink.text()[-2000:])
        self.hold(broker)

    def start(self, *arguments, count: int = 6000, **environment):
        broker = self.broker('--rate', 3000, '--rate-records', count, *arguments)
        sink = self.sink(broker, **environment)
        sink.wait_metric('queen_s3_windows_committed_total', 1)
        return broker, sink

    # The broker

    def test_broker_hangs(self):
        """It takes connections and answers nothing. What is called meanwhile can only time out."""
        broker, sink = self.start(QUEEN_S3_LEASE_TTL_MS='3000')
        broker.program.signal(signal.SIGSTOP)
        self.assert_idle(sink, 6)
        broker.program.signal(signal.SIGCONT)
        self.finish(broker, sink, 6000)

    def test_broker_resets_every_connection(self):
        broker, sink = self.start()
        broker.fault(route='any', kind='reset-before', count=-1)
        self.assert_idle(sink, 6)
        broker.clear_faults()
        self.finish(broker, sink, 6000)

    def test_database_down(self):
        """500 without Retry-After on most routes, 503 with one on kv."""
        broker, sink = self.start()
        broker.control('database', down=True)
        self.assert_idle(sink, 6)
        self.assertTrue(sink.running())
        broker.control('database', down=False)
        self.finish(broker, sink, 6000)

    def test_slow_answers(self):
        broker, sink = self.start(count=4000)
        for route in ROUTES:
            broker.fault(route=route, kind='delay', delayMs=400, count=-1)
        sink.wait_metric('queen_s3_windows_committed_total', sink.metric('queen_s3_windows_committed_total') + 2)
        broker.clear_faults()
        self.finish(broker, sink, 4000)

    def test_every_fault_on_every_route(self):
        """Under load; the next once windows are committed again, so that no backoff adds to another."""
        broker, sink = self.start(count=1000000)
        for kind in ('reset-before', 'reset-after', 'cut', 'garbled', 'wrong-entry', 'empty', 'entry-error'):
            errors = sum(route['errors'] for route in broker.stats()['routes'].values())
            for route in ROUTES:
                if kind in ('empty', 'entry-error') and route == 'kv':
                    continue
                broker.fault(route=route, kind=kind, count=1)
            if kind not in ('wrong-entry', 'empty', 'entry-error', 'garbled', 'cut'):
                sink.program.wait_for(lambda e=errors: sum(
                    route['errors'] for route in broker.stats()['routes'].values()) > e, f'{kind} to happen')
            committed = sink.metric('queen_s3_windows_committed_total')
            sink.wait_metric('queen_s3_windows_committed_total', committed + 3)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker, complete=False)

    def retry_after(self, route: str, status: int, seconds: int) -> None:
        broker, sink = self.start('--rate-partitions', 4, count=100000, QUEEN_S3_FETCH_CONCURRENCY='1',
                                  QUEEN_S3_LEASE_TTL_MS='15000')
        before = broker.stats()['routes'][route]['errors']
        broker.fault(route=route, kind='status', status=status, retryAfter=seconds, count=1)
        sink.program.wait_for(lambda: broker.stats()['routes'][route]['errors'] > before, 'the refusal')
        began = time.monotonic()
        calls = broker.stats()['routes'][route]['calls']
        own = 0
        while (now := broker.stats()['routes'][route]['calls']) == calls + own:
            self.assertLess(time.monotonic() - began, seconds + 3, f'no {route} call any more')
            time.sleep(0.02)
        waited = time.monotonic() - began
        self.assertGreater(waited, seconds - 0.25, f'{now - calls} {route} calls came early')
        self.assertLess(waited, seconds + 3)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker, complete=False)

    def test_retry_after_is_kept(self):
        for route in ROUTES:
            for status in (429, 503):
                with self.subTest(route=route, status=status):
                    self.setUp()
                    self.retry_after(route, status, 2)
                    self.doCleanups()

    def test_kv_rate_limits(self):
        """Sixty queues with windows of a fifth of a second want more kv writes than the broker allows."""
        queues = [f'q{i:02d}' for i in range(60)]
        broker = self.broker('--rate-limits', 40, queues=queues)
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(queues), QUEEN_S3_MAX_WINDOW_MS='200', QUEEN_S3_WORKERS='2',
                         QUEEN_S3_LEASE_TTL_MS='5000')
        for turn in range(10):
            for queue in queues:
                broker.push(mirror.records(3, queue=queue, first=turn * 3))
        for queue in queues:
            sink.program.wait_for(lambda q=queue: self.mirrored(q) >= 30, f'all of {queue}')
        self.assertGreater(broker.stats()['routes']['kv']['errors'], 0, 'the limit was never met')
        for queue in queues:  # reading the pointers is limited too: after the sink
            sink.wait_metric('queen_s3_records_written_total', 30, queue=queue)
        self.assertEqual(sink.terminate(), 0)
        for queue in queues:
            self.hold(broker, queue, committed=None)

    # The bucket

    def test_bucket_down(self):
        with Gateway(self.folder) as s3:
            self.bucket = s3.make_bucket('lake').relative_to(self.folder.resolve()).as_posix()
            broker, sink = self.start(count=15000, **s3.sink_environment('lake'))
            s3.stop()
            sink.program.wait_for(lambda: sink.metric('queen_s3_s3_requests_total', code='0') > 0, 'a failed request')
            sink.program.wait_for(lambda: len(broker.log(self.queue)) == 15000, 'the end of the load')
            self.assert_idle(sink, 6)
            s3.start()
            self.finish(broker, sink, 15000)

    def test_bucket_hangs(self):
        with Gateway(self.folder) as s3:
            self.bucket = s3.make_bucket('lake').relative_to(self.folder.resolve()).as_posix()
            broker, sink = self.start(**s3.sink_environment('lake'))
            s3.program.signal(signal.SIGSTOP)
            self.assert_idle(sink, 6)
            s3.program.signal(signal.SIGCONT)
            self.finish(broker, sink, 6000)


if __name__ == '__main__':
    unittest.main()
