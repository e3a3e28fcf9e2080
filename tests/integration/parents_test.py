"""The sink as the child of parents that leave it in whatever state they were in themselves (spec 4.1, 4.6): it mirrors
all the same, answers, and goes when it is told to."""
import fcntl
import os
import pathlib
import re
import resource
import signal
import tempfile
import unittest

import mirror
from processes import alive, zombies

COMMITTED = 'queen_s3_windows_committed_total'
RESTARTS = 'queen_s3_worker_restarts_total'


def ignore_signals() -> None:
    """As nohup and old shells do, and more."""
    every = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
    for number in every:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass  # the C library's own
    signal.pthread_sigmask(signal.SIG_BLOCK, every)


def close_standard() -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def leak_descriptors() -> None:
    for descriptor in os.pipe():
        os.dup2(descriptor, descriptor + 100)


def delete_folder() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))


class ParentsTest(mirror.MirrorTest):
    def start(self, before_exec=None, records: int = 2000, **environment):
        """A broker with a queue for each of two workers, and the sink."""
        broker = self.broker('--rate', 2000, '--rate-records', records, queues=('orders', 'clicks'))
        sink = self.sink(broker, start=False, QUEEN_S3_QUEUES='orders,clicks', QUEEN_S3_WORKERS='2', **environment)
        sink.start(before_exec)
        return broker, sink

    def mirrors(self, broker, sink, records: int = 2000) -> None:
        self.wait_mirrored(broker, sink, records)
        self.hold(broker)

    def descriptors(self, pid: int) -> dict[int, str]:
        folder = pathlib.Path(f'/proc/{pid}/fd')
        return {int(p.name): os.readlink(p) for p in folder.iterdir()}

    def test_ignored_and_blocked_signals(self):
        broker, sink = self.start(ignore_signals)
        sink.wait_metric(COMMITTED, 1)
        os.kill(sink.workers()[0], signal.SIGKILL)
        sink.wait_metric(RESTARTS, 1)
        self.assertEqual(zombies([sink.pid]), [])
        self.mirrors(broker, sink)
        self.assertEqual(sink.terminate(), 0)

    def test_no_standard_descriptors(self):
        """A socket must not come to stand where errors are written to."""
        broker, sink = self.start(close_standard)
        sink.wait_metric(COMMITTED, 1)
        for pid in sink.tree():
            shown = self.descriptors(pid)
            for descriptor in (0, 1, 2):
                self.assertRegex(shown[descriptor], '^(/dev/null|pipe:)', f'descriptor {descriptor} of {pid}')
        self.mirrors(broker, sink)
        self.assertEqual(sink.terminate(), 0)

    def test_inherited_descriptors(self):
        """They end where they began: no worker holds open what a parent left open."""
        broker, sink = self.start(leak_descriptors)
        sink.wait_metric(COMMITTED, 1)
        leaked = {target for target in self.descriptors(sink.pid).values() if target.startswith('pipe:')}
        self.assertTrue([n for n in self.descriptors(sink.pid) if n >= 100], 'nothing was leaked')
        for pid in sink.workers():
            self.assertEqual([n for n in self.descriptors(pid) if n >= 100], [])
        self.assertTrue(leaked)
        self.mirrors(broker, sink)
        self.assertEqual(sink.terminate(), 0)

    def test_deleted_working_folder(self):
        broker, sink = self.start(delete_folder)
        sink.wait_metric(COMMITTED, 1)
        self.assertIn('(deleted)', os.readlink(f'/proc/{sink.pid}/cwd'))
        self.mirrors(broker, sink)
        self.assertEqual(sink.terminate(), 0)

    def test_few_descriptors(self):
        broker, sink = self.start(few_descriptors)
        self.mirrors(broker, sink)
        self.assertEqual(sink.terminate(), 0)

    def test_worker_that_finds_no_descriptors(self):
        """It fails for a reason that passes, here or there: it is started again, and the pool goes on."""
        for limit in (8, 10):  # of which the supervisor needs the most, then the worker
            with self.subTest(limit=limit):
                self.bucket = self.sink_name = f'with-{limit}'
                broker = self.broker('--rate', 2000, '--rate-records', 5000)
                sink = self.sink(broker, f'sink-{limit}', QUEEN_S3_SINK=self.sink_name)
                sink.wait_metric(COMMITTED, 1)
                limits = resource.prlimit(sink.pid, resource.RLIMIT_NOFILE)
                resource.prlimit(sink.pid, resource.RLIMIT_NOFILE, (limit, limits[1]))
                os.kill(sink.workers()[0], signal.SIGKILL)
                sink.wait_line('Too many open files')
                sink.program.wait_for(lambda: re.search('again in 2( s|000 ms)$', sink.text(), re.M), 'second failure')
                resource.prlimit(sink.pid, resource.RLIMIT_NOFILE, limits)
                self.mirrors(broker, sink, 5000)
                self.assertEqual(sink.terminate(), 0)
                broker.stop()

    def test_parent_that_reads_no_output(self):
        """A pipe that is full from the first byte on stalls neither the mirror nor /healthz nor a signal."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(writer, False)
        try:
            while os.write(writer, b'x' * 512):
                pass
        except BlockingIOError:
            os.set_blocking(writer, True)

        def full() -> None:
            os.dup2(writer, 1)
            os.dup2(writer, 2)

        broker, sink = self.start(full, QUEEN_S3_LOG_LEVEL='debug')
        os.close(writer)
        sink.wait_metric(COMMITTED, 1)
        pids = sink.tree()
        os.kill(sink.workers()[0], signal.SIGKILL)
        sink.wait_metric(RESTARTS, 1)
        self.assertEqual(sink.health(), (200, {'ok': True, 'queues': 2}))
        self.mirrors(broker, sink)
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual(alive(pids), [])
        self.assertEqual(os.read(reader, 1 << 20).strip(b'x'), b'')

    def test_parent_that_has_closed_its_end(self):
        """As a log collector that crashed does: EPIPE, and no SIGPIPE."""
        reader, writer = os.pipe()
        os.close(reader)

        def closed() -> None:
            os.dup2(writer, 1)
            os.dup2(writer, 2)

        broker, sink = self.start(closed, QUEEN_S3_LOG_LEVEL='debug')
        os.close(writer)
        self.mirrors(broker, sink)
        self.assertEqual(sink.terminate(), 0)


if __name__ == '__main__':
    unittest.main()
