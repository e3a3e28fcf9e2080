"""The sink embedded in a broker, which starts it, reads its output, watches over it and ends it; and what becomes of
it when any of the processes involved is killed, hangs, or is told to stop."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

import zstandard

import lake
import mirror
from embedded import Embedded
from gateway import Gateway
from processes import BUILD, ROOT, alive, free_port, until, zombies
from sink import file_lake

REAL_EVENTS = ROOT.parent / 'shared/data/wikipedia-edits.ndjson.zst'
BROKER_SECRETS = {'PG_PASSWORD': 'pg-6a1', 'JWT_SECRET': 'jwt-77c', 'QUEEN_ENCRYPTION_KEY': 'enc-91d',
                  'QUEEN_SYNC_SECRET': 'sync-0ff'}
COMMITTED = 'queen_s3_windows_committed_total'
EVENTS = 4000  # more than the 1 MiB that makes a window worth finishing in a drain


def write_events(to: pathlib.Path) -> None:
    """Real events where they are at hand, else as many made up."""
    if REAL_EVENTS.exists():
        with open(REAL_EVENTS, 'rb') as packed:
            lines = zstandard.ZstdDecompressor().stream_reader(packed).read(EVENTS * 1000).split(b'\n')[:EVENTS]
        to.write_bytes(b'\n'.join(lines) + b'\n')
    else:
        to.write_text(''.join(f'{{"channel":"c-{i % 51}","text":"{"x" * 400}","i":{i}}}\n' for i in range(EVENTS)))


def listening(pid: int) -> list[int]:
    """The ports at which a process listens."""
    rows = [line.split() for table in ('tcp', 'tcp6')
            for line in pathlib.Path(f'/proc/{pid}/net/{table}').read_text().splitlines()[1:]]
    ports = {f'socket:[{row[9]}]': int(row[1].rsplit(':', 1)[1], 16) for row in rows if row[3] == '0A'}
    targets = [os.readlink(p) for p in pathlib.Path(f'/proc/{pid}/fd').iterdir()]
    return [ports[target] for target in targets if target in ports]


class EmbeddedTest(mirror.MirrorTest):
    def environment(self, **changes) -> dict:
        return {'QUEEN_S3_QUEUES': self.queue, **mirror.QUICK, **file_lake(self.folder, self.bucket), **changes}

    def embedded(self, *arguments, queues: tuple[str, ...] = ('orders',), name: str = 'broker',
                 binary: pathlib.Path = BUILD / 'tests/devbroker', **environment) -> Embedded:
        """A broker that holds events in each of the queues, with the sink in it."""
        events = self.folder / 'events.ndjson'
        if not events.exists():
            write_events(events)
        loads = [a for queue in queues for a in ('--load', events, '--queue', queue, '--partition-by', 'channel')]
        broker = Embedded(self.folder / name, self.environment(QUEEN_S3_QUEUES=','.join(queues), **environment),
                          *loads, '--safe-lag-ms', 100, *arguments, binary=binary)
        self.addCleanup(broker.stop)
        return broker

    def wait_gone(self, pids: list[int], deadline: float) -> None:
        until(lambda: not alive(pids), f'end of {pids}', deadline)

    def wait_reaped(self, *parents: int) -> None:
        until(lambda: not zombies(parents), 'last zombie', 1)

    def wait_passes(self, broker: Embedded, count: int = 10) -> None:
        """Until that many more discovery passes are over: what there is to read has been read."""
        wanted = broker.stats()['routes']['changed']['calls'] + count
        broker.program.wait_for(lambda: broker.stats()['routes']['changed']['calls'] >= wanted, 'discovery passes')

    def uncommitted(self, broker: Embedded) -> bool:
        """The sink has an intent above its pointer."""
        intent = broker.document(self.queue, 'intent')
        return bool(intent and intent['k'] > self.committed(broker).get('k', 0))


class LifeTest(EmbeddedTest):
    def test_mirrors_what_the_broker_holds(self):
        queues = {'orders': EVENTS + 3000, 'clicks': EVENTS}
        broker = self.embedded('--rate', 3000, '--rate-records', 3000, queues=tuple(queues), QUEEN_S3_WORKERS='2')
        broker.program.wait_for(lambda: broker.sink.health() == (200, {'ok': True, 'queues': 2}), 'health of both')
        for queue, wanted in queues.items():
            self.wait_mirrored(broker, broker.sink, wanted, queue)
            self.hold(broker, queue)
        status = broker.status()
        self.assertEqual({k: v for k, v in status.items() if k not in ('pid', 'uptimeMs')},
                         {'mode': 'embedded', 'phase': 'running', 'restarts': 0, 'lastExit': None, 'backoffMs': 0})
        self.assertGreater(status['uptimeMs'], 0)
        self.assertNotIn('s3', broker.call('GET', '/health'))
        self.assertEqual(len(broker.workers()), 2)
        for pid in broker.descendants():
            self.assertEqual(os.getpgid(pid), pid, 'not in a process group of its own')
            self.assertEqual(os.getsid(pid), os.getsid(broker.pid), 'in another session')
            wanted = [broker.sink.url] if pid == status['pid'] else []
            self.assertEqual([f'http://127.0.0.1:{port}' for port in listening(pid)], wanted)
        self.assertEqual(broker.program.terminate(), 0, broker.text())
        self.assertIn('queen-s3 sink ended: exit 0', broker.text())

    def test_broker_without_it(self):
        self.assertEqual(self.broker().call('GET', '/status'), {'status': 'healthy'})

    def test_nothing_survives_a_killed_broker(self):
        broker = self.embedded('--rate', 2000, queues=('orders', 'clicks'), QUEEN_S3_WORKERS='2')
        broker.sink.wait_metric(COMMITTED, 4)
        pids = broker.descendants()
        self.assertEqual(len(pids), 3)
        os.kill(broker.pid, signal.SIGKILL)
        self.wait_gone(pids, 2)
        for queue in ('orders', 'clicks'):
            lake.assert_lake(self, self.lake_folder, queue)

    def booting(self, broker: Embedded) -> list[int]:
        """The supervisor and its probe, once both are there."""
        pids = broker.program.wait_for(lambda: len(found := broker.descendants()) == 2 and found, 'a probe')
        self.assertEqual(os.getpgid(pids[1]), pids[0])
        broker.sink.wait_health()
        return pids

    def test_killed_while_it_boots(self):
        """The probe waits for an answer that never comes."""
        nobody = self.enterContext(socket.create_server(('127.0.0.1', 0)))
        environment = {'QUEEN_URL': f'http://127.0.0.1:{nobody.getsockname()[1]}'}
        broker = self.embedded(**environment)
        pids = self.booting(broker)
        os.kill(pids[0], signal.SIGKILL)
        self.wait_gone(pids, 1)
        broker.wait_status(phase='running', restarts=1, lastExit='signal 9')
        pids = self.booting(broker)
        os.kill(broker.pid, signal.SIGKILL)
        self.wait_gone(pids, 1)
        broker = self.embedded(name='again', **environment)
        pids = self.booting(broker)
        self.assertEqual(broker.program.terminate(5), 0)
        self.assertEqual(alive(pids), [])
        self.assertIn('devbroker: queen-s3 sink ended: exit 0', broker.text())

    def test_killed_supervisor_is_started_again(self):
        broker = self.embedded('--rate', 1500, '--rate-records', 6000)
        for restarts, backoff_ms in ((0, 1000), (1, 2000)):
            broker.wait_status(phase='running', restarts=restarts)
            broker.sink.wait_metric(COMMITTED, 1)
            supervisor, workers = broker.supervisor(), broker.workers()
            self.assertEqual(len(workers), 1)
            began = time.monotonic()
            os.kill(supervisor, signal.SIGKILL)
            self.wait_gone(workers, 1)
            status = broker.wait_status(phase='backoff')
            self.assertEqual((status['pid'], status['lastExit'], status['backoffMs'], status['uptimeMs']),
                             (None, 'signal 9', backoff_ms, 0))
            self.wait_reaped(broker.pid)
            again = broker.wait_status(phase='running', restarts=restarts + 1)
            self.assertGreaterEqual(time.monotonic() - began, backoff_ms / 1000)
            self.assertNotEqual(again['pid'], supervisor)
        self.wait_mirrored(broker, broker.sink, EVENTS + 6000)
        self.hold(broker)

    def test_killed_worker_is_a_matter_of_the_sink(self):
        queues = {'orders': EVENTS + 3000, 'clicks': EVENTS}
        broker = self.embedded('--rate', 1500, '--rate-records', 3000, queues=tuple(queues), QUEEN_S3_WORKERS='2')
        broker.sink.wait_metric(COMMITTED, 2)
        supervisor = broker.supervisor()
        os.kill(broker.workers()[1], signal.SIGKILL)
        broker.sink.wait_metric('queen_s3_worker_restarts_total', 1)
        self.wait_reaped(supervisor, broker.pid)
        status = broker.status()
        self.assertEqual((status['pid'], status['phase'], status['restarts']), (supervisor, 'running', 0))
        for queue, wanted in queues.items():
            self.wait_mirrored(broker, broker.sink, wanted, queue)
            self.hold(broker, queue)

    def test_boot_failures(self):
        """Exit 1, 2 and 3 are shown, and tried again: where the reason goes away, so does the failure."""
        taken = self.enterContext(socket.create_server(('127.0.0.1', 0)))
        listen = f'127.0.0.1:{taken.getsockname()[1]}'
        nobody = f'http://127.0.0.1:{free_port()}'
        brokers = {
            1: (listen, self.embedded(name='exit-1', QUEEN_S3_LISTEN=listen)),
            2: ('QUEEN_S3_FORMAT=avro', self.embedded(name='exit-2', QUEEN_S3_FORMAT='avro')),
            3: (nobody, self.embedded(name='exit-3', QUEEN_URL=nobody, QUEEN_S3_SINK='other',
                                      QUEEN_S3_PREFIX='other')),
        }
        for code, (said, broker) in brokers.items():
            with self.subTest(code=code):
                broker.wait_status(phase='backoff', lastExit=f'exit {code}', restarts=1, backoffMs=2000)
                self.assertTrue([line for line in broker.text().splitlines()
                                 if line.startswith('[s3] queen-s3: ') and said in line], broker.text())
                broker.program.wait_line(f'devbroker: queen-s3 sink ended: exit {code}; started again in 1000 ms')
                self.wait_reaped(broker.pid)
        taken.close()
        broker = brokers[1][1]
        self.wait_mirrored(broker, broker.sink, EVENTS)
        self.hold(broker)
        for _, broker in brokers.values():
            self.assertEqual(broker.program.terminate(5), 0)


class StopTest(EmbeddedTest):
    def full(self, *arguments, **environment) -> Embedded:
        """The sink has read all that there is, and holds it in a window that nothing but a stop closes."""
        broker = self.embedded(*arguments, QUEEN_S3_MAX_WINDOW_MS='3600000', QUEEN_S3_ALIGN='none', **environment)
        broker.sink.wait_metric('queen_s3_buffer_bytes', 1 << 20)
        self.wait_passes(broker)
        return broker

    def hold_drained(self, broker: Embedded, log: list) -> None:
        self.assertIn('devbroker: queen-s3 sink ended: exit 0', broker.text())
        self.assertNotIn('not drained', broker.text())
        lake.assert_lake(self, self.lake_folder, self.queue, log=log, complete=True)

    def test_broker_serves_while_the_sink_drains(self):
        broker = self.full(QUEEN_S3_SHUTDOWN_GRACE_MS='20000')
        log = broker.log(self.queue)
        pids = broker.descendants()
        broker.fault(route='kv', kind='delay', delayMs=400, count=-1)
        broker.program.signal(signal.SIGTERM)
        status = broker.wait_status(phase='stopping')
        self.assertEqual(status['pid'], pids[0])
        self.assertEqual(len(broker.push([{'queue': 'beside', 'partition': 'p', 'payload': 1}])), 1)
        self.assertEqual(broker.program.wait(15), 0, broker.text())
        self.assertEqual(alive(pids), [])
        self.hold_drained(broker, log)

    def test_stop_that_reaches_every_process(self):
        """As a service manager's does, and in whatever order: the broker's own to its child comes on top."""
        for name, order in (('down', 1), ('up', -1)):
            with self.subTest(order=name):
                self.bucket = name
                broker = self.full(name=name)
                log = broker.log(self.queue)
                pids = broker.descendants()
                for pid in [broker.pid, *pids][::order]:
                    os.kill(pid, signal.SIGTERM)
                self.assertEqual(broker.program.wait(15), 0, broker.text())
                self.assertEqual(alive(pids), [])
                self.hold_drained(broker, log)

    def test_stop_under_load(self):
        broker = self.embedded('--rate', 5000)
        broker.sink.wait_metric(COMMITTED, 2)
        log = broker.log(self.queue)
        self.wait_passes(broker)
        pids = broker.descendants()
        self.assertEqual(broker.program.terminate(15), 0, broker.text())
        self.assertEqual(alive(pids), [])
        self.assertIn('devbroker: queen-s3 sink ended: exit 0', broker.text())
        self.assertNotIn('not drained', broker.text())
        lake.assert_lake(self, self.lake_folder, self.queue)
        offsets = {(r.partition, r.offset, r.transaction_id) for r in self.lake_records()}
        self.assertGreater(len(offsets), EVENTS)
        self.assertTrue(offsets >= {(r.partition, r.offset, r.transaction_id) for r in log[:EVENTS]})

    def test_bucket_that_hangs(self):
        """The sink is gone before its grace is over, says which queues it left, and the next start makes the very
        objects again; a broker that stops has not to kill it."""
        s3 = self.enterContext(Gateway(self.folder))
        self.bucket = s3.make_bucket('lake').relative_to(self.folder.resolve()).as_posix()
        broker = self.embedded('--rate', 1000, '--rate-records', 3000, QUEEN_S3_SHUTDOWN_GRACE_MS='3000',
                               **s3.sink_environment('lake'))
        broker.sink.wait_metric(COMMITTED, 1)
        s3.program.signal(signal.SIGSTOP)
        broker.program.wait_for(lambda: self.uncommitted(broker), 'an intent')
        intent = broker.document(self.queue, 'intent')
        pids = broker.descendants()
        began = time.monotonic()
        os.kill(pids[0], signal.SIGTERM)
        broker.wait_status(phase='backoff', lastExit='exit 0')
        self.assertLess(time.monotonic() - began, 3)
        self.wait_gone(pids, 1)
        self.assertIn(f'{self.queue}: not drained', broker.text())
        s3.program.signal(signal.SIGCONT)
        broker.wait_status(phase='running', restarts=1)
        self.wait_mirrored(broker, broker.sink, EVENTS + 3000)
        redone = self.manifests()[intent['k'] - 1]
        self.assertEqual((redone['tStart'], redone['tEnd']), (intent['tStart'], intent['tEnd']))
        self.hold(broker)
        s3.program.signal(signal.SIGSTOP)
        broker.push(mirror.records(100))
        broker.program.wait_for(lambda: self.uncommitted(broker), 'an intent')
        began = time.monotonic()
        self.assertEqual(broker.program.terminate(5), 0)
        self.assertLess(time.monotonic() - began, 3)
        self.assertIn('devbroker: queen-s3 sink ended: exit 0', broker.text())
        self.assertEqual(broker.text().count(f'{self.queue}: not drained'), 2)

    def test_broker_that_answers_no_more(self):
        """One that shuts its listener before it stops its child: the window can't be committed, and is made again."""
        broker = self.full(QUEEN_S3_SHUTDOWN_GRACE_MS='3000')
        broker.fault(route='any', kind='reset-before', count=-1)
        pids = broker.descendants()
        began = time.monotonic()
        os.kill(pids[0], signal.SIGTERM)
        broker.wait_status(phase='backoff', lastExit='exit 0')
        self.assertLess(time.monotonic() - began, 3)
        self.wait_gone(pids, 1)
        self.assertIn(f'{self.queue}: not drained', broker.text())
        self.assertEqual(self.manifests(), [])
        broker.clear_faults()
        broker.sink.wait_metric('queen_s3_buffer_bytes', 1 << 20)
        self.wait_passes(broker)
        log = broker.log(self.queue)
        self.assertEqual(broker.program.terminate(10), 0)
        self.assertIn('devbroker: queen-s3 sink ended: exit 0', broker.text())
        lake.assert_lake(self, self.lake_folder, self.queue, log=log, complete=True)

    def test_second_signal_to_the_broker(self):
        broker = self.full(QUEEN_S3_SHUTDOWN_GRACE_MS='60000')
        broker.fault(route='kv', kind='hang', count=-1)
        pids = broker.descendants()
        broker.program.signal(signal.SIGTERM)
        broker.wait_status(phase='stopping')
        broker.program.signal(signal.SIGTERM)
        self.assertEqual(broker.program.wait(5), 0)
        self.wait_gone(pids, 1)
        self.assertIn('devbroker: queen-s3 sink ended: signal 9', broker.text())

    def test_sink_that_hangs(self):
        """Nothing but SIGKILL reaches a stopped process; its workers go with it."""
        broker = self.embedded(queues=('orders', 'clicks'), QUEEN_S3_WORKERS='2', QUEEN_S3_SHUTDOWN_GRACE_MS='1000')
        broker.sink.wait_metric(COMMITTED, 2)
        pids = broker.descendants()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        self.assertEqual(broker.program.terminate(5), 0)
        self.assertGreaterEqual(time.monotonic() - began, 1)
        self.wait_gone(pids, 1)
        self.assertIn('devbroker: queen-s3 sink ended: signal 9', broker.text())

    def test_stop_while_it_waits_for_a_restart(self):
        broker = self.embedded(QUEEN_S3_FORMAT='avro')
        broker.wait_status(phase='backoff')
        self.assertEqual(broker.program.terminate(5), 0)


class ContractTest(EmbeddedTest):
    def refused(self, *parts: str, binary: pathlib.Path = BUILD / 'tests/devbroker', **environment) -> None:
        """The broker ends with 2, and one line that has all the parts."""
        whole = {'QUEEN_S3_EMBEDDED': 'true', **self.environment(**environment)}
        whole = {k: v for k, v in whole.items() if v is not None}
        ended = subprocess.run([binary, '--listen', '127.0.0.1:0'], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, env=whole, timeout=20)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr.count('\n')), (2, '', 1), ended)
        for part in parts:
            self.assertIn(part, ended.stderr)

    def test_what_the_broker_refuses(self):
        program = str(BUILD / 'queen-s3')
        plain = self.folder / 'queen-s3'
        plain.write_text('no program\n')
        beside = self.folder / 'devbroker'
        shutil.copy(BUILD / 'tests/devbroker', beside)
        self.refused('QUEEN_S3_BIN', str(self.folder), 'not a file', QUEEN_S3_BIN=str(self.folder))
        self.refused('QUEEN_S3_BIN', '/nowhere/queen-s3', 'not a file', QUEEN_S3_BIN='/nowhere/queen-s3')
        self.refused('QUEEN_S3_BIN', str(plain), 'execute', QUEEN_S3_BIN=str(plain))
        self.refused('QUEEN_S3_BIN', str(plain), 'execute', binary=beside)
        plain.unlink()
        self.refused('QUEEN_S3_BIN', str(plain), 'not a file', binary=beside)
        for bucket in (None, '', '  '):
            self.refused('QUEEN_S3_ENDPOINT', 'QUEEN_S3_REGION', 'QUEEN_S3_BUCKET', 'QUEEN_S3_QUEUES',
                         QUEEN_S3_BIN=program, QUEEN_S3_BUCKET=bucket)
        self.refused('QUEEN_S3_EMBEDDED', 'perhaps', QUEEN_S3_BIN=program, QUEEN_S3_EMBEDDED='perhaps')
        self.refused('QUEEN_S3_SHUTDOWN_GRACE_MS', '99', QUEEN_S3_BIN=program, QUEEN_S3_SHUTDOWN_GRACE_MS='99')

    def test_binary_beside_the_broker(self):
        for name in ('tests/devbroker', 'queen-s3'):
            shutil.copy(BUILD / name, self.folder)
        broker = self.embedded(binary=self.folder / 'devbroker', QUEEN_S3_BIN=None)
        self.assertIn(f' bin={self.folder}/queen-s3 ', broker.program.wait_line('sink started (embedded)'))
        broker.sink.wait_health()

    def test_token_and_secrets(self):
        """The child's own credentials reach it; the broker's secrets reach none of its processes."""
        token = 'tok-4be1cf0b2c'
        broker = self.embedded('--token', token, JWT_ENABLED='true', QUEEN_TOKEN=token, **BROKER_SECRETS)
        until(lambda: sum(m['records'] for m in self.manifests()) == EVENTS, 'all records in the lake')
        pids = broker.descendants()
        self.assertEqual(len(pids), 2)
        for pid in pids:
            shown = pathlib.Path(f'/proc/{pid}/environ').read_bytes()
            for name, secret in BROKER_SECRETS.items():
                self.assertNotIn(name.encode(), shown)
                self.assertNotIn(secret.encode(), shown)
        self.assertNotIn('JWT_ENABLED', broker.text())
        self.assertNotIn(token, broker.text())

    def test_tokens_without_one(self):
        broker = self.embedded('--token', 'tok-4be1cf0b2c', JWT_ENABLED='true')
        self.assertIn('QUEEN_TOKEN', broker.program.wait_line('warning: JWT_ENABLED=true'))
        broker.wait_status(phase='backoff', lastExit='exit 3')
        broker.program.wait_line('401')

    def test_where_the_sink_finds_its_broker(self):
        """QUEEN_URL if it is given, else where the broker listens, whatever it was told to bind."""
        loopback = 'queen_url_from="loopback (bound listener)"'
        for name, listen, given, url, origin in (
                ('free', '127.0.0.1:0', None, 'http://127.0.0.1:{port}', loopback),
                ('any', '0.0.0.0:0', '', 'http://127.0.0.1:{port}', loopback),
                ('any-6', '[::]:0', '  ', 'http://[::1]:{port}', loopback),
                ('given', '127.0.0.1:0', 'http://127.0.0.1:9', 'http://127.0.0.1:9',
                 'queen_url_from="QUEEN_URL (explicit)"')):
            with self.subTest(listen=listen, given=given):
                broker = self.embedded('--listen', listen, name=name, QUEEN_URL=given, QUEEN_S3_SINK=name,
                                       QUEEN_S3_PREFIX=name)
                wanted = url.format(port=broker.port)
                line = broker.program.wait_line('queen-s3 sink started (embedded)')
                self.assertRegex(line, rf'pid=\d+ bin={BUILD}/queen-s3 queen_url=')
                if given is None:  # with another's URL it soon ends
                    self.assertIn(f'pid={broker.supervisor()} ', line)
                self.assertTrue(line.endswith(f' queen_url={wanted} {origin}'), line)
                self.assertIn(f' queen={wanted} ', broker.program.wait_line('[s3] queen-s3 1.'))
                if given is None or not given.strip():
                    broker.sink.wait_records(EVENTS)
                broker.stop()

    def test_output_is_tamed(self):
        """Of a child that prints what it likes: no escape sequence, no endless line, at most 200 lines in ten
        seconds, and a count of the others."""
        script = self.folder / 'queen-s3'
        script.write_text('#!/bin/sh\n'
                          "printf 'plain \\033[31mred\\033[0m \\033]0;title\\007and\\001 tab\\tdone\\n'\n"
                          "printf '\\033[31'; head -c 20000 /dev/zero | tr '\\0' x; printf '\\n'\n"
                          'i=0; while [ $i -lt 1000 ]; do echo "line $i" >&2; i=$((i + 1)); done\n'
                          "printf 'no line feed'\n"
                          'exit 7\n')
        script.chmod(0o755)
        broker = self.embedded(QUEEN_S3_BIN=str(script))
        broker.program.wait_line('devbroker: 803 lines of the queen-s3 sink suppressed')
        lines = [line for line in broker.text().splitlines() if line.startswith('[s3] ')]
        self.assertEqual(lines[0], '[s3] plain red and tabdone')
        self.assertEqual((len(lines[1]), lines[1][-1]), (4095, 'x'))
        self.assertEqual(lines[2:], [f'[s3] line {i}' for i in range(198)])
        broker.wait_status(lastExit='exit 7', restarts=1, phase='backoff')
        self.assertEqual(lines, [line for line in broker.text().splitlines() if line.startswith('[s3] ')])

    def test_last_line_without_a_line_feed(self):
        script = self.folder / 'queen-s3'
        script.write_text("#!/bin/sh\nprintf 'no line feed'\n")
        script.chmod(0o755)
        broker = self.embedded(QUEEN_S3_BIN=str(script))
        broker.wait_status(phase='backoff', lastExit='exit 0')
        self.assertIn('[s3] no line feed', broker.text().splitlines())


if __name__ == '__main__':
    unittest.main()
