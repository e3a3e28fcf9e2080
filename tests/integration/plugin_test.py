"""The connector plugin as PicoMQ's runtime uses it: what it answers, what it writes, what it says, and that calls don't
stand in each other's way."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from bucket_server import BucketServer
from gateway import Gateway, make_certificate
from plugin_host import ERROR, LIBRARY, WARN, Call, Host, Record, batch_buffer, headers, messages_buffer, topic_buffer
from processes import BUILD, ROOT

CAPTURES = ROOT.parent / 'shared/data/picomq-calls.tar.zst'
# Requests to a server that never answers, and close on top of it: runs beside all other tests, for it takes its 30 s.
SLOW: dict[str, object] = {}


def config(s3: BucketServer, **more) -> dict:
    return {'bucket': 'b', 'region': 'eu-central-1', 'endpoint': s3.endpoint, 'access_key_id': 'AKIATEST',
            'secret_access_key': 'secretsecret', 'path_template': '{topic}', 'retry_delay': '10ms'} | more


def name(topic: str, first: int, last: int, extension: str = 'jsonl', partition: int = 0) -> str:
    return f'b/{topic}/{partition:05}-{first:020}-{last:020}.{extension}'


def lines(body: bytes) -> list[dict]:
    return [json.loads(line) for line in body.decode().removesuffix('\n').split('\n')]


def records(first: int, last: int, payload: bytes = b'{}') -> list[Record]:
    return [Record(offset, payload) for offset in range(first, last + 1)]


class Case(unittest.TestCase):
    def setUp(self):
        self.s3 = self.enterContext(BucketServer())
        self.host = self.enterContext(Host())

    def enterContext(self, manager):
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered

    def open(self, number: int = 1, **more) -> None:
        self.assertEqual(self.host.open(number, config(self.s3, **more)), 0, self.host.logs)


def setUpModule():
    """A bucket that takes the probe and then nothing: close must be back in 30 s."""
    def run():
        asked = threading.Event()
        held = threading.Event()

        def answer(request):
            if 'probe' not in request.key:
                asked.set()
                held.wait(120)
            return None
        with BucketServer() as s3, Host() as host:
            s3.answer = answer
            SLOW['opened'] = host.open(1, config(s3, file_rotation='messages', max_messages_per_file=2))
            SLOW['consumed'] = host.consume(1, 'open', records(0, 0))
            call = host.start_consume(1, 't', records(0, 1))
            asked.wait(60)
            began = time.monotonic()
            SLOW['closed'] = host.close(1, timeout=120)
            SLOW['seconds'] = time.monotonic() - began
            SLOW['running'] = call.result()
            SLOW['late'] = host.consume(1, 'open', records(1, 1))
            held.set()
    SLOW['thread'] = threading.Thread(target=run)
    SLOW['thread'].start()


class Exports(unittest.TestCase):
    def test_four_functions_are_exported_and_the_library_stays(self):
        symbols = subprocess.run(['nm', '-D', '--defined-only', LIBRARY], check=True, capture_output=True, text=True)
        self.assertEqual(sorted(line.split()[-1] for line in symbols.stdout.splitlines()),
                         ['pico_sink_close', 'pico_sink_consume', 'pico_sink_open', 'pico_sink_version'])
        dynamic = subprocess.run(['readelf', '-d', LIBRARY], check=True, capture_output=True, text=True)
        self.assertIn('NODELETE', dynamic.stdout)
        self.assertNotIn('rdkafka', dynamic.stdout)


def captured_calls(folder: pathlib.Path) -> tuple[list[dict], pathlib.Path] | None:
    """What the real runtime handed over, where it is at hand."""
    if not CAPTURES.exists():
        return None
    subprocess.run(['tar', '--zstd', '-xf', CAPTURES, '-C', folder], check=True)
    root = folder / 'picomq-calls'
    return [json.loads(line) for line in (root / 'calls.ndjson').read_text().splitlines()], root


class Captured(Case):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.captured = captured_calls(self.folder)

    def replay(self, output_format: str) -> dict[str, bytes]:
        self.open(output_format=output_format, include_headers=True, file_rotation='size')
        for call in self.captured[0]:
            if call['capture'] == 'full' and call['call'] == 'consume':
                self.assertEqual(self.host.call('consume', '1', call['topic'], call['batch'], call['messages']), 0)
        self.assertEqual(self.host.close(1), 0)
        return {key.split('/', 1)[1].replace('/', '-', 1): body for key, body in self.s3.objects.items()}

    def test_the_originals_objects_come_out(self):
        if self.captured is None:
            self.skipTest(f'{CAPTURES} is not there (made records: see Output)')
        for output_format in ('json_lines', 'json_array'):
            with self.subTest(output_format):
                self.s3.objects.clear()
                ours = self.replay(output_format)
                theirs = {path.name: path.read_bytes()
                          for path in (self.captured[1] / 'original-objects' / output_format).iterdir()}
                self.assertLessEqual(theirs.keys(), ours.keys())
                for key, body in theirs.items():
                    self.compare(key, body, ours[key], output_format)

    def compare(self, key: str, theirs: bytes, ours: bytes, output_format: str) -> None:
        read = lines if output_format == 'json_lines' else json.loads
        for original, record in zip(read(theirs), read(ours), strict=True):
            if key.startswith('sr-') and record['offset'] == 8:
                # A number that no double holds keeps its digits here; the original wrote it as base64.
                self.assertEqual((original['payload'], record['payload']), ('MWU0MDA=', float('inf')))
                del original['payload'], record['payload']
            self.assertEqual(list(original), list(record))
            self.assertEqual(original, record)

    def test_every_captured_batch_is_read(self):
        if self.captured is None:
            self.skipTest(f'{CAPTURES} is not there')
        self.open(2)
        for call in self.captured[0]:
            if call['call'] == 'consume':
                self.assertEqual(self.host.call('consume', '2', call['topic'], call['batch'], call['messages']), 0)
        self.assertEqual(self.host.close(2), 0)

    # What the specification changes: the end of a configuration, and what it is answered with here.
    CHANGED = {'"max_file_size":1048576}': 0, '"unknown_field":true,"durability":"spooled"}': 1,
               '"path_template":"{topic_segment[x]}"}': 1, '"path_template":"{topic_segment[99"}': 1,
               # without an endpoint that knows these: no credentials, another secret, no such bucket, another region
               '"access_key_id":"","secret_access_key":""}': None, '"secret_access_key":"wrong"}': None,
               '"bucket":"nosuchbucket","region":"eu-central-1"': None, '"region":"wrong-region"': None}

    def test_configurations_are_answered_as_the_original_did(self):
        if self.captured is None:
            self.skipTest(f'{CAPTURES} is not there (sink_options_test has the same configurations)')
        text = (self.captured[1] / 'opens.txt').read_text().splitlines()
        for number, (given, answer) in enumerate(zip(text[::2], text[1::2], strict=True), 1):
            expected = next((code for part, code in self.CHANGED.items() if part in given),
                            int(answer.split('->')[1].split(':')[0]))
            if expected is None:
                continue
            with self.subTest(given):
                logged = len(self.host.logs)
                given = given.replace('http://127.0.0.1:7171', self.s3.endpoint)
                self.assertEqual(self.host.open(number, given.encode()), expected)
                if expected == 0:
                    self.assertEqual(self.host.close(number), 0)
                else:
                    level, message = self.host.logs[logged]
                    self.assertEqual(level, ERROR)
                    self.assertNotIn('secretsecret', message)
                    self.assertEqual(self.host.close(number), -1)


class Refusals(unittest.TestCase):
    """The probe, against a gateway that checks what it is sent."""
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.s3 = Gateway(pathlib.Path(folder.name))
        cls.addClassCleanup(cls.s3.stop)
        cls.bucket = cls.s3.make_bucket('archive')

    def config(self, **more) -> dict:
        return {'bucket': 'archive', 'region': self.s3.region, 'endpoint': self.s3.endpoint,
                'access_key_id': self.s3.access_key, 'secret_access_key': self.s3.secret_key} | more

    def test_a_good_one_writes_through_the_gateway(self):
        with Host() as host:
            self.assertEqual(host.open(1, self.config(prefix='/raw/', path_template='{topic}/{date}/{hour}')), 0)
            self.assertEqual(host.consume(1, 'orders.é u', [Record(1000), Record(1999)]), 0)
            self.assertEqual(host.close(1), 0)
        key = self.bucket / 'raw/orders.___u/2026-09-03/21/00000-00000000000000001000-00000000000000001999.jsonl'
        if not key.exists():
            key = next((self.bucket / 'raw').rglob('*.jsonl'))
        self.assertEqual(str(key.relative_to(self.bucket)),
                         'raw/orders.__u/2026-09-03/21/00000-00000000000000001000-00000000000000001999.jsonl')
        self.assertEqual([r['offset'] for r in lines(key.read_bytes())], [1000, 1999])
        self.assertFalse((self.bucket / '.picomq-sink-probe').exists())

    def test_what_is_wrong_is_said_with_its_status(self):
        wrong = [({'bucket': 'nosuchbucket'}, 'nosuchbucket', '404'),
                 ({'secret_access_key': 'wrong'}, 'archive', '403'),
                 ({'access_key_id': 'wrong'}, 'archive', '404'),
                 ({'region': 'wrong-region'}, 'archive', '403'),
                 ({'endpoint': 'http://127.0.0.1:1'}, 'archive', 'onnect')]
        with Host() as host:
            for number, (change, bucket, status) in enumerate(wrong, 1):
                with self.subTest(change):
                    logged = len(host.logs)
                    self.assertEqual(host.open(number, self.config(**change)), 1)
                    level, message = host.logs[logged]
                    self.assertEqual(level, ERROR)
                    self.assertIn(f"S3 bucket '{bucket}' connectivity check failed", message)
                    self.assertIn(status, message)
                    self.assertNotIn('QUEEN_S3', message)
                    self.assertEqual(host.close(number), -1)
                    self.assertEqual(host.open(number, self.config()), 0)
                    self.assertEqual(host.close(number), 0)

    def test_what_is_said_neither_acts_nor_hides(self):
        with Host() as host:
            self.assertEqual(host.open(1, self.config(output_format='json\u202e\x9blines\x1b\ufeff')), 1)
            self.assertIn('json??lines??', host.messages(ERROR)[0])


class Tls(unittest.TestCase):
    def test_the_store_is_verified(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = make_certificate(pathlib.Path(folder) / 'tls')
            s3 = Gateway(pathlib.Path(folder), certificate, key)
            self.addCleanup(s3.stop)
            bucket = s3.make_bucket('archive')
            given = {'bucket': 'archive', 'region': s3.region, 'endpoint': s3.endpoint,
                     'access_key_id': s3.access_key, 'secret_access_key': s3.secret_key, 'path_template': '{topic}'}
            with Host() as host:
                self.assertEqual(host.open(1, given), 1)
                self.assertIn('certificate', host.messages(ERROR)[0])
            with Host({'AWS_CA_BUNDLE': str(certificate)}) as host:
                self.assertEqual(host.open(1, given), 0)
                self.assertEqual(host.consume(1, 't', records(0, 1)), 0)
                self.assertEqual(host.close(1), 0)
                self.assertEqual(host.stop(), 0)
            self.assertEqual(len(lines((bucket / name('t', 0, 1)[2:]).read_bytes())), 2)


class Probe(Case):
    def test_a_probe_that_cannot_be_deleted_is_a_warning(self):
        self.s3.answer = lambda request: 403 if request.method == 'DELETE' else None
        self.open()
        self.assertTrue(any('.picomq-sink-probe' in message for message in self.host.messages(WARN)))

    def test_the_probe_is_an_empty_object_at_the_root(self):
        self.open(prefix='deep/down')
        probe = self.s3.requests[0]
        self.assertEqual((probe.method, probe.key, probe.body), ('PUT', 'b/.picomq-sink-probe', b''))
        self.assertEqual([r.method for r in self.s3.requests], ['PUT', 'DELETE'])


class Ids(Case):
    def test_an_id_is_used_once_at_a_time(self):
        self.open()
        self.assertEqual(self.host.open(1, config(self.s3)), -1)
        self.assertEqual(self.host.messages(ERROR),
                         ['id 1 is in use: it has to be closed before it can be opened again'])
        self.assertEqual(self.host.close(1), 0)
        self.assertEqual(self.host.close(1), -1)
        self.assertEqual(self.host.close(7), -1)
        self.assertEqual(self.host.consume(1, 't', records(0, 0)), -1)
        self.open()
        self.assertGreater(self.host.call('version'), 0)

    def test_what_cannot_be_read_is_minus_one(self):
        self.open()
        good = [topic_buffer('t'), batch_buffer(0, 0, 'json'), messages_buffer([Record(0)])]
        self.assertEqual(self.host.call('consume', '1', *map(Host.hex, good)), 0)
        for place in range(3):
            for size in range(len(good[place])):
                cut = list(good)
                cut[place] = good[place][:size]
                self.assertEqual(self.host.call('consume', '1', *map(Host.hex, cut)), -1, (place, size))
        self.assertEqual(self.host.call('consume', '1', *map(Host.hex, [b + b'trailing' for b in good])), 0)
        self.assertEqual(self.host.consume(1, 't', []), 0)

    def test_nothing_is_left_when_it_is_unloaded(self):
        before = self.host.call('threads')
        self.open()
        self.assertEqual(self.host.consume(1, 't', records(0, 3)), 0)
        self.assertGreater(self.host.call('threads'), before)
        self.assertEqual(self.host.close(1), 0)
        self.assertEqual(self.host.call('threads'), before)
        self.assertEqual(self.host.call('unload'), 0)
        self.assertEqual(self.host.stop(), 0)

    def test_a_host_may_end_with_sinks_open(self):
        self.open()
        self.assertEqual(self.host.consume(1, 't', records(0, 3)), 0)
        self.assertEqual(self.host.stop(), 0)

    def test_a_forked_child_gets_minus_one(self):
        self.open()
        self.assertEqual(self.host.call('fork', '1'), 111)
        self.assertEqual(self.host.consume(1, 't', records(0, 3)), 0)
        self.assertEqual(self.host.close(1), 0)
        self.assertIn(name('t', 0, 3), self.s3.objects)

    def test_ten_thousand_ids_take_no_room(self):
        folder = tempfile.mkdtemp(dir='/dev/shm' if os.path.isdir('/dev/shm') else None)
        self.addCleanup(shutil.rmtree, folder)
        given = Host.hex(json.dumps({'bucket': 'b', 'endpoint': f'file://{folder}'}).encode())
        # What a sanitizer keeps of freed memory is its own affair, and is to be little; of each thread that there was
        # it keeps some hundred bytes for good.
        allowed = 16384 if BUILD.name in ('asan', 'tsan') else 1024
        options = os.environ.get('ASAN_OPTIONS', '') + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=16'
        host = self.enterContext(Host({'ASAN_OPTIONS': options}))
        self.assertEqual(host.call('churn', '1', '1000', given, timeout=240), 0)
        memory, descriptors = host.call('memory'), host.call('descriptors')
        self.assertEqual(host.call('churn', '1001', '9000', given, timeout=240), 0)
        self.assertLess(host.call('memory') - memory, allowed)
        self.assertEqual(host.call('descriptors'), descriptors)


class Output(Case):
    def body(self, batch: list[Record], schema: str = 'json', **more) -> bytes:
        self.open(**more)
        self.assertEqual(self.host.consume(1, 't', batch, schema), 0)
        self.assertEqual(self.host.close(1), 0)
        key, = self.s3.objects
        return self.s3.objects[key]

    def test_a_record_has_its_fields_in_order(self):
        record = Record(1042, b'{"id":7, "total":42.50}', key=b'user-1', headers=headers({'z': b'', 'a': b'\xff'}))
        self.assertEqual(self.body([record], include_headers=True),
                         b'{"offset":1042,"timestamp":"2026-09-03T21:15:04.118Z","topic":"t","partition":0,'
                         b'"key":"dXNlci0x","headers":{"a":"/w==","z":""},"payload":{"id":7, "total":42.50}}\n')

    def test_without_metadata(self):
        self.assertEqual(self.body(records(0, 0, b'1') + records(1, 1, b'2'), include_metadata=False,
                                   output_format='JSON_ARRAY'),
                         b'[{"payload":1},{"payload":2}]')

    def test_raw(self):
        self.assertEqual(self.body([Record(0, b'a\n'), Record(1, b''), Record(2, b'\xff')], 'raw', output_format='raw'),
                         b'a\n\xff')
        self.assertEqual(self.s3.keys(), [name('t', 0, 2, 'bin')])

    def test_a_file_can_be_empty(self):
        self.assertEqual(self.body([Record(0, b''), Record(1, b'')], 'text', output_format='raw'), b'')
        self.assertEqual(self.s3.keys(), [name('t', 0, 1, 'bin')])

    def test_what_a_schema_does_not_allow_is_written_and_told(self):
        body = self.body([Record(0, b'{"a":'), Record(1, b'1', headers=b'\5'), Record(2, b'nul')], include_headers=True)
        self.assertEqual([r['payload'] for r in lines(body)], ['eyJhIjo=', 1, 'bnVs'])
        told = self.host.messages(WARN)
        self.assertEqual(len(told), 2, told)
        self.assertIn('1 records, from offset 0 on, have headers', told[0])
        self.assertIn("2 records, from offset 0 on, aren't what their schema says", told[1])

    def test_compression(self):
        for kind, extension, tool in (('gzip', 'jsonl.gz', 'gzip'), ('zstd', 'jsonl.zst', 'zstd')):
            with self.subTest(kind):
                self.s3.objects.clear()
                body = self.body(records(0, 999), compression=kind)
                self.assertEqual(self.s3.keys(), [name('t', 0, 999, extension)])
                plain = subprocess.run([tool, '-dc'], input=body, capture_output=True, check=True).stdout
                self.assertEqual([r['offset'] for r in lines(plain)], list(range(1000)))
                self.assertLess(len(body), len(plain) // 10)

    def test_a_directory_takes_objects_too(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.assertEqual(self.host.open(1, {'bucket': 'b', 'region': 'any', 'endpoint': f'file://{folder}',
                                            'path_template': '{topic_segment[-1]}/p{partition}/{unknown}'}), 0)
        self.assertEqual(self.host.consume(1, 'a.b', records(5, 6), partition=3), 0)
        self.assertEqual(self.host.close(1), 0)
        self.assertTrue((pathlib.Path(folder) / name('b/p3/{unknown}', 5, 6, partition=3)).exists())

    def test_what_no_file_can_be_named_takes_nothing_in(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.open(endpoint=f'file://{folder}')
        for topic in ('', '.', '..', '.tmp', 'x' * 256):
            self.assertEqual(self.host.consume(1, topic, records(0, 0)), 1, topic)
            self.assertIn('directory', self.host.messages(ERROR)[-1])
        self.assertEqual(self.host.consume(1, 'x' * 255, records(0, 0)), 0)
        self.assertEqual(self.host.close(1), 0)
        self.assertEqual([path.parent.name for path in folder.rglob('*.*') if path.is_file()], ['x' * 255])

    def test_what_a_crash_left_unpublished_in_a_directory_goes(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        given = {'bucket': 'b', 'endpoint': f'file://{folder}'}
        self.assertEqual(self.host.open(1, given), 0)
        self.host.close(1)
        (folder / 'b/.tmp/left-by-a-crash').write_bytes(b'half')
        self.assertEqual(self.host.open(1, given), 0)
        self.assertEqual(list((folder / 'b/.tmp').iterdir()), [])


@unittest.skipIf(BUILD.name in ('asan', 'tsan'), 'a sanitizer needs more address space than can be limited')
class Memory(Case):
    def limit(self, size: int) -> None:
        resource.prlimit(self.host.process.pid, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

    def size(self) -> int:
        return int(pathlib.Path(f'/proc/{self.host.process.pid}/statm').read_text().split()[0]) * resource.getpagesize()

    def test_a_batch_that_memory_does_not_hold_is_answered_with_1_and_the_host_lives(self):
        self.open(max_file_size='1GiB')
        # Six bytes in the file for each that arrives: it is the file that memory ends for, not the host's own buffers.
        batches = [[Record(4 * number + i, b'\1' * 50000) for i in range(4)] for number in range(200)]
        self.assertEqual(self.host.consume(1, 't', batches[0], 'text'), 0)
        self.limit(self.size() + (24 << 20))
        for taken, batch in enumerate(batches):
            if self.host.consume(1, 't', batch, 'text') != 0:
                break
        else:
            self.fail('memory never ended')
        self.assertGreater(taken, 5)
        self.assertEqual(self.host.consume(1, 't', batch, 'text'), 1)
        self.assertIn('out of memory', self.host.messages(ERROR)[-1])
        self.limit(resource.RLIM_INFINITY)
        self.assertEqual(self.host.consume(1, 't', batch, 'text'), 0)
        self.assertEqual(self.host.close(1), 0)
        key, = self.s3.keys()
        self.assertEqual([r['offset'] for r in lines(self.s3.objects[key])], list(range(4 * (taken + 1))))


class Rotation(Case):
    def test_by_messages(self):
        self.open(file_rotation='messages', max_messages_per_file=3)
        self.assertEqual(self.host.consume(1, 't', records(10, 17)), 0)
        self.assertEqual(self.s3.keys(), [name('t', 10, 12), name('t', 13, 15)])
        self.host.close(1)
        self.assertEqual(self.s3.keys()[-1], name('t', 16, 17))

    def test_by_size_counts_the_records_own_bytes(self):
        self.open(include_metadata=False, max_file_size=38)
        self.assertEqual(self.host.consume(1, 't', records(0, 2, b'1234567')), 0)  # 19 bytes each
        self.assertEqual(self.s3.keys(), [name('t', 0, 1)])

    def test_by_age(self):
        self.open(max_file_age='100ms')
        self.assertEqual(self.host.consume(1, 't', records(0, 1)), 0)
        self.assertEqual(self.host.consume(1, 'u', records(0, 0)), 0)
        self.s3.wait_for(lambda: {name('t', 0, 1), name('u', 0, 0)} <= self.s3.objects.keys(), 'file of age')
        self.assertEqual(self.host.consume(1, 't', records(2, 2)), 0)
        self.s3.wait_for(lambda: name('t', 2, 2) in self.s3.objects, 'next file of age')

    def test_a_topic_created_again_closes_the_file(self):
        self.open()
        self.assertEqual(self.host.consume(1, 't', records(0, 9, b'1')), 0)
        self.assertEqual(self.host.consume(1, 't', records(0, 4, b'2')), 0)
        self.host.close(1)
        # Both begin at offset 0; the new log is shorter.
        self.assertEqual(self.s3.keys(), [name('t', 0, 4), name('t', 0, 9)])
        self.assertEqual([r['payload'] for r in lines(self.s3.objects[name('t', 0, 4)])], [2] * 5)

    def test_a_template_that_asks_for_too_much_takes_nothing_in(self):
        self.open(path_template='{topic_segment[1]}')
        self.assertEqual(self.host.consume(1, 'short', records(0, 9)), 1)
        self.assertIn('1 segments', self.host.messages(ERROR)[0])
        self.assertEqual(self.host.consume(1, 'a.b', [Record(0, timestamp=253402300800000)]), 1)
        self.assertIn('9999', self.host.messages(ERROR)[1])
        self.assertEqual(self.host.close(1), 0)
        self.assertEqual(self.s3.keys(), [])

    def test_a_time_after_year_9999_is_refused_where_it_is_written(self):
        good, bad = Record(0), Record(1, timestamp=253402300800000)
        bare = {'path_template': 't', 'include_metadata': False}
        for number, (options, answer) in enumerate([
                ({'path_template': 't'}, 1), ({**bare, 'path_template': '{date}'}, 1),
                ({**bare, 'path_template': '{hour}'}, 1), (bare, 0), ({'path_template': 't', 'output_format': 'raw'}, 0)
        ]):
            with self.subTest(options=options):
                self.open(number + 1, prefix=f'p{number}', **options)
                self.assertEqual(self.host.consume(number + 1, 't', [good, bad]), answer)
                self.assertEqual(self.host.close(number + 1), 0)
                self.assertEqual(sum(f'p{number}/' in key for key in self.s3.keys()), 1 - answer)

    def test_topics_that_would_share_keys(self):
        template = {'path_template': '{topic_segment[0]}', 'file_rotation': 'messages', 'max_messages_per_file': 2}
        # What promises that nothing is lost takes in one of them.
        self.open(durability='uploaded', **template)
        self.assertEqual(self.host.consume(1, 'a.b', records(0, 1)), 0)
        for _ in range(2):
            self.assertEqual(self.host.consume(1, 'a.c', records(0, 1, b'1')), 1)
            self.assertIn("path_template '{topic_segment[0]}' makes the keys of topic 'a.b' too",
                          self.host.messages(ERROR)[-1])
        self.assertEqual(self.host.consume(1, 'a.c', records(0, 1, b'1'), partition=1), 0)
        self.assertEqual(self.host.consume(1, 'b.c', records(0, 1)), 0)
        self.host.close(1)
        self.assertEqual(self.s3.keys(), [name('a', 0, 1), name('a', 0, 1, partition=1), name('b', 0, 1)])
        self.assertEqual([r['topic'] for r in lines(self.s3.objects[name('a', 0, 1)])], ['a.b'] * 2)
        # Where it isn't promised, it is told once.
        self.open(2, **template)
        before = len(self.host.messages(ERROR))
        for topic in 'a.b', 'a.c', 'a.c':
            self.assertEqual(self.host.consume(2, topic, records(2, 3)), 0)
        self.assertEqual(len(self.host.messages(ERROR)), before + 1)
        self.host.close(2)


class Attempts(Case):
    def fail(self, status: int, times: int, part: str = 't/') -> None:
        left = [times]

        def answer(request):
            if part in request.key and request.method == 'PUT' and '.lost' not in request.key and left[0] > 0:
                left[0] -= 1
                return status
            return None
        self.s3.answer = answer

    def consume(self, first: int, last: int) -> int:
        return self.host.consume(1, 't', records(first, last))

    def test_what_passes_is_tried_again(self):
        self.open(file_rotation='messages', max_messages_per_file=2, max_attempts=3)
        for number, status in enumerate((500, 503, 408, 429)):
            with self.subTest(status):
                self.fail(status, 2)
                self.assertEqual(self.consume(2 * number, 2 * number + 1), 0)
                self.assertEqual(len(self.s3.puts(name('t', 2 * number, 2 * number + 1))), 3)
        self.assertEqual(len(self.s3.puts('.lost')), 0)

    def test_attempts_are_as_many_as_configured_and_delays_double(self):
        self.open(file_rotation='messages', max_messages_per_file=1, max_retries=3, retry_delay='100ms')
        self.fail(503, 100)
        began = time.monotonic()
        self.assertEqual(self.consume(0, 0), 1)
        self.assertGreater(time.monotonic() - began, 0.8 * (0.2 + 0.4))
        self.assertEqual(len(self.s3.puts(name('t', 0, 0))), 3 + 1)  # the marker's key begins alike
        for told in self.host.messages(WARN):
            self.assertEqual(told.count(name('t', 0, 0)[2:]), 1, told)
        delays = [int(m.split('the next one in ')[1].split(' ')[0]) for m in self.host.messages(WARN)]
        self.assertEqual(len(delays), 2)
        self.assertTrue(160 <= delays[0] <= 240 and 320 <= delays[1] <= 480, delays)

    def test_any_other_status_fails_at_once_and_leaves_a_marker(self):
        self.open(file_rotation='messages', max_messages_per_file=3, max_attempts=9)
        self.assertEqual(self.consume(0, 1), 0)
        self.fail(403, 1)
        self.assertEqual(self.consume(2, 4), 1)
        self.assertEqual(len([p for p in self.s3.puts(name('t', 0, 2)) if not p.key.endswith('.lost')]), 1)
        marker = self.s3.objects[name('t', 0, 2) + '.lost'].decode()
        first, second, third, rest = marker.split('\n')
        self.assertEqual((first, second, rest), ('offset_range: 0-2', 'message_count: 3', ''))
        self.assertTrue(third.startswith('error: S3 PutObject returned non-retriable status 403'), third)
        told = self.host.messages(ERROR)
        self.assertEqual([line.count(name('t', 0, 2)[2:]) for line in told], [1, 0], told)
        # The batch comes again, whole: its records were forgotten, and 0 and 1 are gone.
        self.assertEqual(self.consume(2, 4), 0)
        self.assertEqual(self.s3.keys(), [name('t', 0, 2) + '.lost', name('t', 2, 4)])

    def test_a_marker_goes_when_its_file_is_put_after_all(self):
        self.open(file_rotation='messages', max_messages_per_file=2, max_attempts=1)
        self.fail(500, 1)
        self.assertEqual(self.consume(0, 1), 1)
        self.assertEqual(self.s3.keys(), [name('t', 0, 1) + '.lost'])
        self.assertEqual(self.consume(0, 1), 0)
        self.assertEqual(self.s3.keys(), [name('t', 0, 1)])

    def test_no_attempts_is_one(self):
        self.open(file_rotation='messages', max_messages_per_file=1, max_attempts=0)
        self.fail(500, 5)
        self.assertEqual(self.consume(0, 0), 1)
        self.assertEqual(len([p for p in self.s3.puts(name('t', 0, 0)) if not p.key.endswith('.lost')]), 1)

    def test_a_broken_connection_is_tried_again(self):
        self.open(file_rotation='messages', max_messages_per_file=1)
        held = threading.Event()
        first = []

        def answer(request):
            if 't/' in request.key and not first:
                first.append(request)
                raise ConnectionAbortedError
            return None
        self.s3.answer = answer
        self.assertEqual(self.consume(0, 0), 0)
        held.set()
        self.assertEqual(self.s3.keys(), [name('t', 0, 0)])


class Repeats(Case):
    def offsets(self) -> list[int]:
        return sorted(r['offset'] for key in self.s3.keys() for r in lines(self.s3.objects[key]))

    def test_a_batch_that_comes_again_is_not_doubled(self):
        self.open(file_rotation='messages', max_messages_per_file=4)
        for _ in range(3):
            self.assertEqual(self.host.consume(1, 't', records(0, 9)), 0)
        self.assertEqual(self.host.consume(1, 't', records(10, 11)), 0)
        self.host.close(1)
        self.assertEqual(self.offsets(), list(range(12)))

    def test_half_a_batch_goes_on_where_it_stopped(self):
        self.open(file_rotation='messages', max_messages_per_file=4, max_attempts=1)
        self.s3.answer = lambda r: 500 if '4-' in r.key and r.method == 'PUT' and 'lost' not in r.key else None
        for _ in range(4):
            self.assertEqual(self.host.consume(1, 't', records(0, 9)), 1)
        self.s3.answer = lambda r: None
        self.assertEqual(self.host.consume(1, 't', records(0, 9)), 0)
        self.host.close(1)
        self.assertEqual(self.offsets(), list(range(10)))

    def test_only_the_same_bytes_at_the_same_offset_are_a_repeat(self):
        self.open(file_rotation='messages', max_messages_per_file=100)
        self.assertEqual(self.host.consume(1, 't', records(0, 4)), 0)
        self.assertEqual(self.host.consume(1, 't', [Record(0, timestamp=1)]), 0)
        self.assertEqual(self.host.consume(1, 't', [Record(1, key=b'')]), 0)
        self.assertEqual(self.host.consume(1, 'u', records(0, 4)), 0)
        self.assertEqual(self.host.consume(1, 't', records(0, 4), partition=1), 0)
        self.host.close(1)
        self.assertEqual(self.offsets(), sorted([0, 1, 2, 3, 4] * 3 + [0, 1]))

    def test_uploaded_confirms_what_is_up_and_nothing_else(self):
        self.open(durability='uploaded', max_attempts=1)
        self.assertEqual(self.host.consume(1, 't', records(0, 4)), 0)
        self.assertEqual(self.s3.keys(), [name('t', 0, 4)])
        self.s3.answer = lambda r: 500
        self.assertEqual(self.host.consume(1, 't', records(5, 6)), 1)
        self.s3.answer = lambda r: None
        self.assertEqual(self.host.consume(1, 't', records(5, 6)), 0)
        self.assertEqual(self.host.consume(1, 't', records(5, 6)), 0)
        self.host.close(1)
        self.assertEqual(self.s3.keys(), [name('t', 0, 4), name('t', 5, 6)])  # and no marker: nothing was lost


class Side(Case):
    """Calls side by side."""
    def hold(self, part: str) -> threading.Event:
        go = threading.Event()
        self.addCleanup(go.set)
        self.s3.answer = lambda r: go.wait(60) and None if part in r.key else None
        return go

    def test_an_upload_holds_up_nobody_else(self):
        self.open(file_rotation='messages', max_messages_per_file=2)
        self.open(2, file_rotation='messages', max_messages_per_file=2)
        go = self.hold('/slow/')
        slow = self.host.start_consume(1, 'slow', records(0, 1))
        self.s3.wait_for(lambda: self.s3.puts('/slow/'), 'held upload')
        self.assertEqual(self.host.consume(1, 'quick', records(0, 1)), 0)
        self.assertEqual(self.host.consume(2, 'quick', records(0, 1)), 0)
        self.assertFalse(slow.done())
        go.set()
        self.assertEqual(slow.result(), 0)

    def test_calls_for_one_partition_follow_each_other(self):
        self.open(file_rotation='messages', max_messages_per_file=2)
        go = self.hold('/slow/')
        first = self.host.start_consume(1, 'slow', records(0, 1))
        self.s3.wait_for(lambda: self.s3.puts('/slow/'), 'held upload')
        second = self.host.start_consume(1, 'slow', records(2, 3))
        self.assertEqual(self.host.consume(1, 'quick', records(0, 0)), 0)
        self.assertEqual(len(self.s3.puts('/slow/')), 1)
        go.set()
        self.assertEqual((first.result(), second.result()), (0, 0))

    def test_eight_threads(self):
        self.open(file_rotation='messages', max_messages_per_file=7)
        calls: list[Call] = []
        for round_ in range(25):
            calls += [self.host.start_consume(1, f'topic{thread}', records(10 * round_, 10 * round_ + 9))
                      for thread in range(8)]
            for call in calls[-8:]:
                self.assertEqual(call.result(), 0)
        self.assertEqual(self.host.close(1), 0)
        for thread in range(8):
            found = [r['offset'] for key in self.s3.keys() if f'topic{thread}/' in key
                     for r in lines(self.s3.objects[key])]
            self.assertEqual(found, list(range(250)))

    def test_close_cuts_a_delay_short_and_puts_up_what_is_open(self):
        self.open(file_rotation='messages', max_messages_per_file=2, retry_delay='50s')
        self.assertEqual(self.host.consume(1, 'open', records(0, 0)), 0)
        self.s3.answer = lambda r: 503 if '/t/' in r.key else None
        call = self.host.start_consume(1, 't', records(0, 1))
        self.host.wait_for_log('the next one in')
        self.s3.answer = lambda r: None
        began = time.monotonic()
        self.assertEqual(self.host.close(1), 0)
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(call.result(), 1)
        self.assertEqual(self.s3.keys(), [name('open', 0, 0), name('t', 0, 1)])
        logged = len(self.host.logs)
        self.assertEqual(self.host.consume(1, 't', records(0, 1)), -1)
        self.assertEqual(len(self.host.logs), logged)

    def test_close_leaves_markers_for_what_it_cannot_put(self):
        self.open(max_attempts=2)
        self.assertEqual(self.host.consume(1, 't', records(0, 2)), 0)
        self.assertEqual(self.host.consume(1, 'u', records(0, 2)), 0)
        self.s3.answer = lambda r: 500 if r.key.endswith('.jsonl') and '/t/' in r.key else None
        self.assertEqual(self.host.close(1), 0)
        self.assertEqual(self.s3.keys(), [name('t', 0, 2) + '.lost', name('u', 0, 2)])

    def test_nothing_is_logged_once_close_has_returned(self):
        """What is logged later stands behind the answer, for the host writes both into one stream."""
        with tempfile.TemporaryDirectory() as folder:
            self.s3.answer = lambda request: None if 'probe' in request.key else 503
            for number, more in enumerate(({}, {'durability': 'uploaded'},
                                           {'durability': 'spooled', 'spool_dir': f'{folder}/spool'},
                                           {'max_file_age': '5ms'}), 1):
                self.open(number, file_rotation='messages', max_messages_per_file=3, max_attempts=5, **more)
                calls = [self.host.start_consume(number, f't{i}', records(0, 4)) for i in range(4)]
                self.host.wait_for_log('attempt 2')
                self.assertEqual(self.host.close(number), 0)
                told = len(self.host.logs)
                self.assertLessEqual({call.result() for call in calls}, {0, 1})
                self.host.call('version')
                self.assertEqual(self.host.logs[told:], [], more)
                self.host.logs.clear()

    def test_close_of_one_leaves_the_others_alone(self):
        self.open(1)
        self.open(2)
        self.assertEqual(self.host.consume(2, 't', records(0, 0)), 0)
        self.assertEqual(self.host.close(1), 0)
        self.assertEqual(self.host.consume(2, 't', records(1, 1)), 0)
        self.assertEqual(self.host.close(2), 0)
        self.assertEqual(self.s3.keys(), [name('t', 0, 1)])


class Zlast(unittest.TestCase):
    """The name is for the order: it waits for what setUpModule began."""
    def test_close_is_back_in_thirty_seconds_whatever_the_bucket_does(self):
        SLOW['thread'].join(150)
        self.assertEqual({n: SLOW[n] for n in ('opened', 'consumed', 'closed', 'running', 'late')},
                         {'opened': 0, 'consumed': 0, 'closed': 0, 'running': 1, 'late': -1})
        self.assertGreater(SLOW['seconds'], 5)
        self.assertLess(SLOW['seconds'], 33)


if __name__ == '__main__':
    unittest.main()
