"""The manual says what the program does, and all of it: commands, options, exit codes, settings, metrics and signals
are taken from the rendered pages and from the program itself (what it prints, what it answers, which signals its
process holds, what its sources look for), and have to be the same both ways. And the pages are well made."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import unittest

import kafka
import mirror
from manual import FOLDER, Page, files, need, words
from processes import BUILD, ROOT, free_port
from sink import command, file_lake

# Options that stand for commands: main() knows them, no table has them.
FOR_COMMANDS = {'-h', '--help', '--version'}
# Names in quotes that begin as settings do, and are none.
NO_SETTINGS = {'QUEEN_S3_'}
# What mandoc says of style that is none of ours: .Os carries the program's version, and pages lie in no man path yet.
ACCEPTED = re.compile(r'STYLE: (operating system explicitly specified|referenced manual not found)|outdated mandoc.db')
OTHERS = {('systemd.exec', '5'), ('sd_notify', '3')}
# Commands that run until they are told to stop: `run` has a test of its own.
LASTING = {'run', 'connect'}
NOTHING_THERE = {'QUEEN_S3_ENDPOINT': 'file:///nowhere', 'QUEEN_S3_BUCKET': 'lake'}


def out(environment: dict[str, str], *arguments) -> str:
    answer = command(environment, *arguments)
    if answer.returncode != 0:
        raise AssertionError(f'{arguments}: {answer.stderr.decode()}')
    return answer.stdout.decode()


def commands() -> list[str]:
    return re.findall(r'^  (\w+)  ', out({}, 'help'), re.M)


def help_entries(name: str, heading: str) -> list[str]:
    """What stands at the left under a heading of `help NAME`."""
    found = re.search(rf'^{heading}:\n(.*?)(?:\n\n|\Z)', out({}, 'help', name), re.M | re.S)
    return re.findall(r'^  (\S+)', found[1], re.M) if found else []


def sources(*folders: str) -> dict[pathlib.Path, str]:
    return {path: path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob('*.c'))}


def page_of(name: str) -> Page:
    """A command's own page, or the one of the program."""
    return Page(f'queen-s3-{name}', 1) if (FOLDER / f'queen-s3-{name}.1').exists() else Page('queen-s3', 8)


class PageTest(unittest.TestCase):
    def test_lint(self):
        for path in files():
            said = subprocess.run([need('mandoc'), '-T', 'lint', '-W', 'style', path], capture_output=True,
                                  text=True).stdout
            self.assertEqual([line for line in said.splitlines() if not ACCEPTED.search(line)], [])

    def test_references(self):
        """Every page that is referred to is there, and queen-s3(8) refers to all of them."""
        known = {tuple(path.name.rsplit('.', 1)) for path in files()}
        self.assertIn(('queen-s3', '8'), known)
        for path in files():
            named = re.findall(r'^\.(?:.* )?Xr (\S+) (\d)', path.read_text(), re.M)
            self.assertEqual(set(named) - known - OTHERS, set(), path)
        main = Page('queen-s3', 8).text('SEE ALSO')
        self.assertEqual({f'{n}({s})' for n, s in known} - {'queen-s3(8)'} - set(re.findall(r'\S+\(\d\)', main)), set())

    def test_installed(self):
        stage = pathlib.Path(self.enterContext(mirror.tempfile.TemporaryDirectory(dir=BUILD)))
        make = ['make', '-s', '-C', ROOT, f'DESTDIR={stage}', 'PREFIX=/usr']
        environment = {k: v for k, v in os.environ.items() if not k.startswith('MAKE') and k != 'MFLAGS'}
        subprocess.run([*make, 'install'], check=True, capture_output=True, env=environment)
        found = {str(p.relative_to(stage / 'usr')) for p in stage.rglob('*') if p.is_file()}
        self.assertEqual(found, {'bin/queen-s3', 'share/bash-completion/completions/queen-s3',
                                 'share/zsh/site-functions/_queen-s3',
                                 'lib/picomq/connectors/libpicomq_connector_s3_sink.so',
                                 *(f'share/man/man{p.suffix[1:]}/{p.name}' for p in files())})
        subprocess.run([*make, 'uninstall'], check=True, capture_output=True, env=environment)
        self.assertEqual([p for p in stage.rglob('*') if p.is_file()], [])


class CommandsTest(unittest.TestCase):
    def test_commands(self):
        listed = [tag.split()[0] for tag in Page('queen-s3', 8).tags('Commands') if not tag.startswith('-')]
        self.assertEqual(listed, commands())
        pages = {p.stem.removeprefix('queen-s3-') for p in FOLDER.glob('queen-s3-*.1')}
        self.assertEqual(pages - set(commands()), set(), 'pages of no command')
        for name in listed:
            self.assertEqual(command({}, 'help', name).returncode, 0)

    def test_options(self):
        documented = set()
        for name in commands():
            page = page_of(name)
            heading = 'Commands' if page.path.suffix == '.8' else 'DESCRIPTION'
            options = [tag.split()[0] for tag in page.tags(heading) if tag.startswith('-')]
            self.assertEqual(options, help_entries(name, 'Options'), name)
            documented |= set(options)
            for option in options:
                said = command(NOTHING_THERE, name, option, '--unknown-option').stderr.decode()
                self.assertNotIn(f'unknown option {option}', said)
                if heading == 'DESCRIPTION':
                    self.assertIn(option, page.text('SYNOPSIS'))
            said = command(NOTHING_THERE, name, '--unknown-option').stderr.decode()
            self.assertIn('unknown option --unknown-option', said)
        literals = {literal for text in sources('supervisor').values()
                    for literal in re.findall(r'"(--?[a-z][a-z-]*)"', text)}
        self.assertEqual(literals - FOR_COMMANDS, documented)

    def test_texts(self):
        """What `help` says of a command stands on its page too, word by word."""
        for name in commands():
            page = words(page_of(name).text()).lower()
            usage, summary, *rest = out({}, 'help', name).split('\n\n')
            self.assertIn(words(summary).lower(), page)
            for line in '\n'.join(rest).splitlines() if page_of(name).path.suffix != '.8' else []:
                if not re.fullmatch(r'(Options|Exit codes|Examples):', line):
                    self.assertIn(words(line).lower(), page, name)


class SettingsTest(unittest.TestCase):
    def test_settings(self):
        """Against what the sources have in quotes, and against what the program takes from a file."""
        listed = Page('queen-s3.conf', 5).tags('DESCRIPTION')
        named = {literal for text in sources('common', 'supervisor', 'worker').values()
                 for literal in re.findall(r'"(QUEEN_[A-Z0-9_]+|RUST_LOG)"', text)} - NO_SETTINGS
        secrets = set(re.findall(r'QUEEN_[A-Z_]+', Page('queen-s3', 8).text('ENVIRONMENT')))
        self.assertEqual(set(listed), named - secrets)
        self.assertEqual(len(listed), len(set(listed)))
        folder = self.enterContext(mirror.tempfile.TemporaryDirectory(dir=BUILD))
        for name in [*listed, 'QUEEN_S3_NOTHING']:
            path = pathlib.Path(folder, name)
            path.write_text(f'{name}=\n')
            said = command(NOTHING_THERE, 'ddl', 'duckdb', 'orders', '-f', path)
            self.assertEqual(said.returncode, 2 if name == 'QUEEN_S3_NOTHING' else 0, f'{name}: {said.stderr}')

    def test_environment(self):
        """Variables that are no settings, and are read all the same, are named on some page."""
        pages = ' '.join(Page(*path.name.rsplit('.', 1)).text() for path in files())
        for path, text in sources('common', 'supervisor').items():
            for name in re.findall(r'getenv\("(\w+)"\)', text):
                self.assertTrue(re.search(rf'\b{name}\b', pages), f'{path}: {name}')

    def test_defaults(self):
        """Those of which an operator thinks first are there to be read."""
        page = Page('queen-s3.conf', 5).text('DESCRIPTION')
        told = dict(re.findall(r'(QUEEN_S3_[A-Z_]+) (?:(?!QUEEN_S3_[A-Z_]+ [A-Z]).)*? Default: (\S+?)\.(?= |$)', page))
        for name, value in {'QUEEN_S3_FORMAT': 'jsonl', 'QUEEN_S3_TARGET_MB': '128', 'QUEEN_S3_MEMORY_MB': '1024',
                            'QUEEN_S3_LISTEN': '127.0.0.1:9333', 'QUEEN_S3_MAX_WINDOW_MS': '300000'}.items():
            self.assertEqual(told.get(name), value)


class PoolTest(mirror.MirrorTest):
    def running(self, **environment):
        broker = self.broker()
        broker.push(mirror.records(20, partitions=2))
        sink = self.sink(broker, **environment)
        sink.wait_records(20)
        return broker, sink

    def test_metrics(self):
        """Against a scrape: names, types and labels."""
        log = kafka.Mock()
        self.addCleanup(log.stop)
        kafka.define(self.folder / 'connectors/clicks.toml', 'clicks', 'clicks', self.folder)
        _, sink = self.running(QUEEN_S3_CONNECTORS=str(self.folder / 'connectors'),
                               PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS=log.servers)
        text = sink.get('/metrics').text
        types = dict(re.findall(r'^# TYPE (\S+) (\S+)$', text, re.M))
        page = Page('queen-s3-metrics', 7)
        listed = re.findall(r'((?:queen_s3|picomq_connectors?)_\w+) '
                            r'\((gauge|counter|histogram)(?: by (\w+)(?: and (\w+))?)?\)', page.text('/metrics'))
        self.assertEqual({name: kind for name, kind, *_ in listed}, types)
        self.assertEqual([name for name, *_ in listed],
                         [tag for tag in page.tags('/metrics') if re.match('queen_|picomq_', tag)])
        has: dict[str, set] = {}
        for (name, labels), _ in sink.metrics().items():
            family = re.sub('_(bucket|sum|count)$', '', name) if name not in types else name
            has.setdefault(family, set()).update(label for label, _ in labels if label != 'le')
        self.assertEqual(has, {name: {label for label in labels if label} for name, _, *labels in listed})
        for part in page.tags('What to alert on'):
            self.assertTrue(part in types or part.startswith('/'), part)

    def test_signals(self):
        """Against what the supervisor's process holds back to read in its loop, and ignores."""
        _, sink = self.running()
        status = pathlib.Path(f'/proc/{sink.pid}/status').read_text()
        held = {name: int(mask, 16) for name, mask in re.findall(r'^(Sig(?:Blk|Ign|Cgt)):\s*(\w+)$', status, re.M)}
        # A shell has its jobs in the background ignore the keyboard's signals: the sink then has it from this process.
        held['SigIgn'] &= ~sum(1 << (s - 1) for s in signal.Signals
                               if s != signal.SIGPIPE and signal.getsignal(s) == signal.SIG_IGN)
        if BUILD.name in ('asan', 'tsan'):  # which catches these itself
            held['SigCgt'] &= ~sum(1 << (s - 1) for s in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE))
        taken = {s.name for s in signal.Signals if any(mask >> (s - 1) & 1 for mask in held.values())}
        listed = [name for tag in Page('queen-s3', 8).tags('SIGNALS') for name in re.findall(r'SIG\w+', tag)]
        self.assertEqual(set(listed), taken - {'SIGCHLD'})
        own = 3 << 31  # 32 and 33 are the C library's: nobody can set them, and they stay as a parent left them
        self.assertEqual(held['SigIgn'] & ~own, 1 << (signal.SIGPIPE - 1))

    def test_lake(self):
        """Every name in a manifest and in a record is explained."""
        self.running()
        page = Page('queen-s3-lake', 7).text()
        manifest = self.manifests()[0]
        for name in [*manifest, *manifest['objects'][0], 'partition', 'offset', 'transactionId', 'ts', 'payload',
                     'firstOffset', 'lastOffset']:
            self.assertTrue(re.search(rf'\b{name}\b', page), name)
        example = re.search(r'\{"sink".*?"committedAt":"[^"]*"\}', page)[0]
        self.assertEqual(list(json.loads(example)), list(manifest))


class ExitCodesTest(mirror.MirrorTest):
    """Every exit code that is documented comes about, and every one that comes about is documented."""

    def codes(self, name: str) -> set[int]:
        page = page_of(name)
        codes = [int(tag) for tag in page.tags('EXIT STATUS')] if page.path.suffix != '.8' or name == 'run' else []
        told = [int(entry) for entry in help_entries(name, 'Exit codes')]
        self.assertEqual(codes or told, told, name)
        return set(told)

    def lake(self) -> dict[str, str]:
        broker = self.broker()
        broker.push(mirror.records(20, partitions=2))
        sink = self.sink(broker)
        sink.wait_records(20)
        self.assertEqual(sink.terminate(), 0)
        return {'QUEEN_URL': broker.url, **file_lake(self.folder, self.bucket)}

    def damage(self, lake: dict[str, str]) -> dict[str, str]:
        """The same lake, its object gone."""
        copy = {**lake, 'QUEEN_S3_BUCKET': 'damaged'}
        shutil.copytree(self.folder / self.bucket, self.folder / 'damaged')
        next((self.folder / 'damaged').rglob('w-*.jsonl.zst')).unlink()
        return copy

    def pool(self, late: int, there: bool = True) -> dict[str, str]:
        """What names a control socket. A stand-in answers there: a real pool is late after half a minute."""
        path = self.enterContext(tempfile.TemporaryDirectory(prefix='qs3-')) + '/s'
        text = json.dumps({**dict.fromkeys(('sink', 'instance', 'version', 'phase', 'at'), ''), 'late': late,
                           'workers': [], 'queues': []})

        class Answer(socketserver.StreamRequestHandler):
            def handle(self):
                self.rfile.readline()
                self.wfile.write(text.encode() + b'\n')
        if there:
            server = self.enterContext(socketserver.UnixStreamServer(path, Answer))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
        return {'QUEEN_S3_CONTROL': path}

    def test_commands(self):
        good = self.lake()
        away = {**good, 'QUEEN_S3_BUCKET': 'nothing'}
        sound = {**good, 'QUEEN_S3_QUEUES': 'orders'}
        damaged = self.damage(good)
        forgotten = {**good, 'QUEEN_URL': self.broker().url}
        ways = {
            'check': [(sound,), (good,), ({**sound, 'QUEEN_URL': f'http://127.0.0.1:{free_port()}'},)],
            'status': [(self.pool(late=0),), (self.pool(late=1),), (good, 'x'), (self.pool(0, there=False),)],
            'windows': [(good, 'orders'), (good, 'other'), (good,), (away, 'orders')],
            'cat': [(good, 'orders'), (damaged, 'orders'), (good,), (away, 'orders')],
            'verify': [(good, 'orders'), (damaged, 'orders'), (good,), (away, 'orders')],
            'recover': [(forgotten, 'orders'), (good, 'orders'), (good,), (away, 'orders')],
            'ddl': [(good, 'duckdb', 'orders'), (good, 'oracle', 'orders')],
            'policy': [({**good, 'QUEEN_S3_ENDPOINT': 'https://s3.example.com', 'QUEEN_S3_REGION': 'r'},), (good,)],
            'version': [({},), ({}, 'x')],
            'help': [({},), ({}, 'nothing')],
        }
        others = set(commands()) - LASTING
        self.assertEqual(others - set(ways), set(), 'how do the exit codes of this command come about?')
        for name in others:
            met = {command(environment, name, *arguments).returncode for environment, *arguments in ways[name]}
            self.assertEqual(met, self.codes(name), name)

    def test_run(self):
        broker = self.broker()
        met = {}
        with socket.create_server(('127.0.0.1', 0)) as taken:
            port = taken.getsockname()[1]
            met['taken'] = self.sink(broker, 'taken', QUEEN_S3_LISTEN=f'127.0.0.1:{port}').wait()
        met['wrong'] = self.sink(broker, 'wrong', QUEEN_S3_TARGET_MB='0').wait()
        met['away'] = self.sink(broker, 'away', QUEEN_URL=f'http://127.0.0.1:{free_port()}').wait()
        sink = self.sink(broker, 'well')
        sink.wait_health()
        met['stopped'] = sink.terminate()
        for number in signal.SIGINT, signal.SIGTERM:
            sink = self.sink(broker, number.name)
            # Before that the child is the one that probes, and a signal has nothing to drain.
            sink.wait_metric('queen_s3_worker_up', 1)
            for pid in sink.workers():
                os.kill(pid, signal.SIGSTOP)  # so that the drain doesn't end
            sink.signal(number)
            sink.wait_line('stopping')
            sink.signal_again(number)
            met[number.name] = sink.wait()
        self.assertEqual(set(met.values()), self.codes('run'), met)


if __name__ == '__main__':
    unittest.main()
