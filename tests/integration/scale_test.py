"""Many queues on one worker, many partitions in one queue: calls are shared, and processor time stays sane."""
import time
import unittest

import mirror

QUEUES = 300
PARTITIONS = 20000


class ScaleTest(mirror.MirrorTest):
    def calls(self, broker, sink, seconds: float) -> tuple[dict[str, float], float]:
        """Calls a second by route, and processors used, over that time."""
        before, cpu, began = broker.stats()['routes'], sink.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - began
        after = broker.stats()['routes']
        return ({route: (after[route]['calls'] - before[route]['calls']) / passed for route in after},
                (sink.cpu_seconds() - cpu) / passed)

    def push_all(self, broker, queues: list[str], first: int) -> None:
        for at in range(0, len(queues), 50):
            items = [r for queue in queues[at:at + 50] for r in mirror.records(5, 2, queue, first=first)]
            broker.push(items)

    def test_three_hundred_queues(self):
        queues = [f'queue-{i:03d}' for i in range(QUEUES)]
        broker = self.broker()
        self.push_all(broker, queues, 0)
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(queues), QUEEN_S3_WORKERS='1',
                         QUEEN_S3_DISCOVERY_INTERVAL_MS='100', QUEEN_S3_LEASE_TTL_MS='6000')
        sink.wait_records(5 * QUEUES)
        calls, cpu = self.calls(broker, sink, 6)
        print(f'{QUEUES} queues at rest: {calls["changed"]:.0f} discovery, {calls["kv"]:.1f} kv, '
              f'{calls["fetch"]:.1f} fetch calls/s, {cpu:.2f} processors')
        self.assertLessEqual(calls['changed'], 80)
        self.assertGreater(calls['changed'], 30, 'discovery does not come at its interval')
        self.assertLessEqual(calls['kv'], 10)  # one for each queue every 2 s would be 150
        self.assertLessEqual(calls['fetch'], 5)
        self.assertLess(cpu, 0.5)
        self.push_all(broker, queues, 5)
        sink.wait_records(10 * QUEUES)
        self.assertEqual(sink.metric('queen_s3_workers'), 1)
        self.assertEqual(sink.terminate(), 0)
        for queue in queues:
            self.hold_lines(broker, queue)
        for queue in queues[::100]:
            self.hold(broker, queue)

    def test_many_partitions(self):
        """Each with one or two records; then a restart from the checkpoint, and a few more."""
        broker = self.broker('--rate', 20000, '--rate-records', 2 * PARTITIONS, '--rate-partitions', PARTITIONS,
                             '--rate-payload-bytes', 50)
        sink = self.sink(broker, QUEEN_S3_MAX_WINDOW_MS='1000')
        self.wait_mirrored(broker, sink, 2 * PARTITIONS, deadline=90)
        sink.wait_metric('queen_s3_discovery_partitions', PARTITIONS, queue=self.queue)
        cpu = sink.cpu_seconds()
        print(f'{PARTITIONS} partitions: {cpu:.2f} processor seconds for {2 * PARTITIONS} records')
        self.assertLess(cpu, 15)
        calls, idle = self.calls(broker, sink, 4)
        print(f'at rest: {calls["changed"]:.0f} discovery, {calls["fetch"]:.1f} fetch calls/s, {idle:.2f} processors')
        self.assertLess(idle, 0.5)
        self.assertEqual(sink.terminate(), 0)
        sink.start()
        broker.push(mirror.records(500, 100, first=0))
        self.wait_mirrored(broker, sink, 2 * PARTITIONS + 500)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)


if __name__ == '__main__':
    unittest.main()
