"""How it starts and how it ends: exit codes and the one line that says why, secrets that stay secret, signals."""
import os
import pathlib
import signal
import socket
import time
import unittest

import mirror
from devbroker import DevBroker
from gateway import Gateway
from processes import free_port, tree
from sink import Sink, command, file_lake

TOKEN = 'tok-4be1cf0b2c'
BROKER_SECRETS = {'PG_PASSWORD': 'pg-6a1', 'JWT_SECRET': 'jwt-77c', 'QUEEN_ENCRYPTION_KEY': 'enc-91d',
                  'QUEEN_SYNC_SECRET': 'sync-0ff'}
S3 = {'QUEEN_S3_ENDPOINT': 'http://127.0.0.1:9', 'QUEEN_S3_REGION': 'eu-central-1', 'QUEEN_S3_BUCKET': 'lake',
      'QUEEN_S3_ACCESS_KEY': 'AKEY', 'QUEEN_S3_SECRET_KEY': 'very-secret'}

# What is changed of a good environment (None: taken out), and what the one line has to name.
REFUSED = [
    ({'QUEEN_S3_QUEUES': None}, ['QUEEN_S3_QUEUES']),
    ({'QUEEN_S3_QUEUES': '  '}, ['QUEEN_S3_QUEUES']),
    ({'QUEEN_S3_QUEUES': 'a,b,a'}, ['QUEEN_S3_QUEUES', 'a']),
    ({'QUEEN_S3_QUEUES': 'a,,b'}, ['QUEEN_S3_QUEUES']),
    ({'QUEEN_S3_QUEUES': 'a,*'}, ['QUEEN_S3_QUEUES']),
    ({'QUEEN_URL': 'broker'}, ['QUEEN_URL', 'broker']),
    ({'QUEEN_URL': 'ftp://broker'}, ['QUEEN_URL', 'ftp://broker']),
    ({'QUEEN_S3_SINK': 'a/b'}, ['QUEEN_S3_SINK', 'a/b']),
    ({'QUEEN_S3_SINK': 'x' * 65}, ['QUEEN_S3_SINK']),
    ({'QUEEN_S3_PARTITIONS': 'p'}, ['QUEEN_S3_PARTITIONS', 'safeTime', 'POST /api/v1/partitions/changed']),
    ({'QUEEN_S3_ENDPOINT': None}, ['QUEEN_S3_ENDPOINT']),
    ({'QUEEN_S3_ENDPOINT': 's3.amazonaws.com'}, ['QUEEN_S3_ENDPOINT', 's3.amazonaws.com']),
    ({'QUEEN_S3_ENDPOINT': 'https://s3.example.com/lake'}, ['QUEEN_S3_ENDPOINT', 'QUEEN_S3_PREFIX']),
    ({'QUEEN_S3_ENDPOINT': 'file://relative'}, ['QUEEN_S3_ENDPOINT']),
    ({'QUEEN_S3_REGION': None}, ['QUEEN_S3_REGION']),
    ({'QUEEN_S3_BUCKET': None}, ['QUEEN_S3_BUCKET']),
    ({'QUEEN_S3_BUCKET': 'a/b'}, ['QUEEN_S3_BUCKET', 'a/b']),
    ({'QUEEN_S3_BUCKET': 'a b'}, ['QUEEN_S3_BUCKET']),
    ({'QUEEN_S3_PREFIX': 'a//b'}, ['QUEEN_S3_PREFIX', 'a//b']),
    ({'QUEEN_S3_PREFIX': 'a/../b'}, ['QUEEN_S3_PREFIX']),
    ({'QUEEN_S3_ACCESS_KEY': None}, ['QUEEN_S3_ACCESS_KEY']),
    ({'QUEEN_S3_SECRET_KEY': None}, ['QUEEN_S3_SECRET_KEY']),
    ({'QUEEN_S3_SECRET_KEY_FILE': '/etc/hostname'}, ['QUEEN_S3_SECRET_KEY_FILE']),
    ({'QUEEN_TOKEN': TOKEN, 'QUEEN_TOKEN_FILE': '/etc/hostname'}, ['QUEEN_TOKEN_FILE']),
    ({'QUEEN_TOKEN_FILE': '/nowhere/at/all'}, ['QUEEN_TOKEN_FILE']),
    ({'QUEEN_S3_PATH_STYLE': 'maybe'}, ['QUEEN_S3_PATH_STYLE', 'maybe']),
    ({'QUEEN_S3_SSE': 'AES128'}, ['QUEEN_S3_SSE', 'AES128']),
    ({'QUEEN_S3_SSE': 'AES256', 'QUEEN_S3_SSE_KMS_KEY_ID': 'cafe'}, ['QUEEN_S3_SSE_KMS_KEY_ID']),
    ({'QUEEN_S3_FORMAT': 'avro'}, ['QUEEN_S3_FORMAT', 'avro']),
    ({'QUEEN_S3_COMPRESSION': 'lz4'}, ['QUEEN_S3_COMPRESSION', 'lz4']),
    ({'QUEEN_S3_PARQUET_CODEC': 'gzip'}, ['QUEEN_S3_PARQUET_CODEC', 'gzip']),
    ({'QUEEN_S3_LAYOUT': 'flat'}, ['QUEEN_S3_LAYOUT', 'flat']),
    ({'QUEEN_S3_ALIGN': 'week'}, ['QUEEN_S3_ALIGN', 'week']),
    ({'QUEEN_S3_START': 'now'}, ['QUEEN_S3_START', 'now']),
    ({'QUEEN_S3_TARGET_MB': '0'}, ['QUEEN_S3_TARGET_MB', '0', '1', '5120']),
    ({'QUEEN_S3_TARGET_MB': '5121'}, ['QUEEN_S3_TARGET_MB', '5121', '5120']),
    ({'QUEEN_S3_TARGET_MB': '1.5'}, ['QUEEN_S3_TARGET_MB', '1.5']),
    ({'QUEEN_S3_TARGET_MB': '1 MB'}, ['QUEEN_S3_TARGET_MB', '1 MB']),
    ({'QUEEN_S3_TARGET_MB': '-1'}, ['QUEEN_S3_TARGET_MB', '-1']),
    ({'QUEEN_S3_TARGET_MB': '99999999999999999999'}, ['QUEEN_S3_TARGET_MB']),
    ({'QUEEN_S3_MAX_WINDOW_MS': '99'}, ['QUEEN_S3_MAX_WINDOW_MS', '99', '100']),
    ({'QUEEN_S3_CHECKPOINT_EVERY': '0'}, ['QUEEN_S3_CHECKPOINT_EVERY']),
    ({'QUEEN_S3_MEMORY_MB': '47'}, ['QUEEN_S3_MEMORY_MB', '47', '48']),
    ({'QUEEN_S3_FETCH_CONCURRENCY': '257'}, ['QUEEN_S3_FETCH_CONCURRENCY', '257']),
    ({'QUEEN_S3_DISCOVERY_INTERVAL_MS': '9'}, ['QUEEN_S3_DISCOVERY_INTERVAL_MS', '9']),
    ({'QUEEN_S3_SAFE_GUARD_MS': '3600001'}, ['QUEEN_S3_SAFE_GUARD_MS', '3600001']),
    ({'QUEEN_S3_LEASE_TTL_MS': '999'}, ['QUEEN_S3_LEASE_TTL_MS', '999']),
    ({'QUEEN_S3_MULTIPART_THRESHOLD_MB': '4'}, ['QUEEN_S3_MULTIPART_THRESHOLD_MB', '4']),
    ({'QUEEN_S3_LISTEN': '127.0.0.1'}, ['QUEEN_S3_LISTEN', '127.0.0.1']),
    ({'QUEEN_S3_LISTEN': '127.0.0.1:65536'}, ['QUEEN_S3_LISTEN', '65536']),
    ({'QUEEN_S3_LISTEN': '::1:9333'}, ['QUEEN_S3_LISTEN']),
    ({'QUEEN_S3_WORKERS': '0'}, ['QUEEN_S3_WORKERS', '0']),
    ({'QUEEN_S3_WORKERS': '1025'}, ['QUEEN_S3_WORKERS', '1025']),
    ({'QUEEN_S3_CRASH_AT': 'sometimes'}, ['QUEEN_S3_CRASH_AT', 'sometimes']),
    ({'QUEEN_S3_LOG_FORMAT': 'xml'}, ['QUEEN_S3_LOG_FORMAT', 'xml']),
    ({'QUEEN_S3_LOG_LEVEL': 'loud'}, ['QUEEN_S3_LOG_LEVEL', 'loud']),
    ({'QUEEN_S3_SHUTDOWN_GRACE_MS': '99'}, ['QUEEN_S3_SHUTDOWN_GRACE_MS', '99']),
    ({'QUEEN_S3_CONTROL': 'relative/path'}, ['QUEEN_S3_CONTROL', 'relative/path']),
    ({'QUEEN_S3_CA_FILE': '/nowhere/ca.pem', 'QUEEN_S3_ENDPOINT': 'https://127.0.0.1:9'},
     ['QUEEN_S3_CA_FILE', '/nowhere/ca.pem']),
    # The next two until this version has them.
    ({'QUEEN_S3_FORMAT': 'orc'}, ['QUEEN_S3_FORMAT', 'orc', 'parquet']),
    ({'QUEEN_S3_LAYOUT': 'per-queue'}, ['QUEEN_S3_LAYOUT', 'per-queue', 'per-partition']),
]


class BootTest(mirror.MirrorTest):
    def environment(self, broker: DevBroker | None = None, **changes) -> dict:
        return {'QUEEN_URL': broker.url if broker else 'http://127.0.0.1:9', 'QUEEN_S3_QUEUES': self.queue,
                **mirror.QUICK, **file_lake(self.folder), 'QUEEN_S3_LISTEN': f'127.0.0.1:{free_port()}', **changes}

    def broker_with_token(self, *arguments) -> DevBroker:
        broker = DevBroker(self.folder, '--queue', self.queue, '--safe-lag-ms', 100, '--token', TOKEN, *arguments)
        self.addCleanup(broker.stop)
        return broker

    def ends(self, code: int, environment: dict, *parts: str, deadline: float = 10) -> str:
        """It ends by itself with that code, and one line has all the parts."""
        result = command(environment, deadline=deadline)
        text = (result.stdout + result.stderr).decode()
        self.assertEqual(result.returncode, code, text)
        said = [line for line in text.splitlines() if line.startswith('queen-s3: ') and all(p in line for p in parts)]
        self.assertEqual(len(said), 1, f'no one line with {parts}:\n{text}')
        return text

    # Settings

    def test_settings_that_are_refused(self):
        for changes, parts in REFUSED:
            with self.subTest(**changes):
                text = self.ends(2, {**self.environment(), **S3, **changes}, *parts)
                self.assertEqual(text.count('\n'), 1, text)
                self.assertNotIn(S3['QUEEN_S3_SECRET_KEY'], text)
                self.assertNotIn(TOKEN, text)

    def test_blank_is_unset(self):
        broker = self.broker()
        sink = Sink(self.folder, self.environment(broker, QUEEN_S3_TARGET_MB=' ', QUEEN_S3_FORMAT='',
                                                  QUEEN_S3_PARTITIONS='  ', QUEEN_TOKEN=''))
        self.addCleanup(sink.kill)
        self.assertIn('target_mb=128', sink.wait_line('queen-s3 '))
        sink.wait_health()
        self.assertEqual(sink.terminate(), 0)

    def test_boot_line(self):
        broker = self.broker_with_token()
        listen = f'127.0.0.1:{free_port()}'
        sink = Sink(self.folder, self.environment(
            broker, QUEEN_S3_QUEUES=' orders , clicks', QUEEN_TOKEN=TOKEN, QUEEN_S3_LISTEN=listen,
            QUEEN_S3_ALIGN='DAY', QUEEN_URL=broker.url + '/'))
        self.addCleanup(sink.kill)
        line = sink.wait_line('target_mb')
        expected = (f'sink=default instance=test-0 queues=orders,clicks partitions=discovery queen={broker.url} '
                    f'token=<set> s3=file://{self.folder.resolve()} bucket=lake prefix=queen region=')
        self.assertRegex(line, r'^queen-s3 \d+\.\d+\.\d+ sink=')
        self.assertIn(expected, line)
        self.assertIn('format=jsonl compression=zstd layout=merged align=day target_mb=128 max_window_ms=300 '
                      'start=earliest checkpoint_every=3 memory_mb=1024 fetch_concurrency=4 discovery_interval_ms=50 '
                      'safe_guard_ms=50 lease_ttl_ms=2000 multipart_threshold_mb=64 '
                      f'listen={listen} crash_at=never workers=', line)
        sink.wait_health()
        self.assertEqual(sink.terminate(), 0)

    # Exit 1 and 3

    def test_port_in_use(self):
        with socket.create_server(('127.0.0.1', 0)) as taken:
            listen = f'127.0.0.1:{taken.getsockname()[1]}'
            self.ends(1, self.environment(QUEEN_S3_LISTEN=listen), 'QUEEN_S3_LISTEN', listen)

    def test_unreachable_broker(self):
        port = free_port()
        self.ends(3, self.environment(QUEEN_URL=f'http://127.0.0.1:{port}'), 'QUEEN_URL', f'127.0.0.1:{port}',
                  'QUEEN_TOKEN')

    def test_broker_that_answers_otherwise(self):
        broker = self.broker()
        for status in (500, 503, 404, 401, 403):
            with self.subTest(status=status):
                broker.fault(route='changed', kind='status', status=status)
                self.ends(3, self.environment(broker), 'QUEEN_URL', str(status))
        broker.fault(route='changed', kind='garbled')
        self.ends(3, self.environment(broker), 'QUEEN_URL', broker.url)
        broker.fault(route='queues', kind='status', status=403)
        self.ends(3, self.environment(broker, QUEEN_S3_QUEUES='*'), 'QUEEN_S3_QUEUES', 'read', '403')

    def test_wrong_token(self):
        broker = self.broker_with_token()
        for token in (None, 'wrong-one'):
            text = self.ends(3, self.environment(broker, QUEEN_TOKEN=token), 'QUEEN_TOKEN', 'scope', '401')
            self.assertNotIn('wrong-one', text)

    def test_unreachable_bucket(self):
        broker = self.broker()
        port = free_port()
        text = self.ends(3, {**self.environment(broker), **S3, 'QUEEN_S3_ENDPOINT': f'http://127.0.0.1:{port}',
                             'QUEEN_S3_PATH_STYLE': '1'},
                         'QUEEN_S3_ENDPOINT', f'127.0.0.1:{port}', 'QUEEN_S3_PATH_STYLE', 'QUEEN_S3_ACCESS_KEY')
        self.assertNotIn(S3['QUEEN_S3_SECRET_KEY'], text)

    def test_folder_that_cannot_be_made(self):
        broker = self.broker()
        (self.folder / 'file').write_text('no folder')
        self.ends(3, self.environment(broker, QUEEN_S3_ENDPOINT=f'file://{self.folder.resolve()}/file'),
                  f'{self.folder.resolve()}/file')

    # Signals

    def test_signal_before_the_first_claim(self):
        """While the broker's probe hangs, and while the claim does."""
        broker = self.broker()
        for route in ('changed', 'kv'):
            for number in (signal.SIGTERM, signal.SIGINT):
                with self.subTest(route=route, signal=number):
                    broker.clear_faults()
                    broker.fault(route=route, kind='hang', count=-1)
                    before = broker.stats()['routes'][route]['calls']
                    sink = Sink(self.folder, self.environment(broker, QUEEN_S3_SHUTDOWN_GRACE_MS='2000'))
                    self.addCleanup(sink.kill)
                    sink.program.wait_for(lambda: broker.stats()['routes'][route]['calls'] > before, 'the call')
                    sink.signal(number)
                    self.assertEqual(sink.wait(5), 0, sink.text())

    def test_second_signal(self):
        """While the bucket hangs: at once, with the signal's own code, and no process left."""
        with Gateway(self.folder) as s3:
            s3.make_bucket('lake')
            for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
                with self.subTest(signal=number):
                    broker = self.broker('--rate', 500)
                    sink = self.sink(broker, **s3.sink_environment('lake'), QUEEN_S3_SINK=f'sink{code}',
                                     QUEEN_S3_PREFIX=f'prefix{code}')
                    sink.wait_metric('queen_s3_windows_committed_total', 1)
                    s3.program.signal(signal.SIGSTOP)
                    committed = broker.document(self.queue, 'committed', f'sink{code}')['k']
                    sink.program.wait_for(
                        lambda: broker.document(self.queue, 'intent', f'sink{code}')['k'] > committed + 1
                        or broker.stats()['routes']['kv']['calls'] and self.hangs(broker, f'sink{code}'), 'an intent')
                    before = tree(sink.pid)
                    sink.signal(signal.SIGTERM)
                    sink.wait_line('stop')
                    sink.signal_again(number)
                    began = time.monotonic()
                    self.assertEqual(sink.wait(5), code, sink.text())
                    self.assertLess(time.monotonic() - began, 2)
                    for pid in before:
                        sink_gone = not pathlib.Path(f'/proc/{pid}').exists()
                        self.assertTrue(sink_gone or pid not in tree(os.getpid()), f'{pid} is left')
                    s3.program.signal(signal.SIGCONT)
                    broker.stop()

    def hangs(self, broker: DevBroker, sink: str) -> bool:
        """The sink has an intent above its pointer."""
        intent, committed = (broker.document(self.queue, which, sink) for which in ('intent', 'committed'))
        return bool(intent and committed and intent['k'] > committed['k'])

    def test_stop_under_load(self):
        broker = self.broker('--rate', 5000)
        sink = self.sink(broker, QUEEN_S3_LEASE_TTL_MS='30000')
        for _ in range(3):
            sink.wait_metric('queen_s3_windows_committed_total', 2)
            self.assertIsNotNone(broker.document(self.queue, 'lease'))
            self.assertEqual(sink.terminate(10), 0, sink.text())
            self.assertIsNone(broker.document(self.queue, 'lease'), 'the lease was not given back')
            self.hold(broker, complete=False)
            sink.start()
        sink.wait_metric('queen_s3_windows_committed_total', 1)
        self.assertEqual(sink.terminate(10), 0)
        self.hold(broker, complete=False)

    def test_grace_runs_out(self):
        """The bucket hangs: exit 0 in time, the queue named, and the next start redoes the very window."""
        with Gateway(self.folder) as s3:
            lake_folder = s3.make_bucket('lake')
            self.bucket = lake_folder.relative_to(self.folder.resolve()).as_posix()
            broker = self.broker('--rate', 1000, '--rate-records', 4000)
            sink = self.sink(broker, **s3.sink_environment('lake'), QUEEN_S3_SHUTDOWN_GRACE_MS='2500')
            sink.wait_metric('queen_s3_windows_committed_total', 1)
            s3.program.signal(signal.SIGSTOP)
            sink.program.wait_for(lambda: self.hangs(broker, 'default'), 'an intent')
            began = time.monotonic()
            sink.signal(signal.SIGTERM)
            self.assertEqual(sink.wait(10), 0, sink.text())
            self.assertLess(time.monotonic() - began, 2.5)
            left = [line for line in sink.text().splitlines() if 'not drained' in line]
            self.assertTrue(any(self.queue in line for line in left), sink.text()[-2000:])
            intent = broker.document(self.queue, 'intent')
            s3.program.signal(signal.SIGCONT)
            sink.start()
            self.wait_mirrored(broker, sink, 4000)
            redone = self.manifests()[intent['k'] - 1]
            self.assertEqual((redone['tStart'], redone['tEnd']), (intent['tStart'], intent['tEnd']))
            self.assertEqual(sink.terminate(), 0)
            self.hold(broker)

    # Secrets

    def test_no_secret_in_anything_it_says(self):
        """At debug, through refusals of broker and bucket, in the log, /metrics, /healthz, ps and a lake's objects."""
        with Gateway(self.folder) as s3:
            lake_folder = s3.make_bucket('lake')
            broker = self.broker_with_token('--rate', 1000)
            for log_format in ('human', 'json'):
                sink = self.sink(broker, **s3.sink_environment('lake'), QUEEN_TOKEN=TOKEN, QUEEN_S3_LOG_LEVEL='debug',
                                 QUEEN_S3_LOG_FORMAT=log_format, **BROKER_SECRETS)
                sink.wait_metric('queen_s3_windows_committed_total', 1)
                for pid in sink.tree():
                    self.assertNo(BROKER_SECRETS.values(), pathlib.Path(f'/proc/{pid}/environ').read_bytes(), 'environ')
                    self.assertNo([TOKEN, s3.secret_key], pathlib.Path(f'/proc/{pid}/cmdline').read_bytes(), 'ps')
                s3.stop()
                sink.program.wait_for(lambda: sink.metric('queen_s3_s3_requests_total', code='0') > 0, 'a failed put')
                said = sink.get('/metrics').body + sink.get('/healthz').body
                s3.start()
                committed = sink.metric('queen_s3_windows_committed_total')
                sink.wait_metric('queen_s3_windows_committed_total', committed + 1)
                sink.terminate()
                said += pathlib.Path(sink.program.log).read_bytes()
                self.assertNo([TOKEN, s3.secret_key, *BROKER_SECRETS.values()], said, log_format)
            wrong = {**self.environment(broker), **s3.sink_environment('lake'), 'QUEEN_S3_LOG_LEVEL': 'debug'}
            for changes in ({'QUEEN_TOKEN': 'w' + TOKEN},
                            {'QUEEN_TOKEN': TOKEN, 'QUEEN_S3_SECRET_KEY': 'w' + s3.secret_key}):
                result = command({**wrong, **changes}, deadline=20)
                self.assertEqual(result.returncode, 3)
                self.assertNo([TOKEN, s3.secret_key], result.stdout + result.stderr, 'a refusal')
            for path in (p for p in lake_folder.rglob('*') if p.is_file()):
                self.assertNo([TOKEN, s3.secret_key], path.read_bytes(), path.name)

    def assertNo(self, secrets, data: bytes, where: str) -> None:
        for secret in secrets:
            self.assertNotIn(secret.encode(), data, f'{secret} in {where}')

    # All queues

    def test_all_queues_as_they_appear(self):
        """With `*` a queue that comes later is claimed, and mirrored from its first record on whatever START says."""
        broker = self.broker()
        broker.push(mirror.records(10, queue='first'))
        sink = self.sink(broker, QUEEN_S3_QUEUES='*', QUEEN_S3_START='latest', QUEEN_S3_WORKERS='2')
        sink.program.wait_for(lambda: broker.document('first', 'committed'), 'T_0 of the first')
        for name in ('second', 'third', 'a/b'):
            broker.push(mirror.records(25, queue=name))
            self.wait_mirrored(broker, sink, 25, queue=name)
        self.assertEqual(sink.metric('queen_s3_workers'), 2)
        broker.push(mirror.records(10, queue='first', first=100))
        self.wait_mirrored(broker, sink, 10, queue='first')
        self.assertEqual(sink.terminate(), 0)
        for name in ('second', 'third', 'a/b'):
            self.hold(broker, name)
        self.assertEqual({r.transaction_id for r in broker.log('first')} - {f't-{i}' for i in range(10)},
                         {f't-{i}' for i in range(100, 110)})

    def test_all_queues_while_there_is_none(self):
        broker = DevBroker(self.folder)
        self.addCleanup(broker.stop)
        sink = self.sink(broker, QUEEN_S3_QUEUES='*')
        sink.wait_health()
        broker.push(mirror.records(10))
        self.wait_mirrored(broker, sink, 10)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)


if __name__ == '__main__':
    unittest.main()
