"""The lease: an answer that got lost costs seconds and never the queue; of two instances one writes at a time, whatever
happens to either; a lease that ran out without a rival costs nothing; a clean stop gives it back at once."""
import os
import random
import signal
import time
import unittest

import mirror
from processes import until

# What can become of an answer: it never comes, or the write was applied or not and nothing says which.
LOST_ANSWERS = ({'kind': 'reset-after'}, {'kind': 'reset-before'}, {'kind': 'status', 'status': 503}, {'kind': 'hang'},
                {'kind': 'cut'}, {'kind': 'garbled'}, {'kind': 'reset-after', 'count': 2})
COST_LIMIT = 5
POINTER_LOST = 'queen_s3_commit_precondition_lost_total'


class LeaseTest(mirror.MirrorTest):
    pushed = 0

    def push(self, broker, count: int = 50) -> None:
        broker.push(mirror.records(count, first=self.pushed))
        self.pushed += count

    def wait_hits(self, broker, count: int = 1) -> None:
        """Until the one fault that is set has hit so often."""
        until(lambda: broker.call('GET', '/_dev/faults')['faults'][0]['hits'] >= count, 'fault to hit')

    def wait_no_lease(self, broker, deadline: float = 20) -> None:
        until(lambda: broker.document('orders', 'lease') is None, 'end of the lease', deadline)

    def nothing_was_lost(self, broker, *sinks) -> None:
        for sink in sinks:
            self.assertFalse('lease went to' in sink.text(), '\n' + sink.program.tail())
            self.assertEqual(sink.metric(POINTER_LOST), 0)
        self.hold(broker)

    # A lost answer

    def test_lost_answers_to_pointers(self):
        """With the TTL at its default: one third of it, or three seconds, is what a hanging call takes."""
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='30000', QUEEN_S3_MAX_WINDOW_MS='100')
        for document in (':intent', ':committed'):
            for fault in LOST_ANSWERS:
                with self.subTest(document=document, **fault):
                    broker.fault(route='kv', keyContains=document, **fault)
                    began = time.monotonic()
                    self.push(broker)
                    self.wait_mirrored(broker, sink, self.pushed)
                    self.assertLess(time.monotonic() - began, COST_LIMIT)
                    self.wait_hits(broker, fault.get('count', 1))
                    broker.clear_faults()
        self.nothing_was_lost(broker, sink)

    def test_lost_answers_to_refreshes(self):
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='1500', QUEEN_S3_MAX_WINDOW_MS='100')
        for fault in LOST_ANSWERS:
            with self.subTest(**fault):
                self.push(broker)
                self.wait_mirrored(broker, sink, self.pushed)
                broker.fault(route='kv', everyKeyContains=':lease', **fault)
                self.wait_hits(broker)
                began = time.monotonic()
                self.push(broker)
                self.wait_mirrored(broker, sink, self.pushed)
                self.assertLess(time.monotonic() - began, COST_LIMIT)
                broker.clear_faults()
        self.nothing_was_lost(broker, sink)

    def test_lost_answers_to_claims(self):
        broker = self.broker()
        sink = self.sink(broker, start=False, QUEEN_S3_LEASE_TTL_MS='30000', QUEEN_S3_MAX_WINDOW_MS='100')
        for fault in LOST_ANSWERS:
            with self.subTest(**fault):
                self.push(broker)
                broker.fault(route='kv', op='putIfAbsent', **fault)
                began = time.monotonic()
                sink.start()
                self.wait_mirrored(broker, sink, self.pushed)
                self.assertLess(time.monotonic() - began, COST_LIMIT)
                self.wait_hits(broker, fault.get('count', 1))
                broker.clear_faults()
                self.assertEqual(sink.metric(POINTER_LOST), 0)
                self.assertNotIn('held by', sink.text())
                self.assertEqual(sink.terminate(), 0)
        self.nothing_was_lost(broker)

    def test_every_third_answer_is_lost(self):
        """Under load, of whatever call: nothing but time is lost."""
        broker = self.broker('--rate', 1000, '--rate-records', 3000)
        for skip, kind in enumerate(['reset-after', 'cut', 'reset-before'] * 6, 2):
            broker.fault(route='kv', kind=kind, skip=skip)
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='3000')
        sink.wait_records(3000)
        broker.clear_faults()
        self.wait_mirrored(broker, sink, 3000)
        self.nothing_was_lost(broker, sink)

    # Two instances

    def test_two_instances_and_stopped_processes(self):
        choose = random.Random(11)
        broker = self.broker('--rate', 1000, '--rate-records', 6000)
        common = {'QUEEN_S3_LEASE_TTL_MS': '1000', 'QUEEN_S3_MAX_WINDOW_MS': '150'}
        holder = self.sink(broker, 'a', QUEEN_S3_INSTANCE='a', **common)
        holder.wait_metric('queen_s3_windows_committed_total', 1)
        other = self.sink(broker, 'b', QUEEN_S3_INSTANCE='b', **common)
        other.wait_line('held by instance a')
        for _ in range(4):
            time.sleep(choose.uniform(0, 0.2))  # the moment is what varies
            before = other.metric('queen_s3_windows_committed_total')
            lost = holder.metric(POINTER_LOST)
            frozen = holder.tree()
            for pid in frozen:
                self.signal(pid, signal.SIGSTOP)
            self.push(broker)
            other.wait_metric('queen_s3_windows_committed_total', before + 1)
            for pid in reversed(frozen):
                self.signal(pid, signal.SIGCONT)
            holder.wait_metric(POINTER_LOST, lost + 1, 20)
            holder.wait_line('lease went to instance ' + other.environment['QUEEN_S3_INSTANCE'])
            holder, other = other, holder
        self.wait_mirrored(broker, holder, 6000 + self.pushed)
        self.assertEqual((holder.terminate(), other.terminate()), (0, 0))
        self.hold(broker)

    def signal(self, pid: int, number: int) -> None:
        os.kill(pid, number)

    def test_a_clean_stop_hands_over_at_once(self):
        broker = self.broker('--rate', 1000, '--rate-records', 4000)
        common = {'QUEEN_S3_LEASE_TTL_MS': '60000', 'QUEEN_S3_MAX_WINDOW_MS': '150'}
        a = self.sink(broker, 'a', QUEEN_S3_INSTANCE='a', **common)
        b = self.sink(broker, 'b', start=False, QUEEN_S3_INSTANCE='b', **common)
        for _ in range(3):
            a.wait_metric('queen_s3_windows_committed_total', 1)
            self.assertEqual(a.terminate(), 0)
            self.assertIsNone(broker.document('orders', 'lease'))
            began = time.monotonic()
            b.start()
            self.push(broker)
            b.wait_metric('queen_s3_windows_committed_total', 1)
            self.assertLess(time.monotonic() - began, COST_LIMIT)
            a, b = b, a
        self.wait_mirrored(broker, a, 4000 + self.pushed)
        self.assertEqual(a.terminate(), 0)
        self.hold(broker)

    def test_a_clean_stop_during_a_refresh(self):
        """The refresh is on its way when the signal comes; when the process is gone, so is the lease."""
        broker = self.broker()
        for fault in ({'kind': 'delay', 'delayMs': 300}, {'kind': 'reset-after'}, {'kind': 'status', 'status': 503}):
            with self.subTest(**fault):
                sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='3000')
                self.push(broker)
                self.wait_mirrored(broker, sink, self.pushed)
                broker.fault(route='kv', everyKeyContains=':lease', op='put', **fault)
                self.wait_hits(broker)
                self.assertEqual(sink.terminate(), 0)
                self.assertIsNone(broker.document('orders', 'lease'))
                broker.clear_faults()
        self.hold(broker)

    # Nobody else wanted it

    def test_expired_while_the_broker_refused_writes(self):
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='1000')
        self.push(broker)
        self.wait_mirrored(broker, sink, self.pushed)
        broker.fault(route='kv', kind='status', keyContains=':lease', count=-1)
        self.push(broker)
        sink.program.wait_for(lambda: sink.metric('queen_s3_buffer_bytes') > 0, 'records in the buffer')
        self.wait_no_lease(broker)
        calls = self.fetched(broker)
        broker.clear_faults()
        began = time.monotonic()
        self.wait_mirrored(broker, sink, self.pushed)
        self.assertLess(time.monotonic() - began, COST_LIMIT)
        self.assertEqual(self.fetched(broker), calls, 'the buffers were kept: nothing was read again')
        self.nothing_was_lost(broker, sink)

    def fetched(self, broker) -> int:
        return broker.stats()['routes']['fetch']['calls']

    def test_expired_while_the_broker_was_down(self):
        broker = self.broker('--rate', 1000, '--rate-records', 2500)
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='1000')
        for down in ('database', 'process'):
            sink.wait_metric('queen_s3_windows_committed_total', sink.metric('queen_s3_windows_committed_total') + 1)
            if down == 'database':
                broker.control('database', down=True)
            else:
                broker.program.signal(signal.SIGSTOP)
            time.sleep(1.5)  # beyond the TTL: there is nobody who could tell
            if down == 'database':
                broker.control('database', down=False)
            else:
                broker.program.signal(signal.SIGCONT)
            self.push(broker)
        self.wait_mirrored(broker, sink, 2500 + self.pushed)
        self.nothing_was_lost(broker, sink)

    def test_expired_while_the_sink_stood_still(self):
        broker = self.broker('--rate', 1000, '--rate-records', 2500)
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='1000')
        for _ in range(2):
            sink.wait_metric('queen_s3_windows_committed_total', sink.metric('queen_s3_windows_committed_total') + 1)
            frozen = sink.tree()
            for pid in frozen:
                self.signal(pid, signal.SIGSTOP)
            self.wait_no_lease(broker)
            for pid in reversed(frozen):
                self.signal(pid, signal.SIGCONT)
            self.push(broker)
        self.wait_mirrored(broker, sink, 2500 + self.pushed)
        self.nothing_was_lost(broker, sink)


if __name__ == '__main__':
    unittest.main()
