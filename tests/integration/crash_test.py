"""Killed anywhere, by itself or by others: after a restart the lake is the log, record for record."""
import os
import random
import signal
import time
import unittest

import mirror
from processes import alive, until

POINTS = ('after_intent', 'mid_upload', 'after_upload', 'before_commit', 'after_commit')
COMPRESSIONS = ('zstd', 'gzip', 'none')
# What is killed leaves its lease behind, and whoever comes next waits for it to run out.
SHORT_LEASE = {'QUEEN_S3_LEASE_TTL_MS': '1000'}


class CrashTest(mirror.MirrorTest):
    def three(self, broker, **environment) -> dict:
        """A sink for each compression, all of the same queue: each has its own documents and its own bucket."""
        return {c: self.sink(broker, c, QUEEN_S3_COMPRESSION=c, QUEEN_S3_SINK=c, QUEEN_S3_BUCKET=c, **SHORT_LEASE,
                             **environment) for c in COMPRESSIONS}

    def look_at(self, compression: str) -> None:
        self.bucket = self.sink_name = compression

    def crash_at(self, point: str) -> None:
        broker = self.broker('--rate', 2000, '--rate-records', 2000)
        sinks = self.three(broker, QUEEN_S3_CRASH_AT=point)
        for sink in sinks.values():
            self.assertEqual(sink.wait(), -signal.SIGKILL, 'the whole pool ends as by a power cut')
            sink.start(QUEEN_S3_CRASH_AT='never')
        for compression, sink in sinks.items():
            self.look_at(compression)
            self.wait_mirrored(broker, sink, 2000)
            self.assertEqual(sink.terminate(), 0)
            self.hold(broker)

    def test_after_intent(self):
        self.crash_at('after_intent')

    def test_mid_upload(self):
        self.crash_at('mid_upload')

    def test_after_upload(self):
        self.crash_at('after_upload')

    def test_before_commit(self):
        self.crash_at('before_commit')

    def test_after_commit(self):
        self.crash_at('after_commit')

    def test_crash_again_and_again(self):
        """One crash in the redo of the one before; the window that was begun first is the one that lands."""
        broker = self.broker('--rate', 3000, '--rate-records', 1500)
        sink = self.sink(broker, start=False, **SHORT_LEASE)
        for point in ('after_intent', 'mid_upload', 'after_upload', 'before_commit', 'before_commit'):
            sink.start(QUEEN_S3_CRASH_AT=point)
            self.assertEqual(sink.wait(), -signal.SIGKILL)
            broker.push(mirror.records(50, first=time.monotonic_ns()))
        sink.start(QUEEN_S3_CRASH_AT='never')
        self.wait_mirrored(broker, sink, 1500 + 5 * 50)
        sink.terminate()
        self.hold(broker)

    def test_crash_in_the_middle_of_a_multipart_upload(self):
        """A window above the threshold, in parts, through a folder's store: the parts of the killed upload are no
        object, and the redo writes the whole one."""
        broker = self.broker(safe_lag_ms=50)
        for first in range(0, 20, 4):
            broker.push(mirror.records(4, first=first, size=1 << 20))
        sink = self.sink(broker, QUEEN_S3_COMPRESSION='none', QUEEN_S3_MULTIPART_THRESHOLD_MB=5,
                         QUEEN_S3_CRASH_AT='mid_upload', **SHORT_LEASE)
        self.assertEqual(sink.wait(), -signal.SIGKILL)
        self.assertEqual(self.manifests(), [])
        sink.start(QUEEN_S3_CRASH_AT='never')
        self.wait_mirrored(broker, sink, 20)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)
        self.assertEqual(list((self.lake_folder / '.tmp').iterdir()), [])

    def kill_at_random(self, whole_tree: bool, rounds: int, **environment) -> None:
        choose = random.Random(7)
        broker = self.broker('--rate', 2000, '--rate-records', 6000, '--rate-partitions', 40)
        sink = self.sink(broker, QUEEN_S3_MAX_WINDOW_MS='150', **SHORT_LEASE, **environment)
        for number in range(rounds):
            before = len(self.manifests())
            # So that there is a window to wait for, also when the live load is over.
            broker.push(mirror.records(100, first=1_000_000 + 100 * number))
            sink.program.wait_for(lambda: len(self.manifests()) > before, 'another window')
            time.sleep(choose.uniform(0, 0.35))  # the moment of the fault is what varies here, nothing is waited for
            if whole_tree:
                sink.kill()
                sink.start()
            else:
                workers = sink.workers()
                for worker in workers:
                    self.kill_process(worker)
                until(lambda: not alive(workers), 'end of the workers')
        sink.wait_line('listening on')  # before that a signal may find a program that is still being loaded
        self.wait_mirrored(broker, sink, 6000 + 100 * rounds)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)

    def kill_process(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_kill_the_whole_tree(self):
        self.kill_at_random(True, 4)

    def test_kill_workers(self):
        self.kill_at_random(False, 2)

    def test_kill_one_of_two_workers(self):
        """The other one goes on, also while the replacement clears what its predecessor left half written."""
        queues = ('orders', 'clicks')
        broker = self.broker('--rate', 2000, '--rate-records', 4000, queues=queues)
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(queues), QUEEN_S3_WORKERS=2, QUEEN_S3_MAX_WINDOW_MS='100',
                         **SHORT_LEASE)
        for number in range(2):
            for queue in queues:
                before = len(self.manifests(queue))
                broker.push(mirror.records(200, first=1_000_000 + 200 * number, queue=queue, size=2000))
                sink.program.wait_for(lambda: len(self.manifests(queue)) > before, f'another window of {queue}')
            workers = sink.workers()
            self.kill_process(workers[number % len(workers)])
        for queue in queues:
            self.wait_mirrored(broker, sink, 400 + 4000 * (queue == 'orders'), queue)
        self.assertEqual(sink.terminate(), 0)
        for queue in queues:
            self.hold(broker, queue)

    def test_kill_the_supervisor(self):
        """No worker survives it, and the next pool goes on."""
        broker = self.broker('--rate', 3000, '--rate-records', 4000)
        sink = self.sink(broker, **SHORT_LEASE)
        sink.wait_metric('queen_s3_windows_committed_total', 2)
        before = sink.tree()
        sink.signal(signal.SIGKILL)
        sink.wait()
        end = time.monotonic() + 1
        while alive(before) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(alive(before), [], 'a worker outlived the supervisor by a second')
        sink.start()
        self.wait_mirrored(broker, sink, 4000)
        sink.terminate()
        self.hold(broker)


if __name__ == '__main__':
    unittest.main()
