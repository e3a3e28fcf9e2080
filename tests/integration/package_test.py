"""The Debian package: built, judged by lintian, and in a fresh system of the distribution installed, run as a service
by systemd, updated and purged."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import mirror
from gateway import Gateway
from machine import Machine
from processes import BUILD, ROOT, free_port, until

TOKEN = 'only-the-service-may-see-this'
TIME_LIMIT = 1200


def build() -> pathlib.Path:
    """The package, as `make deb` builds it."""
    if not shutil.which('dh'):
        raise unittest.SkipTest('debhelper is not installed')
    with open(ROOT / 'build/deb.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL')}
        done = subprocess.run(['make', 'deb'], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    if done.returncode != 0:
        raise AssertionError('make deb:\n' + '\n'.join(done.stdout.splitlines()[-30:]))
    return next((ROOT / 'build').glob('queen-s3_*.deb'))


def field(package: pathlib.Path, name: str) -> str:
    return subprocess.run(['dpkg-deb', '--field', package, name], capture_output=True, text=True, check=True,
                          timeout=60).stdout.strip()


class PackageTest(mirror.MirrorTest):
    @classmethod
    def setUpClass(cls):
        if BUILD != ROOT / 'build':
            raise unittest.SkipTest('the package is built without sanitizers')
        cls.package = build()

    def test_lintian(self):
        if not shutil.which('lintian'):
            self.skipTest('lintian is not installed')
        changes = next((ROOT / 'build/deb').glob('queen-s3_*.changes'))
        done = subprocess.run(['lintian', '--allow-root', '--profile', 'debian', '--display-info', '--pedantic',
                               '--fail-on', 'error,warning,info,pedantic', changes],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (0, ''), done.stderr)

    # One after another in one machine, which takes longer to boot than all of it.

    def test_life_of_an_installation(self):
        libraries = [entry.split()[0] for entry in field(self.package, 'Depends').split(', ')]
        self.assertIn('libc6', libraries)
        with Machine(self.folder, ('systemd', *libraries)) as machine:
            self.machine = machine
            before = self.files()
            self.install()
            self.configure()
            self.start()
            self.reload()
            self.lose_a_worker()
            self.hang()
            self.update()
            self.move_to_disk()
            self.stop()
            self.purge(before)

    def files(self) -> set[str]:
        """What a package could leave behind."""
        told = self.machine.run('find', '/etc', '/usr', '/lib/systemd', '/var/lib/systemd', '/run/credentials', '-xdev',
                                '!', '-type', 'd')
        return {line for line in told.splitlines() if 'queen' in line}

    def install(self) -> None:
        shutil.copy(self.package, self.machine.root / 'queen-s3.deb')
        self.machine.run('dpkg', '-i', '/queen-s3.deb')
        version = field(self.package, 'Version')
        self.assertEqual(self.machine.run('queen-s3', 'version'), f'queen-s3 {version}\n')
        self.assertEqual(self.machine.call('systemctl', 'is-enabled', 'queen-s3').stdout, 'disabled\n')
        self.assertEqual(self.machine.service('queen-s3', 'ActiveState', 'LoadState'), ['inactive', 'loaded'])
        modes = self.machine.run('stat', '-c', '%a %U %n', '/etc/queen-s3/queen-s3.conf', '/etc/queen-s3/credentials')
        self.assertEqual(modes, '644 root /etc/queen-s3/queen-s3.conf\n700 root /etc/queen-s3/credentials\n')
        # Not configured yet: one try, one line, and no other try.
        self.assertNotEqual(self.machine.call('systemctl', 'start', 'queen-s3').returncode, 0)
        self.assertEqual(self.machine.service('queen-s3', 'ActiveState', 'ExecMainStatus', 'NRestarts'),
                         ['failed', '2', '0'])
        self.assertIn('QUEEN_S3_', self.machine.journal('queen-s3'))

    def configure(self) -> None:
        """As its comments say: lines uncommented, secrets into files of root's."""
        self.s3 = self.enterContext(Gateway(self.folder))
        self.bucket = self.s3.make_bucket('lake').relative_to(self.folder.resolve()).as_posix()
        self.queen = self.broker('--token', TOKEN, queues=())
        self.queen.token = TOKEN
        self.queen.push(mirror.records(1000))
        store = self.s3.sink_environment('lake')
        self.port = free_port()
        self.configuration = self.machine.root / 'etc/queen-s3/queen-s3.conf'
        for secret, name in ((store.pop('QUEEN_S3_SECRET_KEY'), 'secret-key'), (TOKEN, 'token')):
            path = self.machine.root / 'etc/queen-s3/credentials' / name
            path.touch(0o600)
            path.write_text(secret + '\n')
        self.write(QUEEN_URL=self.queen.url, QUEEN_TOKEN_FILE=None, QUEEN_S3_QUEUES=self.queue,
                   QUEEN_S3_SECRET_KEY_FILE=None, QUEEN_S3_START='earliest', QUEEN_S3_LISTEN=f'127.0.0.1:{self.port}',
                   QUEEN_S3_WORKERS='1', **mirror.QUICK, **store)

    def write(self, **settings: str | None) -> None:
        """The first line of each name, commented out or not, takes the value (None: what it has); a name that has no
        line gets one."""
        text = self.configuration.read_text()
        for name, value in settings.items():
            line = re.search(rf'^#?({name}=.*)$', text, re.M)
            new = line[1] if value is None else f'{name}={value}'
            text = text[:line.start()] + new + text[line.end():] if line else f'{text}{new}\n'
        self.configuration.write_text(text)

    def wait_lake(self, count: int) -> None:
        """All of the broker's log is in the bucket, and nothing else."""
        def whole() -> bool:
            manifests = self.manifests()
            return sum(m['records'] for m in manifests) >= count and \
                self.committed(self.queen).get('k') == len(manifests)
        try:
            until(whole, f'{count} records in the lake')
        except AssertionError as e:
            self.fail(f'{e}\n{self.machine.journal("queen-s3")[-4000:]}')
        self.hold(self.queen)

    def main_pid(self) -> str:
        pid, = self.machine.service('queen-s3', 'MainPID')
        self.assertNotEqual(pid, '0')
        return pid

    def start(self) -> None:
        """An operator's look at it first; then systemctl comes back when the pool has told that it is ready."""
        self.machine.run('queen-s3', 'check', '-f', '/etc/queen-s3/queen-s3.conf')
        verified = self.machine.run('systemd-analyze', 'verify', '--man=no', 'queen-s3.service')
        self.assertNotIn('queen-s3', verified)
        started = self.machine.call('systemctl', 'start', 'queen-s3')
        self.assertEqual(started.returncode, 0, self.machine.journal('queen-s3'))
        self.assertEqual(self.machine.service('queen-s3', 'ActiveState', 'SubState', 'Type'),
                         ['active', 'running', 'notify'], self.machine.journal('queen-s3'))
        self.wait_lake(1000)
        owner = self.machine.run('stat', '-c', '%u', f'/proc/{self.main_pid()}')
        self.assertGreater(int(owner), 60000, 'not a user of its own')
        status = self.machine.run('queen-s3', 'status', '-f', '/etc/queen-s3/queen-s3.conf')
        self.assertRegex(status, r'\borders\b')
        journal = self.machine.journal('queen-s3')
        self.assertNotIn(TOKEN, journal)
        self.assertNotIn(self.s3.secret_key, journal)

    def workers(self) -> list[str]:
        """Their process ids, as the machine knows them."""
        pid = self.main_pid()
        return self.machine.run('cat', f'/proc/{pid}/task/{pid}/children').split()

    def reload(self) -> None:
        pid, workers = self.main_pid(), self.workers()
        self.write(QUEEN_S3_COMPRESSION='gzip')
        self.machine.run('systemctl', 'reload', 'queen-s3')
        until(lambda: self.workers() and not set(self.workers()) & set(workers) and
              self.machine.service('queen-s3', 'ActiveState') == ['active'], 'end of the reload')
        self.queen.push(mirror.records(500, first=1000))
        self.wait_lake(1500)
        self.assertEqual(self.manifests()[-1]['compression'], 'gzip')
        self.assertEqual(self.main_pid(), pid)

    def lose_a_worker(self) -> None:
        """The pool starts it again; for systemd nothing has happened."""
        pid = self.main_pid()
        self.machine.run('sh', '-c', f'kill -KILL {self.workers()[0]}')
        self.queen.push(mirror.records(500, first=1500))
        self.wait_lake(2000)
        self.assertEqual(self.main_pid(), pid)

    def hang(self) -> None:
        """A supervisor that stands still misses the watchdog, which ends it and its workers; the next one goes on."""
        folder = self.machine.root / 'etc/systemd/system/queen-s3.service.d'
        folder.mkdir()
        (folder / 'watchdog.conf').write_text('[Service]\nWatchdogSec=3\nTimeoutAbortSec=1\nRestartSec=0\n')
        self.machine.run('systemctl', 'daemon-reload')
        self.machine.run('systemctl', 'restart', 'queen-s3')
        first, = self.machine.service('queen-s3', 'WatchdogTimestampMonotonic')
        until(lambda: self.machine.service('queen-s3', 'WatchdogTimestampMonotonic') != [first], 'sign of life')
        pid, workers = self.main_pid(), self.workers()
        self.machine.run('sh', '-c', f'kill -STOP {pid}')
        self.queen.push(mirror.records(500, first=2000))
        until(lambda: self.machine.service('queen-s3', 'NRestarts', 'ActiveState') == ['1', 'active'], 'restart')
        self.assertNotEqual(self.main_pid(), pid)
        self.assertFalse(set(self.workers()) & set(workers))
        self.wait_lake(2500)
        shutil.rmtree(folder)
        self.machine.run('systemctl', 'daemon-reload')

    def update(self) -> None:
        """To a package with another configuration file: what was edited stays, and the service runs the new program."""
        folder = self.folder / 'next'
        subprocess.run(['dpkg-deb', '--raw-extract', self.package, folder], check=True, timeout=60)
        control = (folder / 'DEBIAN/control').read_text()
        (folder / 'DEBIAN/control').write_text(re.sub(r'^Version: .*$', r'\g<0>+next', control, flags=re.M))
        with open(folder / 'etc/queen-s3/queen-s3.conf', 'a') as f:
            f.write('# A line that the last version did not have.\n')
        subprocess.run(['dpkg-deb', '--root-owner-group', '--build', folder, self.machine.root / 'next.deb'],
                       check=True, capture_output=True, timeout=60)
        edited, pid = self.configuration.read_text(), self.main_pid()
        self.machine.run('dpkg', '--force-confold', '-i', '/next.deb', deadline=120)
        self.assertEqual(self.configuration.read_text(), edited)
        self.assertIn('did not have', self.configuration.with_name('queen-s3.conf.dpkg-dist').read_text())
        self.assertNotEqual(self.main_pid(), pid)
        self.queen.push(mirror.records(500, first=2500))
        self.wait_lake(3000)

    def move_to_disk(self) -> None:
        """Another sink, whose lake is in the folder that the unit has for it."""
        self.write(QUEEN_S3_ENDPOINT='file:///var/lib/queen-s3', QUEEN_S3_SINK='disk')
        self.machine.run('systemctl', 'restart', 'queen-s3')
        self.sink_name, self.bucket = 'disk', 'root/var/lib/private/queen-s3/lake'
        self.wait_lake(3000)

    def stop(self) -> None:
        self.queen.push(mirror.records(10, first=3000))
        self.machine.run('systemctl', 'stop', 'queen-s3')
        self.assertEqual(self.machine.service('queen-s3', 'ActiveState', 'Result', 'ExecMainStatus'),
                         ['inactive', 'success', '0'])
        self.assertEqual(self.queen.document(self.queue, 'lease', self.sink_name), None)

    def purge(self, before: set[str]) -> None:
        self.machine.run('systemctl', 'start', 'queen-s3')
        self.wait_lake(3010)
        self.machine.run('dpkg', '--remove', 'queen-s3')
        self.assertEqual(self.machine.call('systemctl', 'is-active', 'queen-s3').stdout, 'inactive\n')
        self.assertTrue((self.configuration.parent / 'credentials/secret-key').exists())
        self.machine.run('dpkg', '--purge', 'queen-s3')
        self.assertFalse(self.configuration.parent.exists())
        self.assertEqual(self.files() - before, set())
        self.hold(self.queen)


if __name__ == '__main__':
    unittest.main()
