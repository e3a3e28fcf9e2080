"""A stop while windows are in their commit sequence (spec 3.10, 4.2), whoever gets the signal: what the bucket takes in
time is finished, and what it doesn't is named, and made again by the next start under the very keys."""
import os
import signal
import threading
import time
import unittest

import mirror
from bucket_server import BucketServer, Request
from processes import DEADLINE, alive, until

QUEUES = ('clicks', 'orders')
COUNT = 500
GRACE_MS = 3000


class Bucket(BucketServer):
    """Answers reads from what it keeps, and can keep those waiting who put the objects of windows."""

    def __init__(self):
        super().__init__()
        self.flows = threading.Event()
        self.flows.set()
        self.answer = self.take

    def take(self, request: Request):
        if request.method == 'GET':
            found = self.objects.get(request.key)
            return (404, b'') if found is None else (200, found)
        if request.method == 'PUT' and '/queue=' in request.key and not self.flows.wait(DEADLINE):
            return 503
        return None

    def windows(self, queue: str) -> list[Request]:
        return self.puts(f'/queue={queue}/')


class DrainTest(mirror.MirrorTest):
    def begin(self, **environment):
        """Two workers; each has the object of a window on its way to a bucket that doesn't answer."""
        s3 = self.enterContext(Bucket())
        broker = self.broker(queues=QUEUES)
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(QUEUES), QUEEN_S3_WORKERS='2', QUEEN_S3_ENDPOINT=s3.endpoint,
                         QUEEN_S3_REGION='here', QUEEN_S3_BUCKET=self.bucket, QUEEN_S3_ACCESS_KEY='key',
                         QUEEN_S3_SECRET_KEY='secret', QUEEN_S3_PATH_STYLE='true', **environment)
        for queue in QUEUES:
            broker.push(mirror.records(COUNT, queue=queue))
            sink.wait_metric('queen_s3_windows_committed_total', 1, queue=queue)
        s3.flows.clear()
        before = {queue: len(s3.windows(queue)) for queue in QUEUES}
        for queue in QUEUES:
            broker.push(mirror.records(COUNT, queue=queue, first=COUNT))
            s3.wait_for(lambda: len(s3.windows(queue)) > before[queue], f'an object of {queue}')
        return broker, sink, s3

    def stop(self, sink, everyone: bool) -> list[int]:
        """To the supervisor alone as an operator does, or to the whole tree as a service manager may."""
        pids = sink.tree()
        for pid in reversed(pids) if everyone else pids[:1]:
            os.kill(pid, signal.SIGTERM)
        sink.wait_line('SIGTERM: stopping')
        return pids

    def keep(self, s3: Bucket) -> None:
        """The bucket as a folder, where the test looks for it."""
        with s3.changed:
            objects = dict(s3.objects)
        for key, body in objects.items():
            path = self.folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)

    def test_windows_that_were_begun_are_finished(self):
        for number, everyone in enumerate((False, True)):
            with self.subTest(everyone=everyone):
                self.bucket = f'lake-{number}'
                broker, sink, s3 = self.begin()
                intents = {queue: broker.document(queue, 'intent') for queue in QUEUES}
                pids = self.stop(sink, everyone)
                s3.flows.set()
                self.assertEqual(sink.wait(20), 0, sink.text())
                self.assertEqual(alive(pids), [])
                self.assertNotIn('not drained', sink.text())
                self.keep(s3)
                for queue in QUEUES:
                    self.assertGreaterEqual(self.committed(broker, queue)['k'], intents[queue]['k'])
                    self.assertEqual(broker.document(queue, 'intent')['k'], self.committed(broker, queue)['k'])
                    self.assertIsNone(broker.document(queue, 'lease'))
                    self.hold(broker, queue, complete=False)

    def test_a_bucket_that_hangs(self):
        for number, everyone in enumerate((False, True)):
            with self.subTest(everyone=everyone):
                self.bucket = f'lake-{number}'
                broker, sink, s3 = self.begin(QUEEN_S3_SHUTDOWN_GRACE_MS=GRACE_MS)
                began = time.monotonic()
                pids = self.stop(sink, everyone)
                self.assertEqual(sink.wait(20), 0, sink.text())
                self.assertLess(time.monotonic() - began, GRACE_MS / 1000)
                self.assertEqual(alive(pids), [])
                for queue in QUEUES:
                    self.assertEqual(sink.text().count(f'{queue}: not drained before the stop'), 1, sink.text())
                held = {queue: s3.windows(queue)[-1] for queue in QUEUES}
                again = {queue: len(s3.windows(queue)) for queue in QUEUES}
                s3.flows.set()
                sink.start()
                for queue in QUEUES:
                    until(lambda: self.keep(s3) or self.mirrored(queue) == 2 * COUNT and
                          self.committed(broker, queue).get('k') == len(self.manifests(queue)), f'the rest of {queue}')
                    redone = [put for put in s3.windows(queue)[again[queue]:] if put.key == held[queue].key]
                    self.assertEqual([put.body for put in redone], [held[queue].body])
                self.assertEqual(sink.terminate(), 0)
                for queue in QUEUES:
                    self.hold(broker, queue)


if __name__ == '__main__':
    unittest.main()
