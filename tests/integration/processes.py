"""Starting, watching and ending real processes: what the integration tests stand on.

Every wait ends at a deadline, and waits for an event (a line, a process's end, an answer) rather than for time.
"""
import os
import pathlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get('QUEEN_S3_TEST_BUILD', 'build')
DEADLINE = float(os.environ.get('QUEEN_S3_TEST_DEADLINE', '60'))


class Ended(AssertionError):
    """A process ended that should be there."""


class TooLate(AssertionError):
    """The deadline passed before what was waited for."""


def until(condition: Callable[[], object], what: str, deadline: float = DEADLINE, every: float = 0.01):
    """The first true answer of `condition`, asked again at growing intervals (at most 0.1 s) until the deadline."""
    end = time.monotonic() + deadline
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise TooLate(f'after {deadline:.0f} s: no {what}')
        time.sleep(every)
        every = min(every * 1.5, 0.1)


def free_port() -> int:
    """A port on 127.0.0.1 that was free a moment ago."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat after the name: state, ppid, pgrp, ... Nothing for a process that is gone."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text(errors='replace')
    except OSError:
        return None
    return text[text.rindex(')') + 2:].split()


def tree(pid: int) -> list[int]:
    """`pid` and all that descend from it, parents first; zombies left out."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir('/proc'):
        if entry.isdigit() and (fields := _stat(int(entry))) and fields[0] != 'Z':
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, queue = [], [pid]
    while queue:
        parent = queue.pop(0)
        if (fields := _stat(parent)) and fields[0] != 'Z':
            found.append(parent)
        queue += children.get(parent, [])
    return found


def alive(pids: Iterable[int]) -> list[int]:
    """Those of `pids` that still run (a zombie does not)."""
    return [pid for pid in pids if (fields := _stat(pid)) and fields[0] != 'Z']


def zombies(pids: Iterable[int]) -> list[int]:
    """Children of `pids` that have ended and were not waited for."""
    parents = {str(pid) for pid in pids}
    stats = ((int(entry), _stat(int(entry))) for entry in os.listdir('/proc') if entry.isdigit())
    return [pid for pid, fields in stats if fields and fields[0] == 'Z' and fields[1] in parents]


def group(number: int) -> list[int]:
    """The processes of a process group that still run."""
    pids = [int(entry) for entry in os.listdir('/proc') if entry.isdigit()]
    return [pid for pid in alive(pids) if (fields := _stat(pid)) and int(fields[2]) == number]


def pss(pids: Iterable[int]) -> int:
    """Bytes of memory: the sum of the proportional set sizes."""
    total = 0
    for pid in pids:
        try:
            lines = pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith('Pss:'))
    return total


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor seconds that `pids` and their children that were waited for have used."""
    ticks = 0
    for pid in pids:
        if fields := _stat(pid):
            ticks += sum(int(fields[i]) for i in (11, 12, 13, 14))
    return ticks / os.sysconf('SC_CLK_TCK')


class Program:
    """A child process in a session of its own, its standard error (and output) in a file."""

    def __init__(self, arguments: list, log: pathlib.Path, environment: dict[str, str] | None = None,
                 output: int | None = None, before_exec: Callable[[], None] | None = None):
        """`output` is a descriptor, or subprocess.PIPE, for its standard output. What `before_exec` leaves open in the
        child stays open."""
        self.log = pathlib.Path(log)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, 'ab') as stderr:
            self._from = stderr.tell()
            self.process = subprocess.Popen([str(a) for a in arguments], stdin=subprocess.DEVNULL,
                                            stdout=stderr if output is None else output, stderr=stderr,
                                            env=environment, cwd=ROOT, start_new_session=True,
                                            preexec_fn=before_exec, close_fds=before_exec is None)
        self.name = pathlib.Path(str(arguments[0])).name

    @property
    def pid(self) -> int:
        return self.process.pid

    def text(self) -> str:
        """All that this start of the program has written so far."""
        with open(self.log, 'rb') as f:
            f.seek(self._from)
            return f.read().decode(errors='replace')

    def running(self) -> bool:
        return self.process.poll() is None

    def wait_for(self, condition: Callable[[], object], what: str, deadline: float = DEADLINE):
        """`until`, but also ends, with what the program wrote, as soon as the program does."""
        def ask():
            answer = condition()
            if not answer and not self.running():
                raise Ended(f'{self.name} ended with {self.process.returncode} before {what}:\n{self.tail()}')
            return answer
        try:
            return until(ask, what, deadline)
        except TooLate as e:
            raise TooLate(f'{e}; {self.name} wrote:\n{self.tail()}') from None

    def wait_line(self, part: str, deadline: float = DEADLINE) -> str:
        """The first line written that contains `part`."""
        def look():
            return next((line for line in self.text().splitlines() if part in line), None)
        return self.wait_for(look, f'line with {part!r}', deadline)

    def tail(self, lines: int = 30) -> str:
        return '\n'.join('    ' + line for line in self.text().splitlines()[-lines:])

    def wait(self, deadline: float = DEADLINE) -> int:
        """The exit code; of a program that a signal ended, minus the signal."""
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise TooLate(f'after {deadline:.0f} s: {self.name} still runs:\n{self.tail()}') from None

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def terminate(self, deadline: float = DEADLINE) -> int:
        """SIGTERM to the program alone, as an operator would; its exit code."""
        if self.running():
            self.signal(signal.SIGTERM)
        return self.wait(deadline)

    def kill(self) -> None:
        """SIGKILL to the whole tree at once, as a power cut would; harmless when it is gone."""
        for pid in tree(self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.process.stdout:
            self.process.stdout.close()
