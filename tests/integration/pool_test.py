"""The pool while its processes are killed, stopped and started again: who is not concerned goes on, no counter falls, a
rolling restart takes one worker at a time, and nobody waits for a log that is not read."""
import fcntl
import math
import os
import pathlib
import re
import signal
import threading
import time
import unittest

import mirror
from devbroker import DevBroker
from http_client import request
from lake import micros
from processes import BUILD, DEADLINE, Program, TooLate, until, zombies
from sink import Sink, parse_metrics

COMMITTED = 'queen_s3_windows_committed_total'
RESTARTS = 'queen_s3_worker_restarts_total'
SCRAPES = 10000


def title(pid: int) -> str:
    try:
        return pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')[0].decode()
    except OSError:
        return ''


def state_of(pid: int) -> str:
    """As proc(5) spells it; '' for a process that is gone."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return ''
    return text[text.rindex(')') + 2]


def is_total(name: str) -> bool:
    return name.endswith(('_total', '_bucket', '_sum', '_count'))


class Scraper(threading.Thread):
    """Scrapes as fast as it can, and holds each answer against the one before."""

    def __init__(self, sink: Sink):
        super().__init__(daemon=True)
        self.url = sink.url + '/metrics'
        self.scrapes = 0
        self.slowest = 0.0
        self.fault = ''
        self.ended = threading.Event()

    def run(self) -> None:
        before: dict = {}
        while not self.ended.is_set() and not self.fault:
            began = time.monotonic()
            answer = request('GET', self.url, timeout=10)
            self.slowest = max(self.slowest, time.monotonic() - began)
            if answer.status != 200:
                self.fault = f'scrape {self.scrapes}: status {answer.status}'
                return
            now = parse_metrics(answer.text)
            gone = before.keys() - now.keys()
            fallen = [(key, value, now[key]) for key, value in before.items()
                      if key in now and is_total(key[0]) and now[key] < value]
            if gone or fallen:
                self.fault = f'scrape {self.scrapes}: gone {sorted(gone)}, fallen {fallen}'
            before = now
            self.scrapes += 1

    def finish(self, test: unittest.TestCase, least: int = SCRAPES) -> None:
        until(lambda: self.fault or self.scrapes >= least, f'{least} scrapes', 180)
        self.ended.set()
        self.join(20)
        test.assertEqual(self.fault, '')


class Owners(threading.Thread):
    """Looks at a queue's lease all the time: who has lost it to another one must never have it again."""

    def __init__(self, broker: DevBroker, queue: str):
        super().__init__(daemon=True)
        self.broker, self.queue = broker, queue
        self.seen: list[str] = []
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.005):
            lease = self.broker.document(self.queue, 'lease')
            if lease and self.seen[-1:] != [lease['incarnation']]:
                self.seen.append(lease['incarnation'])

    def finish(self, test: unittest.TestCase, count: int) -> None:
        self.ended.set()
        self.join(20)
        test.assertEqual(len(self.seen), count)
        test.assertEqual(len(set(self.seen)), count, 'two owners')


class PoolTest(mirror.MirrorTest):
    def process(self, sink: Sink, queue: str) -> int:
        """The pid of the worker that has this queue."""
        def look():
            shape = rf'worker \d+ \[(.*,)?{queue}(,.*)?\]'
            return next((pid for pid in sink.workers() if re.search(shape, title(pid))), 0)
        return until(look, f'worker of {queue}')

    def push_until(self, broker, queues, ended: threading.Event) -> None:
        first = 0
        while not ended.wait(0.05):
            for queue in queues:
                broker.push(mirror.records(20, queue=queue, first=first))
            first += 20

    def longest_gap(self, queue: str, begin: float = 0, end: float = math.inf) -> float:
        """Seconds between two commits, or the last one and now, of which the first is between these times."""
        times = [micros(m['committedAt']) / 1e6 for m in self.manifests(queue)] + [time.time()]
        return max((after - before for before, after in zip(times, times[1:]) if begin <= before <= end), default=0)

    def load(self, broker, *queues: str) -> threading.Event:
        """Records for these queues until the event is set."""
        ended = threading.Event()
        pusher = threading.Thread(target=self.push_until, args=(broker, queues, ended), daemon=True)
        pusher.start()
        self.addCleanup(pusher.join, 10)
        self.addCleanup(ended.set)
        return ended

    def test_workers_die_and_hang_while_others_go_on(self):
        """`a` is killed three times, `hung` stands still, `b` is not concerned; all the while /metrics is asked."""
        queues = ('a', 'b', 'hung')
        broker = self.broker(queues=queues)
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(queues), QUEEN_S3_WORKERS='3', QUEEN_S3_LEASE_TTL_MS='5000')
        ended = self.load(broker, *queues)
        for queue in queues:
            sink.wait_metric(COMMITTED, 1, queue=queue)
        scraper, owners = Scraper(sink), Owners(broker, 'a')
        scraper.start()
        owners.start()
        usual = self.longest_gap('b')
        self.assertEqual(title(sink.pid), 'queen-s3: supervisor')
        hung = self.process(sink, 'hung')
        os.kill(hung, signal.SIGSTOP)
        worker = re.search(r'worker (\d+)', title(self.process(sink, 'a')))[1]
        for number, backoff in enumerate((1, 2, 4)):
            died = time.time()
            os.kill(self.process(sink, 'a'), signal.SIGKILL)
            sink.program.wait_for(lambda: sink.metric('queen_s3_worker_up', worker=worker) == 0, 'a death that is seen')
            self.assertEqual(sink.metric('queen_s3_worker_backoff_seconds', worker=worker), backoff)
            committed = sink.metric(COMMITTED, queue='b')
            sink.wait_metric(COMMITTED, committed + 1, queue='b')
            self.assertEqual(sink.metric(RESTARTS, worker=worker), number)
            if backoff > 1:  # the backoff leaves time enough to be sure of it
                self.assertEqual(sink.metric('queen_s3_worker_up', worker=worker), 0, 'up again too early')
            sink.wait_metric(RESTARTS, number + 1, worker=worker)
            self.assertGreaterEqual(time.time() - died, backoff)
            # Not concerned: a second, where this machine's load gives it one at all.
            self.assertLess(self.longest_gap('b', died, died + backoff), max(1, 3 * usual), 'b has noticed')
            committed = sink.metric(COMMITTED, queue='a')
            sink.wait_metric(COMMITTED, committed + 1, queue='a')
        self.assertEqual(zombies([sink.pid]), [])
        owners.finish(self, 4)
        self.assertEqual(sink.metric('queen_s3_commit_precondition_lost_total'), 0)
        sink.wait_line(': silent for 10 s')
        self.assertEqual(sink.wait_health(503)['queue'], 'hung')
        self.assertEqual(state_of(hung), 'T')
        os.kill(hung, signal.SIGCONT)
        sink.wait_health(200)
        scraper.finish(self)
        self.assertLess(scraper.slowest, 5)
        self.assertEqual(sink.metric(RESTARTS), 3)
        ended.set()
        for queue in queues:
            self.wait_mirrored(broker, sink, queue=queue)
        self.assertEqual(sink.terminate(), 0)
        for queue in queues:
            self.hold(broker, queue)

    def write_file(self, **values) -> pathlib.Path:
        path = self.folder / 'queen-s3.conf'
        fresh = self.folder / 'queen-s3.conf.new'
        fresh.write_text(''.join(f'{name}={value}\n' for name, value in values.items()))
        fresh.rename(path)
        return path

    def test_rolling_restart_under_load(self):
        """One worker at a time, with what the file says now; a broken file changes nothing; nothing is lost."""
        queues = ('a', 'b', 'c')
        broker = self.broker(queues=queues)
        path = self.write_file(QUEEN_S3_MAX_WINDOW_MS='300', QUEEN_S3_WORKERS='3', QUEEN_S3_COMPRESSION='none')
        sink = self.sink(broker, start=False, QUEEN_S3_QUEUES=','.join(queues), QUEEN_S3_MAX_WINDOW_MS=None)
        sink.arguments = ['run', '-f', str(path)]
        sink.start()
        ended = self.load(broker, *queues)
        for queue in queues:
            sink.wait_metric(COMMITTED, 1, queue=queue)
        scraper = Scraper(sink)
        scraper.start()
        first = {queue: self.process(sink, queue) for queue in queues}
        self.write_file(QUEEN_S3_MAX_WINDOW_MS='never', QUEEN_S3_WORKERS='3')
        sink.signal(signal.SIGHUP)
        line = sink.wait_line('SIGHUP: nothing has changed')
        self.assertIn('QUEEN_S3_MAX_WINDOW_MS', line)
        for queue in queues:  # it goes on as it did
            sink.wait_metric(COMMITTED, sink.metric(COMMITTED, queue=queue) + 1, queue=queue)
        self.assertEqual(sink.text().count('SIGHUP'), 1)
        usual = max(self.longest_gap(queue) for queue in queues)
        self.assertEqual({queue: self.process(sink, queue) for queue in queues}, first)
        # What was written in the one format stays counted as that: the scraper sees no series vanish.
        self.write_file(QUEEN_S3_MAX_WINDOW_MS='200', QUEEN_S3_WORKERS='2', QUEEN_S3_FORMAT='parquet',
                        QUEEN_S3_PARQUET_CODEC='snappy')
        sink.signal(signal.SIGHUP)
        self.assertIn('max_window_ms=200', sink.wait_line(' format=parquet compression=snappy '))
        fewest, seen = 3, 0
        while 'every worker has been started again' not in sink.text():
            pids = sink.workers()
            up = sum(1 for pid in pids if state_of(pid) not in ('', 'Z'))
            if sink.workers() == pids:  # else one came or went between the list and the look
                fewest = min(fewest, up)
            seen += 1
            self.assertTrue(sink.running())
            if seen > 100 * DEADLINE:
                raise TooLate(sink.text()[-3000:])
            time.sleep(0.005)
        self.assertGreaterEqual(fewest, 2, 'two workers that did not run')
        self.assertIn('QUEEN_S3_WORKERS has changed, which takes a restart', sink.text())
        drain = self.one_at_a_time(sink.text())
        second = {queue: self.process(sink, queue) for queue in queues}
        self.assertFalse(set(first.values()) & set(second.values()), 'a worker that was not started again')
        self.assertEqual(sink.metric(RESTARTS), 0)
        scraper.finish(self, 100)
        for queue in queues:
            committed = sink.metric(COMMITTED, queue=queue)
            sink.wait_metric(COMMITTED, committed + 2, queue=queue)
            # One drain, and then a window as long as ever, by a process that has to begin first.
            self.assertLess(self.longest_gap(queue), drain + max(1, 3 * usual))
        ended.set()
        for queue in queues:
            self.wait_mirrored(broker, sink, queue=queue)
            self.assertEqual(self.manifests(queue)[0]['compression'], 'none')
            self.assertEqual(self.manifests(queue)[-1]['compression'], 'snappy')
            for form in 'jsonl', 'parquet':
                self.assertEqual(sink.metric('queen_s3_bytes_written_total', queue=queue, format=form),
                                 sum(m['bytes'] for m in self.manifests(queue) if m['format'] == form))
        self.assertEqual(sink.terminate(), 0)
        for queue in queues:
            self.hold(broker, queue)

    def one_at_a_time(self, text: str) -> float:
        """The turns as the log tells of them: drains, ends, starts; then the next one. Returns the seconds of the
        longest drain."""
        text = text[text.index('the settings are read'):]
        told = re.findall(r'^(\S+)Z .*worker (\d+): (drains|exit 0|started)', text, re.M)
        self.assertEqual([turn[1:] for turn in told],
                         [(str(worker), what) for worker in range(3) for what in ('drains', 'exit 0', 'started')])
        times = [micros(f'{at}000Z') / 1e6 for at, _, _ in told]
        return max(times[i + 1] - times[i] for i in range(0, len(times), 3))

    def test_a_file_of_settings_that_never_ends(self):
        """A named pipe that nobody writes to holds the supervisor for a moment, and not for good."""
        broker = self.broker()
        path = self.write_file(QUEEN_S3_MAX_WINDOW_MS='300')
        sink = self.sink(broker, start=False, QUEEN_S3_MAX_WINDOW_MS=None)
        sink.arguments = ['run', '-f', str(path)]
        sink.start()
        sink.wait_metric('queen_s3_worker_up', 1)
        before = sink.workers()
        path.unlink()
        os.mkfifo(path)
        sink.signal(signal.SIGHUP)
        self.assertIn('SIGHUP: nothing has changed', sink.wait_line(f'{path}: a pipe without an end within 5 s'))
        self.assertEqual(sink.workers(), before)
        self.assertEqual(sink.terminate(), 0)

    def test_each_queue_says_how_it_stands(self):
        broker = self.broker(queues=('a', 'b'))
        sink = self.sink(broker, QUEEN_S3_QUEUES='a,b', QUEEN_S3_WORKERS='2', QUEEN_S3_LOG_LEVEL='error')
        broker.push(mirror.records(10, queue='a'))
        sink.wait_records(10, queue='a')
        sink.signal(signal.SIGUSR1)
        shape = r'info  {}: running, window {}, \d+ bytes buffered, lag \d+\.\d{{3}} s$'
        for queue, window in (('a', '1'), ('b', '0|none')):
            sink.program.wait_for(lambda: re.search(shape.format(queue, f'({window})'), sink.text(), re.M),
                                  f'line of {queue}')
        self.assertEqual(len(sink.text().splitlines()), 3, sink.text())  # these, and the boot line
        self.assertEqual(sink.terminate(), 0)

    def test_more_queues_than_the_log_has_lines_for(self):
        """All are counted, and what somebody has to look at is there whatever its place in the list."""
        queues = [f'q{i:03}' for i in range(250)]
        broker = self.broker(queues=queues)
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join([*queues, 'missing']), QUEEN_S3_WORKERS='1',
                         QUEEN_S3_LOG_LEVEL='error')
        sink.wait_line('missing: stopped')
        sink.program.wait_for(lambda: sink.get('/').text.count('>running<') > 180, 'queues that run')
        sink.signal(signal.SIGUSR1)
        first = sink.wait_line('251 queues: ')
        self.assertRegex(first, r'info  251 queues: .*1 stopped.*; the 179 worst off:$')
        sink.program.wait_for(lambda: sink.text().count(' bytes buffered, ') >= 179, 'the lines')
        self.assertEqual(sink.terminate(), 0)
        lines = sink.text().splitlines()
        self.assertIn('info  missing: stopped', lines[lines.index(first) + 1])
        self.assertEqual(sink.text().count(' bytes buffered, '), 179)
        self.assertNotIn('left out', sink.text())

    def test_a_queue_that_comes_later(self):
        """With `*` its lease is there within ten discovery intervals, or a second, and two more."""
        for interval in (50, 300):
            with self.subTest(interval=interval):
                self.bucket = self.sink_name = f'every-{interval}'
                broker = self.broker(queues=('first',))
                sink = self.sink(broker, QUEEN_S3_QUEUES='*', QUEEN_S3_DISCOVERY_INTERVAL_MS=interval,
                                 QUEEN_S3_SINK=self.sink_name, QUEEN_S3_START='latest', QUEEN_S3_WORKERS='2')
                until(lambda: broker.document('first', 'lease', self.sink_name), 'lease of the first')
                began = time.monotonic()
                broker.push(mirror.records(1, queue='later'))
                until(lambda: broker.document('later', 'lease', self.sink_name), 'lease of the later one', every=0.005)
                self.assertLess(time.monotonic() - began, max(1, 10 * interval / 1000) + 2)
                self.wait_mirrored(broker, sink, 1, queue='later')
                self.assertEqual(sink.terminate(), 0)
                self.hold(broker, 'later')
                broker.stop()

    def test_a_worker_that_floods_the_log(self):
        """What something in it writes to its standard error, however much and whatever it holds."""
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_LOG_LEVEL='warn')
        sink.wait_health()
        flood = b''.join(b'\033[2J\033]0;flood\007\033[31mflood %d\x08\033[0m\n' % i for i in range(5000))
        with open(f'/proc/{self.process(sink, self.queue)}/fd/2', 'wb', buffering=0) as standard_error:
            os.set_blocking(standard_error.fileno(), True)
            for start in range(0, len(flood), 4096):
                standard_error.write(flood[start:start + 4096])
        told = sink.wait_line('lines were left out, more than 200 in 10 s')
        lines = re.findall(r'^.*worker 0: (flood \d+)$', sink.text(), re.M)
        self.assertEqual(lines, [f'flood {i}' for i in range(len(lines))])
        self.assertEqual((len(lines), int(re.search(r'(\d+) lines were', told)[1])), (200, 4800))
        self.assertEqual(re.findall(r'[\x00-\x09\x0b-\x1f\x7f-\x9f]', sink.text()), [])
        broker.push(mirror.records(10))
        self.wait_mirrored(broker, sink, 10)
        self.assertEqual(sink.terminate(), 0)

    def test_a_parent_that_does_not_read(self):
        """Its pipe is full: what doesn't fit is dropped and counted, and nothing else stalls."""
        broker = self.broker('--rate', 1000)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(writer, False)
        os.write(writer, b'x' * 4000)  # the boot line no longer fits
        os.set_blocking(writer, True)
        sink = self.sink(broker, start=False, QUEEN_S3_LOG_LEVEL='debug')
        environment = {name: str(value) for name, value in sink.environment.items() if value is not None}
        sink.program = Program(['/bin/sh', '-c', 'exec "$0" 2>&1', BUILD / 'queen-s3'], sink.folder / 'sink.log',
                               environment, output=writer)
        os.close(writer)
        sink.wait_metric(COMMITTED, 3)
        self.assertEqual(sink.health()[0], 200)
        os.kill(self.process(sink, self.queue), signal.SIGKILL)
        sink.wait_metric(RESTARTS, 1)
        committed = sink.metric(COMMITTED)
        sink.wait_metric(COMMITTED, committed + 1)
        said = os.read(reader, 1 << 20).decode()
        os.set_blocking(reader, False)

        def read_more():
            nonlocal said
            try:
                said += os.read(reader, 1 << 20).decode()
            except BlockingIOError:
                pass
            return re.search(r'warn  [1-9]\d* log lines were dropped: nobody read them in time\n', said)
        sink.program.wait_for(read_more, 'the number of dropped lines')
        os.set_blocking(reader, False)
        self.assertEqual(sink.terminate(20), 0)


if __name__ == '__main__':
    unittest.main()
