"""Every format, codec and layout: the lake is the log, and a crash in the middle of a window's objects is redone to the
same keys."""
import signal
import unittest

import mirror

FORMATS = {'jsonl zstd': {}, 'jsonl gzip': {'QUEEN_S3_COMPRESSION': 'gzip'},
           'jsonl none': {'QUEEN_S3_COMPRESSION': 'none'},
           'parquet zstd': {'QUEEN_S3_FORMAT': 'parquet'},
           'parquet snappy': {'QUEEN_S3_FORMAT': 'parquet', 'QUEEN_S3_PARQUET_CODEC': 'snappy'}}
POINTS = ('after_intent', 'mid_upload', 'after_upload', 'before_commit', 'after_commit')


class FormatsTest(mirror.MirrorTest):
    def mirror_once(self, **environment) -> None:
        broker = self.broker('--rate', 3000, '--rate-records', 3000, '--rate-partitions', 23)
        sink = self.sink(broker, **environment)
        self.wait_mirrored(broker, sink, 3000)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)

    def test_formats_and_layouts(self):
        for layout in ('merged', 'per-partition'):
            for name, environment in FORMATS.items():
                with self.subTest(layout=layout, format=name):
                    self.setUp()
                    self.mirror_once(QUEEN_S3_LAYOUT=layout, **environment)
                    self.doCleanups()

    def test_crash_points(self):
        for layout, name in (('per-partition', 'jsonl zstd'), ('merged', 'parquet zstd'),
                             ('per-partition', 'parquet snappy')):
            for point in POINTS:
                with self.subTest(layout=layout, format=name, point=point):
                    self.setUp()
                    broker = self.broker('--rate', 3000, '--rate-records', 3000, '--rate-partitions', 23)
                    sink = self.sink(broker, QUEEN_S3_LAYOUT=layout, QUEEN_S3_CRASH_AT=point, **FORMATS[name])
                    self.assertEqual(sink.wait(), -signal.SIGKILL)
                    sink.start(QUEEN_S3_CRASH_AT='never')
                    self.wait_mirrored(broker, sink, 3000)
                    self.assertEqual(sink.terminate(), 0)
                    self.hold(broker)
                    self.doCleanups()

    def test_ten_thousand_partitions_in_one_window(self):
        """An object each, with bounded parallelism: it ends, and the lake holds."""
        broker = self.broker()
        for first in range(0, 10000, 1000):
            broker.push(mirror.records(1000, partitions=10000, first=first))
        sink = self.sink(broker, QUEEN_S3_LAYOUT='per-partition', QUEEN_S3_MAX_WINDOW_MS='60000')
        sink.wait_metric('queen_s3_discovery_partitions', 10000)
        broker.control('clock', addUs=61_000_000)
        self.wait_mirrored(broker, sink, 10000, deadline=120)
        self.assertEqual(sink.terminate(), 0)
        report = self.hold(broker)
        self.assertLess(report.windows, 10)


if __name__ == '__main__':
    unittest.main()
