"""Queues and partitions that come, go and come again, and what retention takes before it is read: nothing is passed
over in silence, nothing is told twice, nothing waits for what is gone."""
import signal
import unittest

import lake
import mirror
from processes import until
from sink import Sink

LOST = 'queen_s3_records_lost_total'


class LivesTest(mirror.MirrorTest):
    pushed = 0

    def push(self, broker, count: int, partition: str | None = None, queue: str = 'orders') -> None:
        items = mirror.records(count, first=self.pushed, queue=queue)
        broker.push(items if partition is None else [{**item, 'partition': partition} for item in items])
        self.pushed += count

    def unreadable(self, broker, partition: str) -> None:
        """Until the faults are cleared no read of this partition brings anything."""
        broker.fault(route='fetch', kind='entry-error', partition=partition, count=-1)

    def wait_asked(self, broker, times: int = 2) -> None:
        until(lambda: broker.call('GET', '/_dev/faults')['faults'][0]['hits'] >= times, 'read of the partition')

    def wait_in_lake(self, sink: Sink, count: int, queue: str = 'orders', deadline: float = 30) -> None:
        sink.program.wait_for(lambda: self.mirrored(queue) >= count, f'{count} records in the lake', deadline)

    # Partitions

    def created_again(self, generation: int) -> None:
        """Three times in a row, once while the sink is down, and with more records than before."""
        broker = self.broker('--broker', generation)
        sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1', QUEEN_S3_LEASE_TTL_MS='2000')
        self.push(broker, 140)
        self.wait_in_lake(sink, 140)
        total = 140
        for count in (5, 3, 2):
            broker.control('recreate', queue='orders', partition='p-0')
            self.push(broker, count, 'p-0')
            self.push(broker, 10, 'p-1')
            total += count + 10
            self.wait_in_lake(sink, total)
        self.assertEqual(sink.terminate(), 0)
        broker.control('recreate', queue='orders', partition='p-1')
        self.push(broker, 4, 'p-1')
        sink.start()
        self.wait_in_lake(sink, total + 4)
        self.assertEqual(sink.metric(LOST), 0)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=0), 0)

    def test_partitions_created_again(self):
        self.created_again(1)

    def test_partitions_created_again_with_ids(self):
        self.created_again(2)

    def outgrown(self, generation: int) -> int:
        """Created again and grown past the old position between two looks; returns how many were told as lost."""
        broker = self.broker('--broker', generation)
        sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1')
        self.push(broker, 20, 'p-0')
        self.wait_in_lake(sink, 20)
        self.assertEqual(sink.terminate(), 0)
        broker.control('recreate', queue='orders', partition='p-0')
        self.push(broker, 50, 'p-0')
        sink.start()
        self.wait_in_lake(sink, 70 if generation == 2 else 50)
        self.assertEqual(sink.terminate(), 0)
        return self.mirrored()

    def test_one_that_outgrew_its_old_life_is_told_by_its_id(self):
        self.assertEqual(self.outgrown(2), 70)

    def unread_rest(self, generation: int, again: bool) -> None:
        """A partition goes, or is created again, with records that nobody has read."""
        broker = self.broker('--broker', generation)
        sink = self.sink(broker)
        self.push(broker, 70)
        self.wait_in_lake(sink, 70)
        self.unreadable(broker, 'p-3')
        self.push(broker, 25, 'p-3')
        self.wait_asked(broker)
        self.push(broker, 10, 'p-4')
        broker.control('recreate' if again else 'delete-partition', queue='orders', partition='p-3')
        if again:
            self.push(broker, 6, 'p-3')
        broker.clear_faults()
        self.push(broker, 10, 'p-5')
        self.wait_in_lake(sink, 90 + 6 * again)
        told = sink.wait_metric(LOST, 25)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=told), 25)
        self.assertEqual({life for _, _, _, life in self.lost()}, {'previous'} if again else {None})
        self.assertIn('lost: partition p-3', sink.text())

    def test_the_unread_rest_of_a_partition_that_is_gone(self):
        self.unread_rest(1, False)

    def test_the_unread_rest_of_a_partition_that_is_gone_with_ids(self):
        self.unread_rest(2, False)

    def test_the_unread_rest_of_a_life(self):
        self.unread_rest(1, True)

    def test_the_unread_rest_of_a_life_with_ids(self):
        self.unread_rest(2, True)

    def go_and_come(self, generation: int, kill: bool) -> None:
        broker = self.broker('--broker', generation, '--rate', 1000, '--rate-records', 5000, '--rate-partitions', 8)
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='1000', QUEEN_S3_CHECKPOINT_EVERY='2')
        for number in range(4):
            before = len(self.manifests())
            sink.program.wait_for(lambda: len(self.manifests()) > before, 'another window')
            what = 'recreate' if number % 2 else 'delete-partition'
            broker.control(what, queue='orders', partition=f'live-00000{number}')
            if kill and number == 2:
                sink.kill()
                sink.start()
        # The load has stopped, and what is readable is in the lake.
        whole = until(lambda: len(log := broker.log('orders', deleted=True)) == 5000 and log, 'end of the load')
        live = {(r.partition, r.offset, r.ts) for r in broker.log('orders')}
        until(lambda: live <= {(r.partition, r.offset, r.ts) for r in self.lake_records()}, 'all that can be read')
        self.assertEqual(sink.terminate(), 0)
        # What is gone was read or not, and how far a life went is known as far as it was seen.
        there = {(r.partition, r.offset, r.ts) for r in self.lake_records()}
        self.hold(broker, log=[r for r in whole if (r.partition, r.offset, r.ts) in there])

    def test_partitions_that_go_and_come_do_not_block(self):
        """Under load; without ids they are told as long as somebody looks."""
        self.go_and_come(1, False)

    def test_partitions_that_go_and_come_do_not_block_with_ids(self):
        """Nor with the sink killed in between."""
        self.go_and_come(2, True)

    # Retention

    def test_retention_passes_the_position(self):
        broker = self.broker()
        sink = self.sink(broker)
        self.push(broker, 70)
        self.wait_in_lake(sink, 70)
        self.unreadable(broker, 'p-3')
        self.push(broker, 40, 'p-3')
        self.wait_asked(broker)
        start = next(p for p in broker.partitions('orders') if p['name'] == 'p-3')['lastOffset'] - 9
        broker.control('trim', queue='orders', partition='p-3', logStart=start)
        broker.clear_faults()
        self.wait_in_lake(sink, 80)
        told = sink.wait_metric(LOST, 30)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=told), 30)
        self.assertEqual(self.lost(), [('p-3', 10, start - 1, None)])

    def test_all_that_is_unread_is_deleted(self):
        """There is no record to ship the range with: it waits for one, over a stop and a kill, and is told once."""
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1', QUEEN_S3_LEASE_TTL_MS='1000')
        self.push(broker, 70)
        self.wait_in_lake(sink, 70)
        sink.program.wait_for(lambda: (self.lake_folder / 'queen/_queen/orders/checkpoint').is_dir(), 'checkpoint')
        self.unreadable(broker, 'p-3')
        self.push(broker, 15, 'p-3')
        self.wait_asked(broker)
        broker.control('trim', queue='orders', partition='p-3', logStart=25)
        broker.clear_faults()
        sink.wait_line('lost: partition p-3')
        self.assertEqual(self.lost(), [])
        self.assertEqual(sink.terminate(), 0)
        sink.start()
        sink.wait_line('lost: partition p-3')
        sink.kill()
        sink.start()
        sink.wait_line('lost: partition p-3')
        self.push(broker, 10, 'p-4')
        self.wait_in_lake(sink, 80)
        told = sink.wait_metric(LOST, 15)
        self.push(broker, 10, 'p-3')
        self.wait_in_lake(sink, 90)
        self.assertEqual(sink.metric(LOST), told)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=told), 15)

    def trimmed_while_down(self, **environment) -> None:
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1', **environment)
        self.push(broker, 70)
        self.wait_in_lake(sink, 70)
        self.assertEqual(sink.terminate(), 0)
        self.push(broker, 70)
        broker.control('trim', queue='orders', partition='p-0', logStart=15)  # five that nobody has read
        broker.control('trim', queue='orders', partition='p-1', logStart=20)  # all ten
        broker.control('trim', queue='orders', partition='p-2', logStart=10)  # nothing but what is in the lake
        sink.start()
        self.wait_in_lake(sink, 125)
        told = sink.wait_metric(LOST, 15)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=told), 15)

    def test_trimmed_while_down(self):
        self.trimmed_while_down()

    def test_a_clock_that_steps_back(self):
        """What the broker stamps below the end of a window that is closed has no place in one: it is lost, and told as
        what it is. Where that begins while the sink is down, the start says so."""
        broker = self.broker()
        broker.control('clock', offsetUs=3_600_000_000)
        sink = self.sink(broker)
        self.push(broker, 70)
        self.wait_in_lake(sink, 70)
        broker.control('clock', offsetUs=0)
        self.push(broker, 14)
        self.assertIn("came with a ts that lies in a window that is closed: the broker's clock was set back",
                      sink.wait_line('lost: partition'))
        broker.control('clock', offsetUs=7_200_000_000)
        self.push(broker, 7)
        self.wait_in_lake(sink, 77)
        told = sink.wait_metric(LOST, 1)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=told), 14)
        broker.control('clock', offsetUs=3_600_000_000)
        sink.start()
        self.assertIn(f' s behind {self.committed(broker)["tEnd"]}, where the last window ended',
                      sink.wait_line("the broker's clock is 3"))  # thousand and some seconds
        self.assertEqual(sink.terminate(), 0)
        broker.control('clock', offsetUs=7_200_000_000)
        sink.start()
        self.push(broker, 7)
        self.wait_in_lake(sink, 84)
        self.assertNotIn('behind', sink.text())
        self.assertEqual(sink.terminate(), 0)

    def test_a_redo_does_not_tell_it_twice(self):
        """The manifest with the range is up when the sink is killed; the pointer moves after the restart."""
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1', QUEEN_S3_LEASE_TTL_MS='1000')
        self.push(broker, 70)
        self.wait_in_lake(sink, 70)
        self.assertEqual(sink.terminate(), 0)
        self.push(broker, 70)
        broker.control('trim', queue='orders', partition='p-0', logStart=15)
        for point in ('after_intent', 'after_upload', 'before_commit'):
            sink.start(QUEEN_S3_CRASH_AT=point)
            self.assertEqual(sink.wait(), -signal.SIGKILL)
        sink.start(QUEEN_S3_CRASH_AT='never')
        self.wait_mirrored(broker, sink, 135)
        self.push(broker, 7)
        self.wait_mirrored(broker, sink, 142)
        told = sink.wait_metric(LOST, 5)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=told), 5)

    def test_what_was_begun_is_gone_before_the_redo(self):
        """Everything of the intent's window is deleted: it is given up, and the next window takes its k."""
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1', QUEEN_S3_LEASE_TTL_MS='1000')
        self.push(broker, 70)
        self.wait_in_lake(sink, 70)
        self.assertEqual(sink.terminate(), 0)
        self.push(broker, 20, 'p-0')
        sink.start(QUEEN_S3_CRASH_AT='after_intent')
        self.assertEqual(sink.wait(), -signal.SIGKILL)
        broker.control('trim', queue='orders', partition='p-0', logStart=30)
        self.push(broker, 10, 'p-1')
        sink.start(QUEEN_S3_CRASH_AT='never')
        self.wait_in_lake(sink, 80)
        told = sink.wait_metric(LOST, 1)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(self.hold_lossy(broker, told=told), 20)

    def test_holes(self):
        """One that stays is lost after it was asked for three times over ten seconds; one that heals costs nothing; one
        at the end of a partition holds its queue, and says which it is."""
        queues = ('orders', 'clicks', 'tail')
        broker = self.broker(queues=queues)
        for queue in queues:
            self.push(broker, 70, queue=queue)
        broker.control('hole', queue='orders', partition='p-2', **{'from': 3, 'to': 6})
        broker.control('hole', queue='clicks', partition='p-2', **{'from': 3, 'to': 6})
        broker.control('hole', queue='tail', partition='p-2', **{'from': 7, 'to': 9})
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(queues))
        sink.wait_line('tail: partition p-2: offset 7 can\'t be read')
        broker.control('unhole', queue='clicks', partition='p-2')
        self.wait_in_lake(sink, 70, 'clicks')
        self.assertLess(self.mirrored('orders'), 66)  # as far as the hole, at most
        self.wait_in_lake(sink, 66, 'orders')
        self.assertLess(self.mirrored('tail'), 70)
        broker.control('unhole', queue='tail', partition='p-2')
        self.wait_in_lake(sink, 70, 'tail')
        sink.wait_metric(LOST, 4, queue='orders')
        told = {queue: sink.metric(LOST, queue=queue) for queue in queues}
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual([self.hold_lossy(broker, queue, told[queue]) for queue in queues], [4, 0, 0])

    # Queues

    def test_new_queues_of_a_star(self):
        """From their log start, whatever START says: they weren't there when the operator chose."""
        broker = self.broker()
        self.push(broker, 30)
        sink = self.sink(broker, QUEEN_S3_QUEUES='*', QUEEN_S3_START='latest', QUEEN_S3_WORKERS='2')
        start = sink.program.wait_for(lambda: self.committed(broker), 'T_0')['tEnd']
        for queue in ('a/b', 'c'):
            self.push(broker, 60, queue=queue)
        for queue in ('a/b', 'c'):
            self.wait_mirrored(broker, sink, 60, queue)
        self.push(broker, 40)
        began = lake.micros(start)
        self.wait_mirrored(broker, sink, sum(r.ts >= began for r in broker.log('orders')))
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker, start=began)
        for queue in ('a/b', 'c'):
            self.hold(broker, queue)

    def test_what_takes_a_minute(self):
        """A queue that isn't there is looked for again after a minute: one that is created late, and one that is
        deleted and created again. Meanwhile the others go on, and a standby is healthy that never had the lease."""
        queues = ('orders', 'late', 'again')
        broker = self.broker(queues=('orders', 'again'))
        common = {'QUEEN_S3_QUEUES': ','.join(queues), 'QUEEN_S3_CHECKPOINT_EVERY': '1'}
        sink = self.sink(broker, 'a', QUEEN_S3_INSTANCE='a', **common)
        sink.wait_line('late: stopped')
        for queue in ('orders', 'again'):
            self.push(broker, 70, queue=queue)
            self.wait_mirrored(broker, sink, 70, queue)
        standby = self.sink(broker, 'b', QUEEN_S3_INSTANCE='b', QUEEN_S3_QUEUES='orders', QUEEN_S3_CHECKPOINT_EVERY='1')
        standby.wait_line('orders: held by instance a')
        broker.control('delete-queue', queue='again')
        sink.wait_line('again: stopped')
        for queue in ('late', 'again'):
            self.push(broker, 35, queue=queue)
        self.push(broker, 7)
        self.wait_mirrored(broker, sink, 77)
        # Red with the queues that were stopped; the standby waits for as long, and is green.
        self.assertIn(sink.wait_health(503)['queue'], ('again', 'late'))
        self.assertEqual(standby.health()[0], 200)
        self.wait_in_lake(sink, 35, 'late', 75)
        self.wait_in_lake(sink, 105, 'again', 75)
        self.push(broker, 7)
        self.wait_mirrored(broker, sink, 84)
        sink.wait_health(200)
        self.assertEqual(standby.health()[0], 200)
        self.assertEqual((standby.terminate(), sink.terminate()), (0, 0))
        self.hold(broker)
        self.hold(broker, 'late')
        self.hold_lossy(broker, 'again')


class DeletedQueueTest(mirror.MirrorTest):
    def test_what_was_read_of_a_deleted_queue_is_written(self):
        """Records that were read and not yet committed are not in the broker any more: they must not vanish."""
        broker = self.broker()
        broker.push(mirror.records(120, partitions=5))
        sink = self.sink(broker, QUEEN_S3_MAX_WINDOW_MS='3600000')
        sink.program.wait_for(lambda: sink.metric('queen_s3_buffer_bytes') > 0 and
                              sink.metric('queen_s3_lag_seconds') >= 0 and
                              sink.metric('queen_s3_fetch_calls_total', result='ok') >= 1, 'records read')
        wanted = broker.log(self.queue)
        broker.control('delete-queue', queue=self.queue)
        sink.wait_records(120)
        self.assertEqual(sink.terminate(), 0)
        lake.assert_lake(self, self.lake_folder, self.queue, log=wanted, complete=True,
                         committed=broker.document(self.queue, 'committed'))


if __name__ == '__main__':
    unittest.main()
