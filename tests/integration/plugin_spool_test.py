"""What each durability promises when the host is killed, and the spool: that it loses nothing and doubles nothing, is
locked, mended, and gets along without the bucket."""
import collections
import errno
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest
import zlib

from bucket_server import BucketServer, Request
from plugin_host import ERROR, INFO, WARN, Host, Record
from plugin_test import config, lines, name, records
from processes import until


class Case(unittest.TestCase):
    def setUp(self):
        self.s3 = self.enterContext(BucketServer())
        self.spool = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'deep/spool'

    def enterContext(self, manager):
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered

    def host(self) -> Host:
        return self.enterContext(Host())

    def config(self, **more) -> dict:
        return config(self.s3, durability='spooled', spool_dir=str(self.spool)) | more

    def opened(self, **more) -> Host:
        host = self.host()
        self.assertEqual(host.open(1, self.config(**more)), 0, host.logs)
        return host

    def spooled(self) -> list[str]:
        return sorted(path.name for path in self.spool.iterdir() if path.suffix == '.spool')

    def offsets(self, topic: str = 't') -> list[int]:
        return [record['offset'] for key in self.s3.keys() if f'/{topic}/' in key
                for record in lines(self.s3.objects[key])]

    def down(self):
        self.s3.answer = lambda request: 503

    def up(self):
        self.s3.answer = lambda request: None


class Spool(Case):
    def test_no_call_waits_for_the_bucket(self):
        self.down()
        host = self.opened(file_rotation='messages', max_messages_per_file=2, retry_delay='20ms')
        for batch in range(5):
            self.assertEqual(host.consume(1, 't', records(4 * batch, 4 * batch + 3)), 0)
        host.wait_for_log('connectivity check failed')
        self.assertEqual(self.s3.keys(), [])
        self.assertEqual(len(self.spooled()), 10)
        self.up()
        self.s3.wait_for(lambda: len(self.s3.objects) == 10, 'ten files')
        until(lambda: not self.spooled(), 'an empty spool')
        self.assertEqual(self.offsets(), list(range(20)))
        self.assertEqual([k for k in self.s3.keys() if '.lost' in k], [])

    def test_the_folder_is_made_private_and_used_by_one(self):
        host = self.opened()
        self.assertEqual(self.spool.stat().st_mode & 0o777, 0o700)
        self.assertEqual(host.open(2, self.config()), 1)
        self.assertIn('in use by another sink', host.messages(ERROR)[-1])
        other = self.host()
        self.assertEqual(other.open(1, self.config()), 1)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(other.open(1, self.config()), 0)

    def test_close_puts_up_what_is_open(self):
        host = self.opened(output_format='json_array', compression='none')
        self.assertEqual(host.consume(1, 't', records(0, 2)), 0)
        self.assertEqual(host.consume(1, 't', records(3, 4)), 0)
        self.assertEqual(len(self.spooled()), 1)
        self.assertEqual(host.close(1), 0)
        self.assertEqual([r['offset'] for r in json.loads(self.s3.objects[name('t', 0, 4, 'json')])], list(range(5)))
        self.assertEqual(self.spooled(), [])

    def test_what_close_cannot_put_stays(self):
        host = self.opened(max_attempts=2)
        self.assertEqual(host.consume(1, 't', records(0, 2)), 0)
        self.down()
        self.assertEqual(host.close(1), 0)
        self.assertEqual(len(self.spooled()), 1)
        self.up()
        host = self.opened()
        self.s3.wait_for(lambda: name('t', 0, 2) in self.s3.objects, 'the file of before')
        self.assertTrue(any('1 files with 3 records' in message for message in host.messages(INFO)))

    def test_a_file_is_finished_under_the_options_it_was_begun_with(self):
        host = self.opened(prefix='old', output_format='json_array')
        self.assertEqual(host.consume(1, 't', records(0, 1)), 0)
        host.kill()
        host = self.opened(prefix='new', path_template='x/{topic}', compression='gzip')
        self.assertEqual(host.consume(1, 't', records(2, 3)), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.s3.keys(), [name('new/x/t', 2, 3, 'jsonl.gz'), name('old/t', 0, 1, 'json')])
        self.assertEqual(len(json.loads(self.s3.objects[name('old/t', 0, 1, 'json')])), 2)

    def test_topics_that_would_share_keys(self):
        host = self.opened(path_template='all')
        self.assertEqual(host.consume(1, 't', records(0, 4)), 0)
        self.assertEqual(host.consume(1, 'u', records(0, 4)), 1)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.offsets('all'), [0, 1, 2, 3, 4])
        self.assertEqual(self.spooled(), [])

    def test_by_age(self):
        host = self.opened(max_file_age='50ms')
        self.assertEqual(host.consume(1, 't', records(0, 1)), 0)
        self.s3.wait_for(lambda: name('t', 0, 1) in self.s3.objects, 'a file of age')
        self.assertEqual(host.consume(1, 't', records(2, 2)), 0)
        self.s3.wait_for(lambda: name('t', 2, 2) in self.s3.objects, 'another')

    def test_a_topic_created_again_begins_a_file(self):
        host = self.opened()
        self.assertEqual(host.consume(1, 't', records(0, 9, b'1')), 0)
        self.assertEqual(host.consume(1, 't', records(0, 4, b'2')), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.s3.keys(), [name('t', 0, 4), name('t', 0, 9)])


class Crash(Case):
    def test_a_torn_tail_is_cut_and_told(self):
        host = self.opened()
        self.assertEqual(host.consume(1, 't', records(0, 1)), 0)
        file = self.spool / self.spooled()[0]
        whole = file.stat().st_size
        self.assertEqual(host.consume(1, 't', records(2, 3)), 0)
        end = file.stat().st_size
        host.kill()
        self.s3.objects.clear()
        content = file.read_bytes()
        for size in range(whole + 1, end, 13):
            with self.subTest(size):
                file.write_bytes(content[:size])
                self.down()
                host = self.opened(retry_delay='10ms')
                self.assertIn(f'the last {size - whole} of {size} bytes', host.wait_for_log('before a crash'))
                self.assertEqual(file.stat().st_size, whole)
                host.kill()
        flipped = bytearray(content)
        flipped[-3] ^= 1
        file.write_bytes(flipped)
        self.up()
        host = self.opened()
        self.s3.wait_for(lambda: name('t', 0, 1) in self.s3.objects, 'what is whole')
        # The batch whose call the crash took is handed over again.
        self.assertEqual(host.consume(1, 't', records(2, 3)), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.offsets(), [0, 1, 2, 3])

    def test_damage_in_the_middle_is_put_aside_and_told(self):
        host = self.opened()
        self.assertEqual(host.consume(1, 't', records(0, 1)), 0)
        file = self.spool / self.spooled()[0]
        middle = file.stat().st_size - 10
        self.assertEqual(host.consume(1, 't', records(2, 3)), 0)
        host.kill()
        content = bytearray(file.read_bytes())
        content[middle] ^= 1
        file.write_bytes(content)
        host = self.opened()
        host.wait_for_log('is kept for you to look at: 4 records of offsets 0 to 3')
        self.assertEqual([path.suffix for path in self.spool.iterdir() if path.stem == file.stem], ['.damaged'])

    def test_a_redelivery_after_the_upload_is_known(self):
        host = self.opened(file_rotation='messages', max_messages_per_file=4)
        self.assertEqual(host.consume(1, 't', records(0, 3)), 0)
        until(lambda: not self.spooled(), 'an empty spool')
        host.kill()
        for _ in range(2):  # and the crash comes again
            host = self.opened(file_rotation='messages', max_messages_per_file=4)
            self.assertEqual(host.consume(1, 't', records(0, 3)), 0)
            host.kill()
        host = self.opened(file_rotation='messages', max_messages_per_file=4)
        self.assertEqual(host.consume(1, 't', records(0, 3)), 0)
        self.assertEqual(host.consume(1, 't', records(4, 5)), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.offsets(), list(range(6)))

    def run_until_killed(self, at: int, batches: list[list[Record]], first: int, lag: int = 0, **more) -> int:
        """Hands over the batches from `first` on, as a runtime does that commits what was answered with 0 before it
        hands over the next; the host is killed at the request number `at`. Which batch comes first after that: with
        lag, the commit of the last one is lost with the host."""
        host = self.host()
        count = [0]

        def answer(request):
            count[0] += 1
            if count[0] == at:
                os.kill(host.process.pid, 9)
            return None
        self.s3.answer = answer
        number = first
        try:
            if host.open(1, self.config(**more)) != 0:
                return first
            while number < len(batches):
                if host.consume(1, 't', batches[number]) != 0:
                    return number
                number += 1
            host.close(1)
        except AssertionError:
            if number < len(batches):  # the host has ended, maybe within a call
                return number
        return max(number - lag, first)

    def test_a_batch_that_was_part_new_is_known_after_the_next_crash(self):
        """Offset 2 is in the file before, and was a repeat in the batch that comes again."""
        self.down()
        for batch in records(0, 2), records(2, 5), records(2, 8):
            host = self.opened()
            self.assertEqual(host.consume(1, 't', batch), 0)
            host.kill()
        self.up()
        host = self.opened()
        self.assertEqual(host.consume(1, 't', records(2, 9)), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.offsets(), list(range(10)))

    def test_killed_at_every_request_the_spool_loses_and_doubles_nothing(self):
        batches = [records(5 * number, 5 * number + 4, json.dumps(number).encode()) for number in range(4)]
        options = {'file_rotation': 'messages', 'max_messages_per_file': 7}
        for at in range(1, 9):
            for lag in (0, 1):
                with self.subTest(at=at, lag=lag):
                    self.s3.objects.clear()
                    self.spool = self.spool.with_name(f'spool-{at}-{lag}')
                    first = self.run_until_killed(at, batches, 0, lag, **options)
                    first = self.run_until_killed(at + 3, batches, first, lag, **options)
                    self.run_until_killed(0, batches, first, **options)
                    self.assertEqual(self.spooled(), [])
                    self.assertEqual(sorted(self.offsets()), list(range(20)))

    def test_killed_between_any_two_calls(self):
        batches = [records(3 * number, 3 * number + 2) for number in range(6)]
        host = None
        self.down()
        for number, batch in enumerate(batches):
            host = self.opened(file_rotation='messages', max_messages_per_file=4, retry_delay='10ms')
            if number > 0:
                self.assertEqual(host.consume(1, 't', batches[number - 1]), 0)  # not committed before the kill
            self.assertEqual(host.consume(1, 't', batch), 0)
            host.kill()
        self.up()
        host = self.opened()
        self.assertEqual(host.consume(1, 't', batches[-1]), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(sorted(self.offsets()), list(range(18)))

    def test_buffered_loses_at_most_what_is_open(self):
        options = {'durability': 'buffered', 'file_rotation': 'messages', 'max_messages_per_file': 4}
        given = self.config(**options)
        del given['spool_dir']
        host = self.host()
        self.assertEqual(host.open(1, given), 0)
        self.assertEqual(host.consume(1, 't', records(0, 9)), 0)
        host.kill()
        self.assertEqual(self.offsets(), list(range(8)))

    def test_uploaded_loses_nothing(self):
        given = self.config(durability='uploaded')
        del given['spool_dir']
        for at in range(1, 7):
            with self.subTest(at):
                self.s3.objects.clear()
                host = self.host()
                count = [0]

                def answer(request):
                    count[0] += 1
                    if count[0] == at:
                        os.kill(host.process.pid, 9)
                    return None
                self.s3.answer = answer
                committed = -1
                try:
                    if host.open(1, given) == 0:
                        for first in range(0, 12, 3):
                            if host.consume(1, 't', records(first, first + 2)) == 0:
                                committed = first + 2
                except AssertionError:
                    pass
                self.assertLessEqual(set(range(committed + 1)), set(self.offsets()))


class Disk:
    """A file system of its own, of so many bytes."""
    def __init__(self, size: int):
        self.path = pathlib.Path(tempfile.mkdtemp())
        self.mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', self.path],
                                      capture_output=True).returncode == 0

    def __enter__(self):
        if not self.mounted:
            raise unittest.SkipTest('a tmpfs can be mounted by root alone')
        return self

    def fill(self):
        with open(self.path / 'fill', 'wb', buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1000))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(['umount', '-l', self.path], check=True)
        self.path.rmdir()


class Full(Case):
    def fill(self, host: Host) -> int:
        """Batches until the disk takes no more; how many records it has taken."""
        first = 0
        while host.consume(1, 't', records(first, first + 19, json.dumps('x' * 100).encode())) == 0:
            first += 20
        self.assertIn('No space left on device', host.messages(ERROR)[-1])
        return first

    def test_a_disk_that_is_full_gets_empty_when_the_bucket_is_back(self):
        disk = self.enterContext(Disk(256 << 10))
        self.spool = disk.path / 'spool'
        self.down()
        host = self.opened(file_rotation='messages', max_messages_per_file=40, retry_delay='20ms')
        count = self.fill(host)
        disk.fill()
        self.assertEqual(host.consume(1, 't', records(count, count)), 1)
        self.up()
        until(lambda: host.consume(1, 't', records(count, count)) == 0, 'room in the spool')
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.offsets(), list(range(count + 1)))
        self.assertEqual(self.spooled(), [])

    def test_a_disk_that_is_full_gets_empty_after_a_crash(self):
        disk = self.enterContext(Disk(256 << 10))
        self.spool = disk.path / 'spool'
        self.down()
        host = self.opened(file_rotation='messages', max_messages_per_file=100000, retry_delay='20ms')
        count = self.fill(host)
        host.kill()
        (self.spool / 'note.new').unlink(missing_ok=True)  # as a crash at the wrong moment leaves it
        disk.fill()
        self.up()
        host = self.opened()
        until(lambda: self.spooled() == [], 'an empty spool')
        self.assertEqual(host.consume(1, 't', records(count - 20, count - 1, json.dumps('x' * 100).encode())), 0)
        self.assertEqual(host.consume(1, 't', records(count, count)), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.offsets(), list(range(count + 1)))
        self.assertNotIn("can't be noted", str(host.messages(ERROR)))

    def limit(self, host: Host, size: int) -> None:
        resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def test_a_disk_that_takes_no_more_is_answered_with_1_and_nothing_is_lost(self):
        host = self.opened(file_rotation='messages', max_messages_per_file=6)
        self.assertEqual(host.consume(1, 't', records(0, 3)), 0)
        size = (self.spool / self.spooled()[0]).stat().st_size
        batch = records(4, 5) + records(6, 13, json.dumps('x' * 1000).encode())
        for room in (1, 40, 200, 500, 900, 3000):  # the last three: in the second file that it goes into
            self.limit(host, size + room)
            self.assertEqual(host.consume(1, 't', batch), 1)
            self.assertEqual(host.consume(1, 't', batch), 1)
            self.assertEqual([(self.spool / file).stat().st_size for file in self.spooled()], [size])
        self.assertIn("can't write to", host.messages(ERROR)[-1])
        self.limit(host, resource.RLIM_INFINITY)
        self.assertEqual(host.consume(1, 't', batch), 0)
        self.assertEqual(host.consume(1, 't', batch), 0)
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.offsets(), list(range(14)))
        self.assertEqual(host.messages(WARN), [])

    def test_a_folder_that_cannot_be_made_is_refused(self):
        self.spool.parent.mkdir(parents=True)
        self.spool.write_text('a file')
        host = self.host()
        self.assertEqual(host.open(1, self.config()), 1)
        self.assertIn('spool_dir', host.messages(ERROR)[-1])


class Storm(Case):
    """Eight threads, a bucket that refuses, files of age, and close in the middle of it all."""
    def refuse(self, request: Request) -> int | None:
        """By key, so that it is no matter which thread is quicker: every fourth file's first attempt, every ninth's
        first two, which are all it has; a marker's or a removal's first attempt, so that it comes with the second."""
        if 'probe' in request.key:
            return None
        self.asked[request.method, request.key] += 1
        number = zlib.crc32(request.key.encode())
        refused = 1 if request.key.endswith('.lost') else 2 if number % 9 == 0 else 1 if number % 4 == 0 else 0
        return 503 if self.asked[request.method, request.key] <= refused else None

    def storm(self, durability: str, **more) -> tuple[dict[str, set[int]], dict[str, list[int]]]:
        """The offsets that were confirmed, and those that are in the bucket, by topic and partition."""
        self.asked: collections.Counter[tuple[str, str]] = collections.Counter()
        self.s3.answer = self.refuse
        given = self.config(durability=durability, file_rotation='messages', max_messages_per_file=7, max_attempts=2,
                            max_file_age='15ms', **more)
        if durability != 'spooled':
            del given['spool_dir']
        host = self.host()
        self.assertEqual(host.open(1, given), 0)
        confirmed: dict[str, set[int]] = {f'{thread // 2}/{thread % 2}': set() for thread in range(8)}
        position = dict.fromkeys(confirmed, 0)
        closing = None
        for turn in range(16):
            calls = {place: host.start_consume(1, f't{place[0]}', records(position[place], position[place] + 9),
                                               partition=int(place[2])) for place in confirmed}
            if turn == 14:
                closing = host.start('close', '1')
            for place, call in calls.items():
                if call.result() == 0:
                    confirmed[place] |= set(range(position[place], position[place] + 10))
                    position[place] += 10
        self.assertEqual(closing.result(), 0)
        self.assertEqual(host.stop(), 0)
        found: dict[str, list[int]] = {place: [] for place in confirmed}
        for key in self.s3.keys():
            place = f'{key.split("/")[1][1:]}/{int(key.split("/")[2].split("-")[0])}'
            if key.endswith('.lost'):
                first, last = self.s3.objects[key].decode().split('\n')[0].split(' ')[1].split('-')
                found[place] += range(int(first), int(last) + 1)
            else:
                found[place] += [record['offset'] for record in lines(self.s3.objects[key])]
        return confirmed, found

    def test_buffered_puts_up_or_marks_what_was_confirmed(self):
        confirmed, found = self.storm('buffered')
        for place, offsets in confirmed.items():
            self.assertLessEqual(offsets, set(found[place]))
        markers = [key for key in self.s3.keys() if key.endswith('.lost')]
        self.assertGreater(len(markers), 0)
        self.assertEqual([key for key in markers if key.removesuffix('.lost') in self.s3.objects], [])

    def test_uploaded_has_what_was_confirmed(self):
        confirmed, found = self.storm('uploaded', compression='none')
        for place, offsets in confirmed.items():
            self.assertGreater(len(offsets), 0)
            self.assertLessEqual(offsets, set(found[place]))

    def test_spooled_has_what_was_confirmed_once(self):
        confirmed, _ = self.storm('spooled')
        self.s3.answer = lambda request: None
        host = self.opened()  # what close had no attempts left for
        self.assertEqual(host.close(1), 0)
        self.assertEqual(self.spooled(), [])
        found: dict[str, list[int]] = {place: [] for place in confirmed}
        for key in self.s3.keys():
            for record in lines(self.s3.objects[key]):
                found[f'{record["topic"][1:]}/{record["partition"]}'].append(record['offset'])
        for place, offsets in confirmed.items():
            self.assertEqual(sorted(found[place]), sorted(offsets))


if __name__ == '__main__':
    unittest.main()
