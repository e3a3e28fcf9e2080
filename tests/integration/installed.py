"""Python packages of others that tests hold the sink's output against, installed under build/venv at their first use.

A test that wants one calls module(), or python() for a process of its own with several of them; where they can't be had
(no network, no venv module) it is skipped and says why.
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
VERSIONS = {'pyarrow': '22.0.0', 'duckdb': '2.0.1', 'polars': '2.1.0', 'pandas': '3.1.1', 'zstandard': '0.25.0',
            'chdb': '4.4.0', 'pyspark': '4.1.4', 'kubernetes-validate': '1.37.0', 'PyYAML': '6.0.4',
            'dockerfile': '3.4.0'}


def run(*arguments: object) -> None:
    answer = subprocess.run([str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=900)
    if answer.returncode != 0:
        last = (answer.stdout.strip().splitlines() or ['no output'])[-1]
        raise unittest.SkipTest(f'{" ".join(str(a) for a in arguments[-3:])} in {VENV}: {last}')


def folder() -> pathlib.Path:
    return VENV / f'lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages'


def record(name: str) -> str:
    """The folder that says that this version is there; its name is spelled as pip does."""
    return f'{name.lower().replace("-", "_")}-{VERSIONS[name]}.dist-info'


def install(names: tuple[str, ...]) -> None:
    """Those of `names` that are missing, in one go; one process at a time."""
    VENV.parent.mkdir(exist_ok=True)
    with open(VENV.parent / 'venv.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [name for name in names if not (folder() / record(name)).exists()]
        if not missing:
            return
        if not folder().exists() or not (VENV / 'bin/python').exists():
            run(sys.executable, '-m', 'venv', '--clear', VENV)
        run(VENV / 'bin/python', '-m', 'pip', 'install', '--quiet', '--no-input', '--use-pep517',
            '--disable-pip-version-check', '--retries', '1', *(f'{name}=={VERSIONS[name]}' for name in missing))


def python(*names: str) -> pathlib.Path:
    """An interpreter that has these packages."""
    install(names)
    return VENV / 'bin/python'


def module(name: str, submodule: str = '') -> types.ModuleType:
    install((name,))
    if str(folder()) not in sys.path:
        sys.path.append(str(folder()))
    return importlib.import_module(f'{name}.{submodule}' if submodule else name)
