"""queen-s3 as a process.

    with Sink(folder, {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': 'orders', **file_lake(folder)}) as sink:
        sink.wait_metric('queen_s3_windows_committed_total', 3, queue='orders')
        sink.terminate()
"""
import json
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable

from http_client import Answer, request
from processes import BUILD, DEADLINE, TooLate, Program, alive, cpu_seconds, free_port, pss, tree

SAMPLE = re.compile(r'^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')

# What every sink of the tests is told unless the test says otherwise: intervals at which a test takes seconds.
BASE = {'QUEEN_S3_START': 'earliest', 'QUEEN_S3_DISCOVERY_INTERVAL_MS': '50', 'QUEEN_S3_SAFE_GUARD_MS': '0',
        'QUEEN_S3_LOG_LEVEL': 'debug', 'QUEEN_S3_CONTROL': 'off', 'QUEEN_S3_INSTANCE': 'test-0'}


def file_lake(folder: pathlib.Path, bucket: str = 'lake') -> dict[str, str]:
    """The environment of a sink that writes to the folder <folder>/<bucket>."""
    return {'QUEEN_S3_ENDPOINT': f'file://{pathlib.Path(folder).resolve()}', 'QUEEN_S3_BUCKET': bucket}


def parse_metrics(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Prometheus text as {(name, ((label, value), ...)): value}; a line that is none of it is an error."""
    samples = {}
    for line in text.split('\n'):
        if not line or line.startswith('#'):
            continue
        found = SAMPLE.match(line)
        if not found:
            raise AssertionError(f'not a sample: {line!r}')
        labels = tuple(sorted((k, re.sub(r'\\(.)', lambda m: '\n' if m[1] == 'n' else m[1], v))
                              for k, v in LABEL.findall(found[2] or '')))
        samples[found[1], labels] = float(found[3])
    return samples


class Endpoint:
    """The listener of a sink, whoever started it: /healthz and /metrics. `program` is whose end ends a wait for them,
    with what it wrote."""

    def __init__(self, url: str, program: Program | None = None):
        self.url = url
        self.program = program

    def get(self, path: str, timeout: float = 5) -> Answer:
        """A GET; status 0 while nobody answers."""
        return request('GET', self.url + path, timeout=timeout)

    def health(self) -> tuple[int, dict]:
        answer = self.get('/healthz')
        return answer.status, json.loads(answer.body) if answer.body else {}

    def wait_health(self, status: int = 200, deadline: float = DEADLINE) -> dict:
        """The body of the first /healthz with that status."""
        answer = self.program.wait_for(lambda: (a := self.get('/healthz')).status == status and a,
                                       f'/healthz {status}', deadline)
        return json.loads(answer.body)

    def metrics(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """All samples of /metrics; empty while nobody answers."""
        answer = self.get('/metrics')
        return parse_metrics(answer.text) if answer.status == 200 else {}

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that have these labels (0 without any)."""
        return sum(value for (n, has), value in self.metrics().items()
                   if n == name and set(labels.items()) <= set(has))

    def wait_metric(self, name: str, least: float, deadline: float = DEADLINE, **labels: str) -> float:
        """Waits until the metric is at least that much."""
        shown = f'{name} of {least:g} {labels or ""}'.strip()
        self.program.wait_for(lambda: self.metric(name, **labels) >= least, shown, deadline)
        return self.metric(name, **labels)

    def wait_records(self, count: int, deadline: float = DEADLINE, **labels: str) -> float:
        return self.wait_metric('queen_s3_records_written_total', count, deadline, **labels)


class Sink(Endpoint):
    def __init__(self, folder: pathlib.Path, environment: dict[str, str], *arguments, start: bool = True):
        """Environment: BASE, then what is given (None takes a name out), and a listener on a free port unless given.
        `folder` gets sink.log."""
        self.folder = pathlib.Path(folder)
        self.arguments = [str(a) for a in arguments]
        listen = environment.get('QUEEN_S3_LISTEN') or f'127.0.0.1:{free_port()}'
        self.environment = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'HOME': str(self.folder), 'LC_ALL': 'C',
                            **BASE, 'QUEEN_S3_LISTEN': listen, **environment}
        self.environment.update({k: v for k, v in os.environ.items() if k.endswith('SAN_OPTIONS')})
        super().__init__('http://' + listen)
        if start:
            self.start()

    def start(self, before_exec: Callable[[], None] | None = None, **changes) -> 'Sink':
        """Starts it, with changes to the environment (kept for later starts). Waits for nothing. `before_exec` runs in
        the child: what a parent leaves it with."""
        self.environment.update(changes)
        environment = {k: str(v) for k, v in self.environment.items() if v is not None}
        self.program = Program([BUILD / 'queen-s3', *self.arguments], self.folder / 'sink.log', environment,
                               before_exec=before_exec)
        return self

    # What it says

    @property
    def pid(self) -> int:
        return self.program.pid

    def text(self) -> str:
        """What it wrote since its last start."""
        return self.program.text()

    def wait_line(self, part: str, deadline: float = DEADLINE) -> str:
        return self.program.wait_line(part, deadline)

    # Its processes

    def tree(self) -> list[int]:
        """The supervisor, then all processes below it."""
        return tree(self.pid)

    def workers(self) -> list[int]:
        return self.tree()[1:]

    def pss(self) -> int:
        """Bytes of memory of the whole tree."""
        return pss(self.tree())

    def cpu_seconds(self) -> float:
        """Processor seconds of the whole tree so far."""
        return cpu_seconds(self.tree())

    def running(self) -> bool:
        return self.program.running()

    def signal(self, number: int) -> None:
        self.program.signal(number)

    def signal_again(self, number: int) -> None:
        """As a second stop, which counts as one from 200 ms on: the first one has been taken by now."""
        time.sleep(0.2)
        self.signal(number)

    def wait(self, deadline: float = DEADLINE) -> int:
        """Its exit code, once it ends by itself."""
        return self.program.wait(deadline)

    def terminate(self, deadline: float = DEADLINE) -> int:
        """SIGTERM; its exit code. No process of the tree may be left."""
        before = self.tree()
        code = self.program.terminate(deadline)
        end = time.monotonic() + 5
        while left := alive(before):
            if time.monotonic() > end:
                raise TooLate(f'processes {left} outlived the supervisor')
            time.sleep(0.01)
        return code

    def kill(self) -> None:
        """kill -9 for the whole tree."""
        if self.program:
            self.program.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def command(environment: dict[str, str], *arguments, deadline: float = DEADLINE) -> subprocess.CompletedProcess:
    """`queen-s3 <arguments>` to its end, with stdout and stderr apart as bytes: for commands such as cat and verify."""
    whole = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'LC_ALL': 'C', **BASE, **environment}
    whole.update({k: v for k, v in os.environ.items() if k.endswith('SAN_OPTIONS')})
    return subprocess.run([BUILD / 'queen-s3', *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          env={k: str(v) for k, v in whole.items() if v is not None}, timeout=deadline)


def run_sink(folder: pathlib.Path, environment: dict[str, str], *arguments, deadline: float = DEADLINE
             ) -> tuple[int, str]:
    """A run that is expected to end by itself: exit code and everything it wrote."""
    with Sink(folder, environment, *arguments) as sink:
        return sink.wait(deadline), sink.text()
