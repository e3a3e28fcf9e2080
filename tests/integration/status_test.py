"""The control socket and `queen-s3 status`: what they tell of a pool in each of its states, and that no client and no
other pool can spoil them."""
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import stat
import subprocess
import time
import unittest

import mirror
from gateway import Gateway
from processes import BUILD
from sink import command, run_sink


class StatusTest(mirror.MirrorTest):
    def setUp(self):
        super().setUp()
        # A socket's path is short; the folder of a test need not be.
        short = pathlib.Path(subprocess.check_output(['mktemp', '-d', '/tmp/qs3-XXXXXX'], text=True).strip())
        self.addCleanup(shutil.rmtree, short, True)
        self.path = short / 'pool.sock'

    def pool(self, broker, **environment):
        return self.sink(broker, QUEEN_S3_CONTROL=self.path, **environment)

    def status(self, *arguments, **environment) -> subprocess.CompletedProcess:
        return command({'QUEEN_S3_CONTROL': self.path, **environment}, 'status', *arguments)

    def on_terminal(self, **environment) -> bytes:
        """What `status` prints where its output is a terminal."""
        ours, its = pty.openpty()
        try:
            subprocess.run([BUILD / 'queen-s3', 'status'], stdout=its, check=True, timeout=20,
                           env={'QUEEN_S3_CONTROL': str(self.path), **environment})
            return os.read(ours, 65536)
        finally:
            os.close(ours)
            os.close(its)

    def state(self) -> dict:
        """The document; empty while nobody answers."""
        result = self.status('--json')
        return json.loads(result.stdout) if result.returncode in (0, 1) and result.stdout else {}

    def wait_state(self, sink, condition, what: str) -> dict:
        return sink.program.wait_for(lambda: (s := self.state()) and condition(s) and s, what)

    def test_a_pool_at_work(self):
        broker = self.broker()
        for queue in ('orders', 'a b/\x7fc'):
            broker.push(mirror.records(20, queue=queue))
        sink = self.pool(broker, QUEEN_S3_QUEUES='orders,a b/\x7fc', QUEEN_S3_WORKERS='2', QUEEN_S3_INSTANCE='here')
        state = self.wait_state(sink, lambda s: all(q['tEnd'] for q in s['queues']) and len(s['queues']) == 2,
                                'committed windows')
        self.assertEqual((state['sink'], state['instance'], state['phase'], state['pid'], state['late']),
                         ('default', 'here', 'running', sink.pid, 0))
        self.assertEqual([w['pid'] for w in state['workers']], sorted(sink.workers()))
        for number, worker in enumerate(state['workers']):
            self.assertEqual((worker['worker'], worker['phase'], worker['restarts'], worker['lastExit'],
                              worker['backoffMs'], worker['queues']), (number, 'running', 0, None, 0, 1))
            self.assertGreater(worker['residentBytes'], 1 << 20)
            self.assertLessEqual(worker['uptimeMs'], state['uptimeMs'])
        orders = state['queues'][0]
        pointer = broker.document('orders', 'committed')
        self.assertEqual((orders['queue'], orders['owner'], orders['state'], orders['k'], orders['tEnd'],
                          orders['late'], orders['lastError']),
                         ('orders', 'here', 'running', pointer['k'], pointer['tEnd'], False, None))
        self.assertLess(orders['lagSeconds'], 60)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)

        table = self.status()
        self.assertEqual((table.returncode, table.stderr), (0, b''))
        text = table.stdout.decode()
        self.assertRegex(text, rf'^sink default on here: running for .*, pid {sink.pid}, queen-s3 ')
        self.assertIn('2 queues on time', text)
        self.assertRegex(text, rf'(?m)^ +0  running +{state["workers"][0]["pid"]} ')
        self.assertRegex(text, r'(?m)^  orders +running  worker [01] ')
        self.assertRegex(text, r'(?m)^  a b/\\x7fc +running  worker [01] ')
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertFalse([c for c in text if ord(c) < 32 and c != '\n'], 'no colour where there is no terminal')
        self.assertIn(b'\033[', self.on_terminal(TERM='xterm'))
        for plain in ({'TERM': 'dumb'}, {'TERM': 'xterm', 'NO_COLOR': '1'}):
            self.assertNotIn(b'\033', self.on_terminal(**plain))

        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(list(self.path.parent.iterdir()), [])
        gone = self.status()
        self.assertEqual((gone.returncode, gone.stdout), (3, b''))
        self.assertIn(f'queen-s3: no pool answers at {self.path}; ', gone.stderr.decode())

    def test_a_late_queue_a_worker_that_dies_and_one_that_hangs(self):
        """In one test because a queue is late after 30 s at the least."""
        broker = self.broker(queues=('orders', 'other'))
        for queue in ('a-well', 'late'):
            broker.push(mirror.records(20, queue=queue))
        broker.fault(route='fetch', kind='entry-error', queue='late', count=-1)
        late = self.sink(broker, 'late', QUEEN_S3_QUEUES='a-well,late', QUEEN_S3_WORKERS='1', QUEEN_S3_SINK='late',
                         QUEEN_S3_PREFIX='late', QUEEN_S3_CONTROL=str(self.path) + '2')
        self.check_workers(broker)
        self.check_late(late)

    def test_a_pool_that_begins_and_one_that_stops(self):
        """It answers from before its first claim to its end."""
        broker = self.broker()
        broker.push(mirror.records(20))
        broker.fault(route='changed', kind='hang', count=-1)
        sink = self.pool(broker, QUEEN_S3_SHUTDOWN_GRACE_MS='3000')
        begun = self.wait_state(sink, lambda s: s['pid'] == sink.pid, 'an answer')
        self.assertEqual((begun['phase'], begun['workers'], begun['queues']), ('starting', [], []))
        self.assertIn('no queue yet', self.status().stdout.decode())
        sink.terminate()
        broker.clear_faults()
        sink.start()
        sink.wait_metric('queen_s3_windows_committed_total', 1)
        broker.fault(route='kv', kind='hang', count=-1)
        sink.signal(signal.SIGTERM)
        ends = self.wait_state(sink, lambda s: s['phase'] == 'stopping', 'a stop')
        self.assertEqual([(w['phase'], w['lastExit']) for w in ends['workers']], [('stopping', None)])
        self.assertRegex(self.status().stdout.decode(), r'(?m)^ +0  stopping ')
        self.assertEqual(sink.wait(20), 0)

    def check_workers(self, broker):
        sink = self.pool(broker, QUEEN_S3_QUEUES='orders,other', QUEEN_S3_WORKERS='2')
        sink.wait_health()
        first = self.wait_state(sink, lambda s: [w['phase'] for w in s['workers']] == ['running'] * 2, 'two workers')
        os.kill(first['workers'][1]['pid'], signal.SIGSTOP)
        for restarts in range(2):
            victim = self.state()['workers'][0]['pid']
            os.kill(victim, signal.SIGKILL)
            dead = self.wait_state(sink, lambda s: s['workers'][0]['pid'] != victim, 'a death')['workers'][0]
            self.assertEqual(dead['lastExit']['reason'], 'signal 9')
            if dead['phase'] == 'backoff':
                self.assertEqual((dead['pid'], dead['uptimeMs'], dead['restarts'], dead['residentBytes']),
                                 (None, None, restarts, 0))
                self.assertLessEqual(dead['backoffMs'], 1000 << restarts)
            self.wait_state(sink, lambda s: s['workers'][0]['phase'] == 'running', 'its next life')
        self.assertEqual(self.state()['workers'][0]['restarts'], 2)
        silent = self.wait_state(sink, lambda s: s['workers'][1]['phase'] == 'silent', 'a silent worker')
        self.assertEqual(silent['workers'][1]['pid'], first['workers'][1]['pid'])
        text = self.status().stdout.decode()
        self.assertRegex(text, r'(?m)^! +1  silent ')
        self.assertIn('worker 1: silent', text)
        os.kill(first['workers'][1]['pid'], signal.SIGCONT)
        self.wait_state(sink, lambda s: s['workers'][1]['phase'] == 'running', 'its return')

    def check_late(self, sink):
        """Exit code 1, and the late queue first, with the reason."""
        where = {'QUEEN_S3_CONTROL': str(self.path) + '2'}
        sink.wait_health(503)
        result = self.status(**where)
        self.assertEqual(result.returncode, 1)
        text = result.stdout.decode()
        self.assertIn('1 of 2 queues late', text)
        self.assertRegex(text, r'(?m)^! late .*\n +.* ago: partition p-\d: offset 0 ')
        self.assertLess(text.index('! late'), text.index('  a-well'))
        result = self.status('--json', **where)
        self.assertEqual(result.returncode, 1)
        self.assertEqual([(q['queue'], q['late']) for q in json.loads(result.stdout)['queues']],
                         [('a-well', False), ('late', True)])

    def test_why_a_queue_waits(self):
        """A bucket that is away, a broker that is away, a partition that can't be read, another instance."""
        with Gateway(self.folder) as s3:
            s3.make_bucket('lake')
            broker = self.broker()
            broker.push(mirror.records(20))
            sink = self.pool(broker, **s3.sink_environment('lake'))
            sink.wait_metric('queen_s3_windows_committed_total', 1)
            s3.stop()
            broker.push(mirror.records(20, first=100))
            began = time.time()

            def error(state: dict):
                return state['queues'][0]['lastError']
            away = error(self.wait_state(sink, error, 'an error'))
            self.assertIn('127.0.0.1', away['message'])
            self.assertGreater(away['at'], time.strftime('%Y-%m-%dT%H:%M', time.gmtime(began - 60)))
            self.assertIn('ago: ' + away['message'][:20], self.status().stdout.decode())
            s3.start()
            self.wait_state(sink, lambda s: error(s) is None, 'the end of the error')
            broker.fault(route='fetch', kind='entry-error', queue='orders', count=-1)
            broker.push(mirror.records(1, first=200))
            unread = error(self.wait_state(sink, error, 'an error'))
            self.assertIn('partition p-4: offset ', unread['message'])
            broker.clear_faults()
            self.wait_state(sink, lambda s: error(s) is None, 'the end of the error')
            broker.fault(route='changed', kind='status', status=500, count=-1)
            unlisted = error(self.wait_state(sink, error, 'an error'))
            self.assertIn('500', unlisted['message'])
            broker.clear_faults()
            self.wait_state(sink, lambda s: error(s) is None, 'the end of the error')
            owner = self.state()['queues'][0]['owner']
            sink_two = self.sink(broker, 'two', QUEEN_S3_CONTROL=str(self.path) + '2', QUEEN_S3_INSTANCE='two',
                                 **s3.sink_environment('lake'))
            other = {'QUEEN_S3_CONTROL': str(self.path) + '2'}
            standby = sink_two.program.wait_for(
                lambda: [q for q in json.loads(self.status('--json', **other).stdout or '{"queues":[]}')['queues']
                         if q['state'] == 'standby'], 'a standby')[0]
            self.assertEqual((standby['owner'], standby['late'], standby['lastError']), (owner, False, None))
            self.assertIn(f'instance {owner} has it', self.status(**other).stdout.decode())

    # Where the socket is

    def test_a_place_that_cannot_be_had(self):
        broker = self.broker()
        environment = {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': 'orders', 'QUEEN_S3_ENDPOINT': 'file:///tmp',
                       'QUEEN_S3_BUCKET': 'lake'}
        self.path.write_text('mine')
        for path in ('/nowhere/at/all.sock', '/tmp/' + 'x' * 120, str(self.path)):
            code, text = run_sink(self.folder, {**environment, 'QUEEN_S3_CONTROL': path})
            self.assertEqual(code, 2, text)
            self.assertIn(f'queen-s3: QUEEN_S3_CONTROL={path}: ', text)
        for size in 104, 130:
            path = '/tmp/'.ljust(size, 'x')
            asked = self.status(QUEEN_S3_CONTROL=path)
            self.assertEqual(asked.returncode, 2)
            self.assertIn(f'queen-s3: QUEEN_S3_CONTROL={path}: longer than the 103 bytes ', asked.stderr.decode())
        self.assertEqual(self.path.read_text(), 'mine')

    def test_two_pools_and_what_a_killed_one_leaves(self):
        broker = self.broker()
        one = self.pool(broker)
        one.wait_health()
        two = self.sink(broker, 'two', QUEEN_S3_CONTROL=self.path, QUEEN_S3_INSTANCE='two')
        two.wait_line('no control socket: another pool has ')
        two.wait_health()
        self.assertEqual(self.state()['pid'], one.pid)
        self.assertEqual(two.terminate(), 0)
        self.assertEqual(self.state()['pid'], one.pid)
        one.kill()
        self.assertTrue(self.path.is_socket(), 'a killed pool can remove nothing')
        self.assertEqual(self.status().returncode, 3)
        three = self.sink(broker, 'three', QUEEN_S3_CONTROL=self.path)
        three.program.wait_for(lambda: self.state().get('pid') == three.pid, 'its answer')
        self.assertEqual(three.terminate(), 0)
        self.assertEqual(list(self.path.parent.iterdir()), [])

    def test_without_being_told_where(self):
        """In /run/queen-s3 where that can be written, else in $XDG_RUNTIME_DIR; and status finds it."""
        broker = self.broker()
        environment = {'QUEEN_S3_CONTROL': None, 'XDG_RUNTIME_DIR': self.path.parent,
                       'QUEEN_S3_SINK': f'test-{os.getpid()}'}
        usual = pathlib.Path('/run/queen-s3')
        folder = usual if os.access(usual, os.W_OK) else self.path.parent
        name = f'{"" if folder == usual else "queen-s3-"}{environment["QUEEN_S3_SINK"]}.sock'
        sink = self.sink(broker, **environment)
        sink.program.wait_for(lambda: (folder / name).is_socket(), f'{folder / name}')
        self.assertEqual(command(environment, 'status').returncode, 0)
        # Other settings may be wrong, or in a file.
        wrong = {**environment, 'QUEEN_S3_TARGET_MB': 'wrong', 'QUEEN_S3_SINK': None}
        file = self.folder / 'settings'
        file.write_text(f'QUEEN_S3_SINK={environment["QUEEN_S3_SINK"]}\n')
        found = command(wrong, 'status', '-f', file)
        self.assertEqual(found.returncode, 0, found.stderr.decode() + sink.text())
        self.assertEqual(sink.terminate(), 0)
        self.assertFalse((folder / name).exists())
        gone = command(environment, 'status')
        self.assertEqual(gone.returncode, 3)
        self.assertIn(f'/run/queen-s3/{environment["QUEEN_S3_SINK"]}.sock or {self.path.parent}', gone.stderr.decode())
        off = command({'QUEEN_S3_CONTROL': 'off'}, 'status')
        self.assertEqual(off.returncode, 2)
        self.assertIn('QUEEN_S3_CONTROL=off', off.stderr.decode())

    # Clients

    def test_clients_that_do_not_behave(self):
        broker = self.broker('--rate', 500)
        sink = self.pool(broker)
        sink.wait_metric('queen_s3_windows_committed_total', 1)

        def call() -> socket.socket:
            s = self.enterContext(socket.socket(socket.AF_UNIX))
            s.settimeout(20)
            s.connect(str(self.path))
            return s
        silent = [call() for _ in range(8)]
        for said in (b'\0\xff' * 40, b'GET / HTTP/1.1\r\n\r\n', b'status' * 1000, b'{"request":"status"}\n'):
            s = call()
            try:
                s.sendall(said)
                answer = b''.join(iter(lambda s=s: s.recv(65536), b''))
            except (BrokenPipeError, ConnectionResetError):
                continue
            self.assertIn('error', json.loads(answer))
        began = time.monotonic()
        self.assertTrue(self.state(), 'it still answers')
        # More than there is room for: they wait for the silent ones to be shown out, and all get their answer.
        crowd = [call() for _ in range(16)]
        for s in crowd:
            s.sendall(b'status\n')
        for s in crowd:
            self.assertEqual(json.loads(b''.join(iter(lambda s=s: s.recv(65536), b'')))['pid'], sink.pid)
        for s in silent:
            self.assertEqual(s.recv(1), b'')
        self.assertGreater(time.monotonic() - began, 3)
        committed = sink.metric('queen_s3_windows_committed_total')
        sink.wait_metric('queen_s3_windows_committed_total', committed + 1)
        self.assertEqual(sink.health()[0], 200)

    def test_a_pool_that_never_answers(self):
        """`status` has an end even where the other end has none."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.path))
            listening.listen(1)
            began = time.monotonic()
            result = self.status()
            self.assertEqual(result.returncode, 3)
            self.assertIn("doesn't answer in time", result.stderr.decode())
            self.assertLess(time.monotonic() - began, 20)


if __name__ == '__main__':
    unittest.main()
