"""/healthz: green while idle, red within its limit once a record can't be shipped, whatever the reason, and the queue's
name in it. The limit is 30 s at the least, so all sinks of this file wait for it together."""
import shutil
import time
import unittest

import mirror
from gateway import Gateway

LIMIT_MS = 30000


class HealthTest(mirror.MirrorTest):
    def sink_of(self, broker, queue: str, **environment):
        return self.sink(broker, f'sink-{queue}', QUEEN_S3_QUEUES=queue, QUEEN_S3_SINK=queue, QUEEN_S3_WORKERS='1',
                         QUEEN_S3_PREFIX=queue, **environment)

    def late(self, sink) -> dict | None:
        status, body = sink.health()
        return body if status == 503 else None

    def test_health(self):
        s3 = self.enterContext(Gateway(self.folder))
        s3.make_bucket('lake')
        broker = self.broker()
        for queue in ('idle', 'hole', 'failing', 'refused', 'unclaimed', 'ok-beside', 'well'):
            broker.push(mirror.records(20, queue=queue, partitions=2))
        broker.control('hole', queue='hole', partition='p-1', **{'from': 9, 'to': 9})
        broker.fault(route='fetch', kind='entry-error', queue='failing', count=-1)
        broker.fault(route='kv', kind='status', status=500, keyContains=':unclaimed:', count=-1)
        sinks = {queue: self.sink_of(broker, queue) for queue in ('idle', 'hole', 'failing', 'unclaimed')}
        sinks['refused'] = self.sink_of(broker, 'refused', **s3.sink_environment('lake'))
        sinks['beside'] = self.sink(broker, 'sink-beside', QUEEN_S3_QUEUES='well,hole', QUEEN_S3_SINK='beside',
                                    QUEEN_S3_PREFIX='beside', QUEEN_S3_WORKERS='2')
        began = time.monotonic()
        sinks['refused'].wait_metric('queen_s3_windows_committed_total', 1)
        shutil.rmtree(s3.bucket('lake'))
        broker.push(mirror.records(20, queue='refused', first=100))
        refused_since = time.monotonic()
        sinks['idle'].wait_metric('queen_s3_windows_committed_total', 1)
        for queue in ('failing', 'unclaimed'):
            self.assertEqual(sinks[queue].metric('queen_s3_windows_committed_total'), 0)
        red: dict[str, dict] = {}
        waiting = [name for name in sinks if name != 'idle']
        while len(red) < len(waiting) and time.monotonic() - began < 40:
            for name in waiting:
                if name not in red and (body := self.late(sinks[name])):
                    red[name] = body
                    since = refused_since if name == 'refused' else began
                    after = time.monotonic() - since
                    self.assertGreater(after, LIMIT_MS / 1000 - 2, f'{name} is red too early')
                    self.assertLess(after, LIMIT_MS / 1000 + 4, f'{name} is red too late')
            status, body = sinks['idle'].health()
            self.assertEqual((status, body), (200, {'ok': True, 'queues': 1}))
            time.sleep(0.1)
        self.assertEqual(sorted(red), sorted(waiting), 'not all that should be are red')
        for name, body in red.items():
            self.assertEqual((body['ok'], body['queue'], body['limitMs']),
                             (False, 'hole' if name == 'beside' else name, LIMIT_MS), body)
            self.assertGreater(body['staleMs'], LIMIT_MS)
        self.assertLess(time.monotonic() - began, 45)
        # Once it can be shipped, it is, and the light is green again.
        broker.clear_faults()
        sinks['unclaimed'].wait_metric('queen_s3_records_written_total', 20)
        sinks['unclaimed'].wait_health()
        for sink in sinks.values():
            sink.kill()


if __name__ == '__main__':
    unittest.main()
