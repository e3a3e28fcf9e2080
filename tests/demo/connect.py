#!/usr/bin/python3
"""The connector's demonstration: this machine's package log into a Kafka broker, from there through `queen-s3 connect`
into a lake on this disk.

    make demo-connect

The broker is Apache Kafka where Java and maven are there (its jars are fetched once), else one in memory. Everything is
left in build/demo-connect: events.ndjson (what went in), packages.toml (the definition), lake/ (what came out), and the
logs.
"""
import json
import pathlib
import re
import shutil
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tests/integration'), str(ROOT / 'tests/demo')]

import kafka  # noqa: E402
import lake  # noqa: E402
from run import events_of_this_machine, say, show  # noqa: E402
from sink import Sink  # noqa: E402

DEMO = ROOT / 'build/demo-connect'
TOPIC = 'packages'
PARTITIONS = 3
DEFINITION = f'''type = "sink"
key = "packages"
enabled = true
version = 0
name = "Packages to a folder"
path = "libpicomq_connector_s3_sink"

[[topics]]
topics = ["{TOPIC}"]
schema = "json"

[plugin_config]
endpoint = "file://{DEMO}"
bucket = "lake"
region = "here"
max_file_size = "64KiB"
max_file_age = "2s"
compression = "zstd"
'''


def records(lines: list[str]) -> list[kafka.Record]:
    """Spread by package name, as a producer's partitioner would."""
    now = int(time.time() * 1000)
    made = []
    for line in lines:
        key = str(json.loads(line).get('package', '')).encode()
        made.append(kafka.Record(TOPIC, sum(key) % PARTITIONS, line.encode(), key, now))
    return made


def files(partition: int) -> list[tuple[int, int, pathlib.Path]]:
    """(first offset, last offset, path) of the ranges that a listing shows, in order."""
    found = []
    for path in (DEMO / 'lake').rglob(f'{partition:05}-*'):
        if name := re.match(r'\d{5}-(\d{20})-(\d{20})\.', path.name):
            found.append((int(name[1]), int(name[2]), path))
    return sorted(found)


def check(partition: int, sent: list[kafka.Record]) -> int:
    """Ranges tile, and hold exactly what was sent: how many files."""
    following, payloads = 0, []
    for first, last, path in files(partition):
        if first != following:
            sys.exit(f'demo: {path} begins at {first} instead of {following}')
        following = last + 1
        text = lake.decompress(path.read_bytes(), 'jsonl.zst').decode()
        payloads += [json.loads(line)['payload'] for line in text.splitlines()]
    if payloads != [json.loads(record.value) for record in sent]:
        sys.exit(f'demo: partition {partition}: what landed is not what went in')
    return len(files(partition))


def main() -> None:
    began = time.monotonic()
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir(parents=True)
    source, lines = events_of_this_machine()
    (DEMO / 'events.ndjson').write_text(''.join(line + '\n' for line in lines))
    say(f'in:   {len(lines)} events from {source}')
    real = isinstance(kafka.jars(), pathlib.Path)
    broker = kafka.Broker(DEMO) if real else kafka.Mock()
    try:
        broker.create(TOPIC, PARTITIONS)
        made = records(lines)
        broker.produce(made)
        say(f'      produced into {"Apache Kafka " + kafka.VERSION if real else "a broker in memory"} at'
            f' {broker.servers}: topic {TOPIC}, {PARTITIONS} partitions')
        definition = DEMO / 'packages.toml'
        definition.write_text(DEFINITION)
        environment = {'PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS': broker.servers, 'QUEEN_S3_LOG_LEVEL': 'info'}
        with Sink(DEMO, environment, 'connect', definition) as sink:
            say(f'      queen-s3 connect {definition.relative_to(ROOT)} runs (process {sink.pid})')
            sink.wait_metric('picomq_connector_messages_processed_total', len(lines), deadline=300)
            code = sink.program.terminate()
    finally:
        broker.stop()
    if code != 0:
        sys.exit(f'demo: queen-s3 ended with {code}:\n{sink.program.tail()}')
    say('\nout:  what landed in build/demo-connect/lake')
    show(DEMO / 'lake')
    _, _, first = next(iter(files(0) or files(1) or files(2)))
    say('\nthe first records of the first object')
    for line in lake.decompress(first.read_bytes(), 'jsonl.zst').decode().splitlines()[:3]:
        say('  ' + (line if len(line) <= 240 else line[:237] + '...'))
    count = sum(check(p, [r for r in made if r.partition == p]) for p in range(PARTITIONS))
    say(f'\nchecked: {len(lines)} records of the log are in {count} files, each once; the ranges in their keys tile.'
        f' {time.monotonic() - began:.1f} s')


if __name__ == '__main__':
    try:
        main()
    except (AssertionError, OSError) as e:
        sys.exit(f'demo: {e}')
