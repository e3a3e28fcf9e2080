"""Prometheus' own checker: the one on the path, else the distribution's, taken out of its package into build/tools at
its first use (installing that package would start a server)."""
import fcntl
import os
import pathlib
import shutil
import subprocess
import unittest

from processes import ROOT

TOOLS = ROOT / 'build/tools'


def fetch(folder: pathlib.Path) -> str:
    """Nothing, or why it can't be had."""
    for command in (['apt-get', 'download', 'prometheus'], ['apt-get', 'update', '-q'],
                    ['apt-get', 'download', 'prometheus']):
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  timeout=300)
        except OSError as e:
            return str(e)
        if packages := list(folder.glob('prometheus_*.deb')):
            subprocess.run(['dpkg-deb', '--extract', packages[0], folder], check=True, timeout=300)
            return ''
    return (done.stderr.strip().splitlines() or ['apt-get download prometheus: no package'])[-1]


def program() -> str:
    if found := shutil.which('promtool'):
        return found
    TOOLS.mkdir(parents=True, exist_ok=True)
    with open(TOOLS / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (TOOLS / 'promtool').exists():
            folder = TOOLS / 'prometheus'
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if reason := fetch(folder):
                raise unittest.SkipTest(f'promtool: {reason}')
            os.replace(folder / 'usr/bin/promtool', TOOLS / 'promtool')
            shutil.rmtree(folder)
    return str(TOOLS / 'promtool')


def run(*arguments: object, folder: pathlib.Path) -> tuple[int, str]:
    """Exit code and all that it printed."""
    done = subprocess.run([program(), *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout
