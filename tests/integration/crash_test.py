"""Killed anywhere, by itself or by others: after a restart the lake is the log, record for record."""
import os
import random
import signal
import time
import unittest

import mirror
from processes import alive

POINTS = ('after_intent', 'mid_upload', 'after_upload', 'before_commit', 'after_commit')


class CrashTest(mirror.MirrorTest):
    def crash_at(self, point: str, compression: str) -> None:
        broker = self.broker('--rate', 3000, '--rate-records', 6000)
        sink = self.sink(broker, QUEEN_S3_COMPRESSION=compression, QUEEN_S3_CRASH_AT=point)
        self.assertEqual(sink.wait(), -signal.SIGKILL, 'the whole pool ends as by a power cut')
        sink.start(QUEEN_S3_CRASH_AT='never')
        self.wait_mirrored(broker, sink, 6000)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)

    def test_crash_points(self):
        for compression in ('zstd', 'gzip', 'none'):
            for point in POINTS:
                with self.subTest(point=point, compression=compression):
                    self.setUp()
                    self.crash_at(point, compression)
                    self.doCleanups()

    def test_crash_again_and_again_at_the_same_point(self):
        broker = self.broker('--rate', 3000, '--rate-records', 3000)
        sink = self.sink(broker, start=False)
        for point in POINTS * 2:
            sink.start(QUEEN_S3_CRASH_AT=point)
            self.assertEqual(sink.wait(), -signal.SIGKILL)
            broker.push(mirror.records(50, first=time.monotonic_ns()))
        sink.start(QUEEN_S3_CRASH_AT='never')
        self.wait_mirrored(broker, sink, 3500)
        sink.terminate()
        self.hold(broker)

    def kill_at_random(self, whole_tree: bool, **environment) -> None:
        choose = random.Random(7)
        broker = self.broker('--rate', 4000, '--rate-records', 24000, '--rate-partitions', 40)
        sink = self.sink(broker, QUEEN_S3_MAX_WINDOW_MS='150', **environment)
        for _ in range(8):
            sink.wait_metric('queen_s3_windows_committed_total', 1)
            time.sleep(choose.uniform(0, 0.35))  # the moment of the fault is what varies here, nothing is waited for
            if whole_tree:
                sink.kill()
                sink.start()
            else:
                sink.program.wait_for(sink.workers, 'a worker')
                for worker in sink.workers():
                    self.kill_process(worker)
        self.wait_mirrored(broker, sink, 24000)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)

    def kill_process(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_kill_the_whole_tree(self):
        self.kill_at_random(True)

    def test_kill_workers(self):
        self.kill_at_random(False)

    def test_kill_the_supervisor(self):
        """No worker survives it, and the next pool goes on."""
        broker = self.broker('--rate', 3000, '--rate-records', 6000)
        sink = self.sink(broker)
        sink.wait_metric('queen_s3_windows_committed_total', 2)
        before = sink.tree()
        sink.signal(signal.SIGKILL)
        sink.wait()
        end = time.monotonic() + 1
        while alive(before) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(alive(before), [], 'a worker outlived the supervisor by a second')
        sink.start()
        self.wait_mirrored(broker, sink, 6000)
        sink.terminate()
        self.hold(broker)


if __name__ == '__main__':
    unittest.main()
