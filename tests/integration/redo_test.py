"""A redo whose window has lost records since the first attempt put it up: what is in the bucket is kept, not shrunk."""
import signal
import unittest

import lake
import mirror

SHAPES = ({}, {'QUEEN_S3_LAYOUT': 'per-partition'}, {'QUEEN_S3_FORMAT': 'parquet'},
          {'QUEEN_S3_FORMAT': 'parquet', 'QUEEN_S3_LAYOUT': 'per-partition'})


class RedoTest(mirror.MirrorTest):
    def crashed(self, point: str, **environment):
        broker = self.broker()
        broker.push(mirror.records(210, partitions=7))
        sink = self.sink(broker, QUEEN_S3_CRASH_AT=point, **environment)
        self.assertEqual(sink.wait(), -signal.SIGKILL)
        return broker, sink

    def hold_whole(self, broker) -> list[dict]:
        """Everything ever pushed is in the lake, though the broker has lost some of it."""
        lake.assert_lake(self, self.lake_folder, self.queue, log=broker.log(self.queue, deleted=True), complete=True,
                         committed=broker.document(self.queue, 'committed'))
        return self.manifests()

    def test_part_of_it_was_deleted(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                self.setUp()
                broker, sink = self.crashed('after_upload', **shape)
                for i in range(5):
                    broker.control('trim', queue=self.queue, partition=f'p-{i}', logStart=10 + 4 * i)
                sink.start(QUEEN_S3_CRASH_AT='never')
                self.wait_mirrored(broker, sink, 210)
                self.assertEqual(sink.terminate(), 0)
                first = self.hold_whole(broker)[0]
                self.assertEqual((first['records'], first['lost']), (210, []))
                self.doCleanups()

    def test_all_of_it_was_deleted(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                self.setUp()
                broker, sink = self.crashed('after_upload', **shape)
                for i in range(7):
                    broker.control('trim', queue=self.queue, partition=f'p-{i}', logStart=30)
                sink.start(QUEEN_S3_CRASH_AT='never')
                self.wait_mirrored(broker, sink, 210)
                self.assertEqual(sink.terminate(), 0)
                self.assertEqual(self.hold_whole(broker)[0]['records'], 210)
                self.doCleanups()

    def test_what_is_not_whole_is_put_up_again(self):
        broker, sink = self.crashed('after_upload')
        path = next(self.lake_folder.rglob('w-*'))
        path.write_bytes(path.read_bytes()[:-20])
        sink.start(QUEEN_S3_CRASH_AT='never')
        self.wait_mirrored(broker, sink, 210)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)


if __name__ == '__main__':
    unittest.main()
