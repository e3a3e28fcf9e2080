"""Python packages of others that tests hold the sink's output against, installed under build/venv at their first use.

A test that wants one calls module(); where it can't be had (no network, no venv module) it is skipped and says why.
"""
import fcntl
import importlib
import pathlib
import subprocess
import sys
import types
import unittest

from processes import ROOT

VENV = ROOT / 'build/venv'
VERSIONS = {'pyarrow': '22.0.0'}


def run(*arguments: object) -> None:
    answer = subprocess.run([str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=600)
    if answer.returncode != 0:
        last = (answer.stdout.strip().splitlines() or ['no output'])[-1]
        raise unittest.SkipTest(f'{" ".join(str(a) for a in arguments[-3:])} in {VENV}: {last}')


def folder() -> pathlib.Path:
    return VENV / f'lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages'


def install(name: str) -> None:
    if (folder() / f'{name}-{VERSIONS[name]}.dist-info').exists():
        return
    python = VENV / 'bin/python'
    if not folder().exists() or not python.exists():
        run(sys.executable, '-m', 'venv', '--clear', VENV)
    run(python, '-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check', '--retries', '1',
        f'{name}=={VERSIONS[name]}')


def module(name: str, submodule: str = '') -> types.ModuleType:
    VENV.parent.mkdir(exist_ok=True)
    with open(VENV.parent / 'venv.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install(name)
    if str(folder()) not in sys.path:
        sys.path.append(str(folder()))
    return importlib.import_module(f'{name}.{submodule}' if submodule else name)
