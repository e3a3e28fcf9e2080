"""A small system of the distribution, booted in a container that shares this machine's network: where a package is
installed and its service runs as on an operator's machine.

    with Machine(folder, ('systemd', 'libcurl4')) as machine:
        machine.run('dpkg', '-i', '/package.deb')
        machine.run('systemctl', 'start', 'queen-s3')

debootstrap makes the system, once, from the mirror that apt has here, under build/systems; each machine is a copy of
it. It takes root, and a kernel that lets systemd-nspawn have its way: where either is missing the test is skipped and
says why. (Booted by systemd-nspawn and entered by nsenter, it wants no bus and no machined, here or there.)
"""
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import unittest

from processes import DEADLINE, ROOT, Ended, Program, TooLate, tree

SYSTEMS = ROOT / 'build/systems'
TOOLS = 'debootstrap', 'systemd-nspawn', 'nsenter', 'apt-get'


def mirror_of(codename: str) -> str:
    """Where apt has the main archive of this release from. It tells only of what it has lists of."""
    for update in False, True:
        if update:
            subprocess.run(['apt-get', 'update', '-q'], stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        told = subprocess.run(['apt-get', 'indextargets', '--format', '$(CODENAME) $(REPO_URI)',
                               'Created-By: Packages', 'Component: main'], capture_output=True, text=True, timeout=60)
        if found := re.search(rf'^{codename} (\S+)$', told.stdout, re.M):
            return found[1]
    raise unittest.SkipTest(f'apt names no mirror for {codename}')


def system(packages: tuple[str, ...]) -> pathlib.Path:
    """The system with these packages, made when it isn't there."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise unittest.SkipTest(f'{" and ".join(missing)} not installed')
    if os.geteuid() != 0:
        raise unittest.SkipTest('a system can only be made and booted by root')
    codename = platform.freedesktop_os_release()['VERSION_CODENAME']
    packages = tuple(sorted(packages))
    folder = SYSTEMS / f'{codename}-{hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]}'
    SYSTEMS.mkdir(parents=True, exist_ok=True)
    with open(SYSTEMS / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = folder.with_suffix('.part')
            shutil.rmtree(made, ignore_errors=True)
            done = subprocess.run(['debootstrap', '--variant=minbase', f'--include={",".join(packages)}',
                                   *(['--components=main,universe'] if shutil.which('ubuntu-distro-info') else []),
                                   codename, made, mirror_of(codename)], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
            if done.returncode != 0:
                raise unittest.SkipTest('debootstrap: ' + (done.stdout.strip().splitlines() or ['failed'])[-1])
            for rest in (made / 'var/cache/apt/archives').glob('*.deb'):
                rest.unlink()
            made.rename(folder)
    return folder


def own_groups(name: str) -> list[pathlib.Path]:
    """The control groups that systemd-nspawn would divide among itself and its machine, with `name` below them: two
    machines in one would take each other's services for their own."""
    groups = []
    for line in pathlib.Path('/proc/self/cgroup').read_text().splitlines():
        _, controllers, path = line.split(':', 2)
        for mount in {'': ('unified', ''), 'name=systemd': ('systemd',)}.get(controllers, ()):
            folder = pathlib.Path('/sys/fs/cgroup', mount, path.lstrip('/'))
            if (folder / 'cgroup.procs').exists():
                groups.append(folder / name)
                break
    return groups


def enter(groups: list[pathlib.Path]) -> None:
    """This process, and those that it starts."""
    for group in groups:
        group.mkdir()
        (group / 'cgroup.procs').write_text(f'{os.getpid()}\n')


def leave(groups: list[pathlib.Path]) -> None:
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass


class Machine:
    def __init__(self, folder: pathlib.Path, packages: tuple[str, ...], deadline: float = 2 * DEADLINE):
        """Boots it, and waits until all that it starts is up. `folder` gets root/ and machine.log."""
        self.root = pathlib.Path(folder) / 'root'
        self.leader = 0
        subprocess.run(['cp', '-a', '--reflink=auto', system(packages), self.root], check=True, timeout=300)
        (self.root / 'etc/machine-id').write_text('')
        self.groups = own_groups(f'machine-{os.getpid()}-{id(self)}')
        self.program = Program(['systemd-nspawn', '--quiet', '--register=no', '--keep-unit', '--link-journal=no',
                                '--resolv-conf=off', '--timezone=off', f'--directory={self.root}', '--boot'],
                               pathlib.Path(folder) / 'machine.log', before_exec=lambda: enter(self.groups))
        try:
            self.leader = self.program.wait_for(self._find_leader, 'process 1', deadline)
            self.program.wait_for(lambda: self.call('systemctl', 'is-system-running').stdout.strip() in
                                  ('running', 'degraded'), 'system that runs', deadline)
        except Ended as e:
            self.stop()
            raise unittest.SkipTest(f'systemd-nspawn boots nothing here: {str(e).splitlines()[-1].strip()}') from None
        except BaseException:
            self.stop()
            raise

    def _find_leader(self) -> int:
        for pid in tree(self.program.pid)[1:]:
            try:
                status = pathlib.Path(f'/proc/{pid}/status').read_text()
            except OSError:
                continue
            if re.search(r'^Name:\tsystemd$', status, re.M) and re.search(r'^NSpid:\t\d+\t1$', status, re.M):
                return pid
        return 0

    def call(self, *arguments: object, deadline: float = DEADLINE) -> subprocess.CompletedProcess:
        """A command in there, as root; its output with what it said of errors."""
        return subprocess.run(['nsenter', '--target', str(self.leader), '--all', 'env', '-i', 'LC_ALL=C', 'HOME=/root',
                               'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
                               'DEBIAN_FRONTEND=noninteractive', 'SYSTEMD_PAGER=', *map(str, arguments)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=deadline)

    def run(self, *arguments: object, deadline: float = DEADLINE) -> str:
        """The same, of a command that has to end well."""
        done = self.call(*arguments, deadline=deadline)
        if done.returncode != 0:
            raise AssertionError(f'{" ".join(map(str, arguments))}: {done.returncode}\n{done.stdout}')
        return done.stdout

    def service(self, unit: str, *names: str) -> list[str]:
        """Properties of a unit, as systemctl shows them."""
        told = dict(line.split('=', 1) for line in
                    self.run('systemctl', 'show', '-p', ','.join(names), unit).splitlines())
        return [told[name] for name in names]

    def journal(self, unit: str) -> str:
        return self.run('journalctl', '--no-pager', '-o', 'cat', '-u', unit)

    def stop(self) -> None:
        """Shut down in order, as far as a minute allows."""
        if self.leader:
            try:
                self.program.terminate(DEADLINE)
            except TooLate:
                pass
        self.program.kill()
        leave(self.groups)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
