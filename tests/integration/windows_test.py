"""When windows close: by time while live, by size and alignment while catching up, never by how the log was read."""
import json
import statistics
import unittest

import lake
import mirror

MINUTE = 60_000_000


class WindowsTest(mirror.MirrorTest):
    def spans(self) -> list[int]:
        return [m['tEnd'] - m['tStart'] for m in self.manifests()]

    def live(self, *arguments, records: int = 4000, **environment) -> list[int]:
        broker = self.broker('--rate', 1000, '--rate-records', records, *arguments)
        sink = self.sink(broker, **{'QUEEN_S3_MAX_WINDOW_MS': '500', **environment})
        self.wait_mirrored(broker, sink, records)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)
        # The first begins with its hour; the last may have waited for the end of the load.
        return self.spans()[1:-1]

    def test_live_windows_are_as_long_as_they_should_be(self):
        spans = self.live()
        self.assertGreaterEqual(len(spans), 4)
        boundary = any(m['tEnd'] % lake.HOUR == 0 for m in self.manifests())
        self.assertTrue(boundary or min(spans) >= 500_000, spans)
        # A discovery interval, and what a busy machine adds to one of them.
        self.assertLess(statistics.median(spans), 650_000, spans)

    def test_live_windows_close_in_time_over_slow_reads(self):
        """Each answer takes longer than the next discovery: there is always something unread, and windows close."""
        broker = self.broker('--rate', 1000, '--rate-records', 4000)
        broker.fault(route='fetch', kind='delay', delayMs=200, count=-1)
        sink = self.sink(broker, QUEEN_S3_MAX_WINDOW_MS='500')
        self.wait_mirrored(broker, sink, 4000)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)
        self.assertLess(statistics.median(self.spans()[1:]), 1_500_000, self.spans())

    def test_live_windows_of_many_partitions(self):
        spans = self.live('--rate-partitions', 2000)
        self.assertGreaterEqual(len(spans), 2)
        self.assertLess(statistics.median(spans), 1_000_000, spans)

    # Catching up

    def old_log(self, step_us: int) -> tuple:
        """9000 records of 30 uneven partitions in about 3 MB, 10 a segment, over a stretch of the past."""
        log = self.folder / 'old.ndjson'
        with log.open('w') as file:
            for i in range(9000):
                file.write(json.dumps({'p': f'p-{i * i % 97 % 30}', 'n': i, 'text': 'x' * (i * 7919 % 500)}) + '\n')
        return ('--load', log, '--partition-by', 'p', '--base-time', '2026-01-05T10:20:00.000000Z',
                '--segment-records', 10, '--time-step-us', step_us)

    def drained(self, name: str, broker, align: str, hold: bool = True, **environment) -> dict[str, bytes]:
        """Keys and bytes of the objects that a drain of the whole log makes."""
        self.bucket = self.sink_name = name
        sink = self.sink(broker, name, QUEEN_S3_SINK=name, QUEEN_S3_BUCKET=name, QUEEN_S3_TARGET_MB='1',
                         QUEEN_S3_ALIGN=align, QUEEN_S3_MAX_WINDOW_MS='60000', **environment)
        self.wait_mirrored(broker, sink, 9000)
        self.assertEqual(sink.terminate(), 0)
        if hold:
            self.hold(broker, align=align)
        return {p.relative_to(self.lake_folder).as_posix(): p.read_bytes()
                for p in sorted((self.lake_folder / 'queen').rglob('w-*'))}

    def same_however_read(self, align: str, step_us: int) -> None:
        broker = self.broker(*self.old_log(step_us))
        one = self.drained('one', broker, align, QUEEN_S3_FETCH_CONCURRENCY='1')
        windows = self.manifests()
        self.assertGreaterEqual(len(windows), 3)
        eight = self.drained('eight', broker, align, False, QUEEN_S3_FETCH_CONCURRENCY='8')
        # Answers of other sizes and in another order, and some that fail.
        for kind in ('empty', 'reset-after', 'entry-error', 'status'):
            broker.fault(route='fetch', kind=kind, count=1, skip=2)
        broker.fault(route='fetch', kind='delay', delayMs=20, count=-1)
        slow = self.drained('slow', broker, align, align == 'none', QUEEN_S3_FETCH_CONCURRENCY='3',
                            QUEEN_S3_MEMORY_MB='128')
        # Without alignment the last one ends where the present is.
        count = len(one) - (align == 'none')
        for other in (eight, slow):
            self.assertEqual(list(one)[:count], list(other)[:count])
            self.assertEqual(list(one.values())[:count], list(other.values())[:count])
            self.assertEqual(len(one), len(other))

    def test_catching_up_by_the_hour(self):
        self.same_however_read('hour', 10_000_000)

    def test_catching_up_by_the_day(self):
        self.same_however_read('day', 100_000_000)

    def test_catching_up_without_alignment(self):
        self.same_however_read('none', 1_000_000)

    def test_windows_of_a_size(self):
        """Each but the last of an hour weighs the target, and not a segment more."""
        broker = self.broker(*self.old_log(1_000_000))
        self.drained('one', broker, 'hour')
        size = {}
        for record in broker.log('orders'):
            weight = 64 + len(record.transaction_id) + len(record.partition) + len(record.payload)
            size[record.ts] = size.get(record.ts, 0) + weight
        for m in self.manifests():
            weight = sum(w for ts, w in size.items() if m['tStart'] <= ts < m['tEnd'])
            last = max(ts for ts in size if ts < m['tEnd'])
            if m['tEnd'] % lake.HOUR:
                self.assertGreaterEqual(weight, 1 << 20, m['k'])
            self.assertLess(weight - size[last], 1 << 20, m['k'])

    # Gaps

    def test_idle_gaps_are_stepped_over(self):
        first, second = self.folder / 'first.ndjson', self.folder / 'second.ndjson'
        for path in (first, second):
            path.write_text(''.join(f'{{"n":{i}}}\n' for i in range(100)))
        load = ('--load', first, '--base-time', '2025-11-03T23:59:59.990000Z', '--segment-records', 5,
                '--load', second, '--base-time', '2026-02-01T04:30:00.000000Z', '--segment-records', 5)
        broker = self.broker(*load)
        for align, windows in (('hour', 3), ('day', 3), ('none', 1)):
            with self.subTest(align=align):
                self.bucket = self.sink_name = align
                sink = self.sink(broker, align, QUEEN_S3_SINK=align, QUEEN_S3_BUCKET=align, QUEEN_S3_ALIGN=align,
                                 QUEEN_S3_MAX_WINDOW_MS='3600000' if align == 'none' else '300')
                self.wait_mirrored(broker, sink, 200)
                self.assertEqual(sink.terminate(), 0)
                self.hold(broker, align=align)
                # The first log lies on both sides of a midnight, the second three months later.
                self.assertEqual(len(self.manifests()), windows)

    # A broker whose clock stands still without traffic

    def test_records_without_traffic_after_them(self):
        broker = self.broker('--broker', 2)
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='60000')
        for number in range(2):
            broker.push(mirror.records(50, first=50 * number))
            self.wait_mirrored(broker, sink, 50 * (number + 1), deadline=10)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)

    def test_live_on_the_other_broker(self):
        spans = self.live('--broker', 2, records=3000)
        self.assertGreaterEqual(len(spans), 3)


if __name__ == '__main__':
    unittest.main()
