#!/usr/bin/python3
"""The demonstration: real events into the development broker, from there through queen-s3 into a lake on this disk.

    make demo                                               this machine's package log, a partition a package
    make demo INPUT=events.ndjson PARTITION_BY=field        events of your own, one JSON object a line

Everything is left in build/demo: events.ndjson (what went in), lake/ (what came out), and the logs of both programs.
"""
import argparse
import collections
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/integration'))

import lake  # noqa: E402
from devbroker import DevBroker  # noqa: E402
from sink import Sink, file_lake  # noqa: E402

DEMO = ROOT / 'build/demo'
HOURS = 3


def package_log() -> Iterator[dict]:
    """The events of dpkg's log and its rotations, oldest first."""
    files = sorted(pathlib.Path('/var/log').glob('dpkg.log*'), key=lambda p: p.stat().st_mtime)
    for path in files:
        opened = gzip.open(path, 'rt', errors='replace') if path.suffix == '.gz' else open(path, errors='replace')
        with opened as lines:
            for line in lines:
                fields = line.split()
                if len(fields) < 5 or fields[2] not in ('status', 'install', 'upgrade', 'configure', 'trigproc',
                                                        'remove', 'purge'):
                    continue
                event = {'time': f'{fields[0]}T{fields[1]}', 'action': fields[2]}
                if fields[2] == 'status':
                    event['status'] = fields[3]
                name = fields[4] if fields[2] == 'status' else fields[3]
                event['package'], _, event['architecture'] = name.partition(':')
                event['version'] = fields[-1]
                yield event


def package_list() -> Iterator[dict]:
    """One event for each installed package."""
    form = '${Package}\t${Architecture}\t${Version}\t${Section}\t${Installed-Size}\n'
    listed = subprocess.run(['dpkg-query', '-W', '-f', form], capture_output=True, text=True, timeout=60)
    for line in listed.stdout.splitlines():
        package, architecture, version, section, size = line.split('\t')
        yield {'action': 'installed', 'package': package, 'architecture': architecture, 'version': version,
               'section': section, 'kilobytes': int(size or 0)}


def commit_log() -> Iterator[dict]:
    """One event for each file that a commit of this project touched."""
    listed = subprocess.run(['git', '-C', ROOT, 'log', '--reverse', '--name-status', '--format=%x00%H%x00%cI%x00%s'],
                            capture_output=True, text=True, timeout=60)
    commit = moment = subject = ''
    for line in listed.stdout.splitlines():
        if line.startswith('\0'):
            _, commit, moment, subject = line.split('\0')
        elif line:
            fields = line.split('\t')
            yield {'time': moment, 'action': fields[0], 'package': fields[-1].split('/')[0], 'path': fields[-1],
                   'commit': commit, 'subject': subject}


def events_of_this_machine() -> tuple[str, list[str]]:
    """Real events from the first source that has any: what it is, and the lines."""
    sources = (('the package log of this machine (/var/log/dpkg.log)', package_log),
               ('the packages installed on this machine (dpkg-query)', package_list),
               ("this project's commits (git log)", commit_log))
    for what, source in sources:
        try:
            lines = [json.dumps(event) for event in source()]
        except (OSError, subprocess.SubprocessError):
            continue
        if lines:
            return what, lines
    sys.exit('demo: no package log, package list or git history here: give INPUT=events.ndjson')


def say(text: str) -> None:
    print(text, flush=True)


def show(folder: pathlib.Path) -> None:
    files = sorted(p for p in folder.rglob('*') if p.is_file() and '.tmp' not in p.parts)
    for path in files[:20]:
        say(f'  {path.stat().st_size:>10}  {path.relative_to(folder)}')
    if len(files) > 20:
        say(f'  {"":>10}  and {len(files) - 20} more')


def main() -> None:
    parser = argparse.ArgumentParser(description='Mirrors real events into build/demo/lake and shows what landed.')
    parser.add_argument('--input', type=pathlib.Path, help='events, one JSON value a line')
    parser.add_argument('--partition-by', help='the field that names the partition')
    options = parser.parse_args()
    began = time.monotonic()
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir(parents=True)

    if options.input:
        if not options.input.is_file():
            sys.exit(f'demo: {options.input}: no such file')
        source, queue, field = str(options.input), 'events', options.partition_by
        lines = [line for line in options.input.read_text().split('\n') if line.strip()]
        if not lines:
            sys.exit(f'demo: {options.input}: no event in it')
    else:
        source, lines = events_of_this_machine()
        queue, field = 'packages', options.partition_by or 'package'
    (DEMO / 'events.ndjson').write_text(''.join(line + '\n' for line in lines))
    count = len(lines)
    say(f'in:   {count} events from {source}')

    # The log's clock: the events spread over the last three whole hours, so that these windows are complete at once.
    segment = 1 if count <= 50_000 else 100
    hour = 3600
    base = int(time.time() - 30) // hour * hour - HOURS * hour
    step = max(HOURS * hour * 1_000_000 // count, 1)
    arguments = ['--queue', queue, '--load', DEMO / 'events.ndjson', '--segment-records', segment,
                 '--base-time', lake.iso(base * 1_000_000), '--time-step-us', step]
    if field:
        arguments += ['--partition-by', field]
    with DevBroker(DEMO, *arguments, deadline=300) as broker:
        partitions = broker.partitions(queue)
        say(f'      loaded into the development broker at {broker.url}: queue {queue}, {len(partitions)} partitions')
        environment = {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': queue, 'QUEEN_S3_LOG_LEVEL': 'info',
                       **file_lake(DEMO)}
        with Sink(DEMO, environment) as sink:
            say(f'      queen-s3 runs (process {sink.pid}), writing to {DEMO.relative_to(ROOT)}/lake')
            sink.wait_records(count, deadline=300, queue=queue)
            processor = sink.cpu_seconds()
            code = sink.terminate()
        if code != 0:
            sys.exit(f'demo: queen-s3 ended with {code}:\n{sink.program.tail()}')
        committed = broker.document(lake.escape(queue), 'committed')
        log = broker.log(queue)

    folder = DEMO / 'lake'
    say(f'\nout:  what landed in {folder.relative_to(ROOT)}')
    show(folder)
    manifests = sorted((folder / 'queen/_queen' / lake.escape(queue) / 'windows').glob('*.json'))
    manifest = json.loads(manifests[0].read_text())
    say(f'\nthe manifest of window {manifest["k"]}')
    say('  ' + json.dumps(manifest, indent=2, ensure_ascii=False).replace('\n', '\n  '))
    first = manifest['objects'][0]['key']
    say('\nthe first records of its object')
    with open(folder / first, 'rb') as file:
        text = lake.decompress(file.read(), 'jsonl.zst').decode()
    for line in text.split('\n')[:3]:
        say('  ' + (line if len(line) <= 240 else line[:237] + '...'))

    report = lake.check(folder, queue, log=log, complete=True, committed=committed)
    kinds = collections.Counter(p.name.split('.', 1)[1] for p in folder.rglob('w-*') if p.is_file())
    size = sum(p.stat().st_size for p in folder.rglob('w-*') if p.is_file())
    objects = ', '.join(f'{n} {kind}' for kind, n in kinds.items())
    say(f'\nin {count} events, out {report.records} records in {report.windows} windows ({objects}; {size} bytes),'
        f' {processor:.2f} processor seconds')
    for fault in report.faults[:10]:
        say(f'FAULT {fault}')
    if report.faults or report.records != count:
        sys.exit('demo: what landed is not what went in')
    say('checked: each record of the log is there once, every object, hash, bound and order holds.'
        f' {time.monotonic() - began:.1f} s')


if __name__ == '__main__':
    try:
        main()
    except (AssertionError, OSError) as e:
        sys.exit(f'demo: {e}')
