"""Holds a lake on disk against the contract that README.md and the manuals give its readers, and against the log.

    report = check(folder / 'lake', 'orders', log=records)      # report.faults is empty when all of it holds
    assert_lake(self, folder / 'lake', 'orders', log=records)   # the same in a test, with a second opinion

It shares nothing with the sink: everything is computed again from the contract. The second opinion is
../shared/tools/lake_check.py beside the project's root, where that is there.
"""
import calendar
import collections
import dataclasses
import functools
import gzip
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import typing
from collections.abc import Iterable, Iterator

import zstandard

import parquet_reader

HOUR = 3_600_000_000
UNIT = {'hour': HOUR, 'day': 24 * HOUR, 'none': 0}
EXTENSION = {('jsonl', 'zstd'): 'jsonl.zst', ('jsonl', 'gzip'): 'jsonl.gz', ('jsonl', 'none'): 'jsonl',
             ('parquet', 'zstd'): 'parquet', ('parquet', 'snappy'): 'parquet'}
WRITER = {('jsonl', 'zstd'): 'jsonl+zstd', ('jsonl', 'gzip'): 'jsonl+gzip', ('jsonl', 'none'): 'jsonl',
          ('parquet', 'zstd'): 'parquet zstd', ('parquet', 'snappy'): 'parquet snappy'}
STRING = r'"(?:[^"\\\x00-\x1f]|\\.)*"'
LINE = re.compile(r'\{"partition":(%s),"offset":(0|[1-9]\d*),"transactionId":(%s),"ts":"([^"]*)","payload":(.*)\}' %
                  (STRING, STRING), re.S)
MANIFEST = {'sink', 'queue', 'k', 'tStart', 'tEnd', 'format', 'compression', 'layout', 'objects', 'records', 'bytes',
            'partitions', 'minTs', 'maxTs', 'lost', 'writer', 'committedAt'}
SECOND_OPINION = pathlib.Path(__file__).resolve().parents[3] / 'shared/tools/lake_check.py'


class Record(typing.NamedTuple):
    """One record of the log or the lake. `payload` is its JSON text ('null' for none), `ts` microseconds."""
    partition: str
    offset: int
    transaction_id: str
    ts: int
    payload: str


@dataclasses.dataclass
class Report:
    faults: list[str] = dataclasses.field(default_factory=list)
    windows: int = 0
    records: int = 0
    lost: list[tuple[str, int, int]] = dataclasses.field(default_factory=list)
    t_start: int | None = None
    t_end: int | None = None

    def fault(self, text: str) -> None:
        self.faults.append(text)

    def __str__(self) -> str:
        shown = ''.join(f'\n  {fault}' for fault in self.faults[:20])
        more = f'\n  and {len(self.faults) - 20} more' if len(self.faults) > 20 else ''
        return f'{self.windows} windows, {self.records} records, {len(self.faults)} faults{shown}{more}'


def escape(name: str) -> str:
    """A name as it stands in a key: percent-escapes, and what is too long cut and given a hash."""
    units = [chr(b) if chr(b) in '-._' or (b < 128 and chr(b).isalnum()) else f'%{b:02X}' for b in name.encode()]
    if name in ('.', '..'):
        units = ['%2E'] * len(name)
    whole = ''.join(units)
    if len(whole) <= 160:
        return whole
    cut = ''
    for unit in units:
        if len(cut) + len(unit) > 143:
            break
        cut += unit
    return cut + '~' + hashlib.sha256(name.encode()).hexdigest()[:16]


def spell(text: str) -> str:
    """A string as the lake spells it: the shortest escape for what must be escaped, everything else as it is."""
    short = {'"': '\\"', '\\': '\\\\', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t'}
    return '"' + ''.join(short.get(c) or (f'\\u{ord(c):04x}' if c < ' ' else c) for c in text) + '"'


@functools.lru_cache(65536)
def micros(ts: str) -> int:
    """`2026-09-04T10:03:41.918204Z` as microseconds; anything spelled otherwise is a ValueError."""
    if not re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z', ts):
        raise ValueError(f'not a time as the lake spells it: {ts!r}')
    return calendar.timegm(time.strptime(ts[:19], '%Y-%m-%dT%H:%M:%S')) * 1_000_000 + int(ts[20:26])


def iso(us: int) -> str:
    return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(us // 1_000_000)) + f'.{us % 1_000_000:06d}Z'


def skip_value(text: str, at: int = 0) -> int:
    """The index after the JSON value that begins at `at` (blanks before it allowed), of any depth."""
    token = re.compile(r'\s*(?:(%s)|([\[{])|([\]}])|([^\s"\[\]{},:]+)|([,:]))' % STRING)
    depth = 0
    while True:
        found = token.match(text, at)
        if not found:
            raise ValueError(f'not JSON at {at}: {text[at:at + 40]!r}')
        at = found.end()
        if found[2]:
            depth += 1
        elif found[3]:
            depth -= 1
        if depth < 0:
            raise ValueError(f'a bracket too many at {at}')
        if depth == 0 and not found[5]:
            return at


def check_json(text: str) -> None:
    """A ValueError for what is not one JSON value. (Numbers of any length and nesting of any depth are.)"""
    def refuse(word):
        raise ValueError(f'{word} is not JSON')
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse)
    except RecursionError:
        if text[skip_value(text):].strip():
            raise ValueError('more than one JSON value') from None


def one_line(payload: str) -> str:
    """A payload as JSON Lines can hold it."""
    return payload.replace('\n', ' ').replace('\r', ' ')


def line_record(line: str) -> Record:
    found = LINE.fullmatch(line)
    if not found:
        raise ValueError(f'not an envelope line: {line[:160]!r}')
    partition, transaction_id = json.loads(found[1]), json.loads(found[3])
    if spell(partition) != found[1] or spell(transaction_id) != found[3]:
        raise ValueError(f'a name is spelled otherwise than it should be: {line[:160]!r}')
    check_json(found[5])
    return Record(partition, int(found[2]), transaction_id, micros(found[4]), found[5])


def record_line(record: Record) -> str:
    return (f'{{"partition":{spell(record.partition)},"offset":{record.offset},'
            f'"transactionId":{spell(record.transaction_id)},"ts":"{iso(record.ts)}","payload":{record.payload}}}')


def decompress(data: bytes, extension: str, foreign: bool = False) -> bytes:
    if extension == 'jsonl.zst':
        size = zstandard.frame_content_size(data)
        if size < 0 and not foreign:
            raise ValueError('the zstd frame declares no content size')
        stream = zstandard.ZstdDecompressor().decompressobj()
        text = stream.decompress(data)
        if not stream.eof or stream.unused_data or size not in (-1, len(text)):
            raise ValueError('not exactly one whole zstd frame')
        return text
    if extension == 'jsonl.gz':
        if data[:4] != b'\x1f\x8b\x08\x00' or data[4:8] != b'\0\0\0\0' or data[9] != 255:
            raise ValueError('the gzip header has a flag, a time or another OS byte than 255')
        return gzip.decompress(data)
    return data


def read_object(data: bytes, extension: str, queue: str, codec: str, foreign: bool = False) -> Iterator[Record]:
    """The records of one object, its form checked on the way. `foreign`: by the original."""
    if extension == 'parquet':
        for row in parquet_reader.read_records(data, queue, codec, foreign):
            if row[4] is not None:
                check_json(row[4])
            yield Record(row[0], row[1], row[2], row[3], 'null' if row[4] is None else row[4])
        return
    text = decompress(data, extension, foreign)
    if not text.endswith(b'\n'):
        raise ValueError('the last line has no line feed' if text else 'an object without a record')
    if b'\r' in text:
        raise ValueError('a raw carriage return')
    for line in text[:-1].split(b'\n'):
        yield line_record(line.decode())


def expected_key(manifest: dict, entry: dict, prefix: str, align: str) -> str:
    start, end = manifest['tStart'], manifest['tEnd']
    day, hour = iso(start)[:10], iso(start)[11:13]
    key = f'{prefix}/' if prefix else ''
    key += f'queue={escape(manifest["queue"])}/dt={day}/' + ('' if align == 'day' else f'hour={hour}/')
    key += f'w-{manifest["k"]:010d}-{start:016d}-{end:016d}'
    if manifest['layout'] == 'per-partition':
        key += f'-p-{escape(entry["partition"])}-{entry["firstOffset"]:012d}-{entry["lastOffset"]:012d}'
    return key + '.' + EXTENSION[manifest['format'], manifest['compression']]


class _Check:
    """One run of check(): what it has seen so far."""

    def __init__(self, lake: pathlib.Path, queue: str, prefix: str, align: str, sink: str, foreign: bool):
        self.foreign = foreign
        self.lake, self.queue, self.prefix, self.align, self.sink = lake, queue, prefix, align, sink
        self.root = lake / prefix if prefix else lake
        self.report = Report()
        self.seen: dict[tuple[str, int, int], tuple[int, Record, str]] = {}
        self.named: set[str] = set()
        self.manifests: dict[int, dict] = {}

    def manifest_files(self) -> list[pathlib.Path]:
        folder = self.root / '_queen' / escape(self.queue) / 'windows'
        files = sorted(p for p in folder.iterdir() if not p.name.startswith('.')) if folder.is_dir() else []
        for stray in [p for p in files if not re.fullmatch(r'\d{10}\.json', p.name)]:
            self.report.fault(f'a stray name among the manifests: {stray.name}')
        return [p for p in files if re.fullmatch(r'\d{10}\.json', p.name)]

    def window(self, expected_k: int, path: pathlib.Path) -> None:
        fault = self.report.fault
        m = json.loads(path.read_bytes())
        k = m['k']
        if (k, path.name) != (expected_k, f'{k:010d}.json'):
            fault(f'{path.name}: k is {k}, expected {expected_k}')
        self.manifests[k] = m
        if missing := MANIFEST - set(m):
            fault(f'window {k}: the manifest has no {", ".join(sorted(missing))}')
        if more := set(m) - MANIFEST:
            fault(f'window {k}: the manifest has an unknown {", ".join(sorted(more))}')
        if (m['queue'], m['sink']) != (self.queue, self.sink):
            fault(f'window {k}: of queue {m["queue"]!r} and sink {m["sink"]!r}')
        micros(m['committedAt'])
        if self.foreign and (m['format'], m['compression']) == ('parquet', 'none'):
            m['compression'] = 'snappy'
        form = m['format'], m['compression']
        writer = m['writer'].replace('parquet/59 ', 'parquet ') if self.foreign else m['writer']
        if form not in WRITER or not re.fullmatch(r'queen-s3/\d\S* ' + re.escape(WRITER.get(form, '')), writer):
            fault(f'window {k}: writer {m["writer"]!r} with format and compression {form}')
        self.bounds(k, m['tStart'], m['tEnd'])
        for r in m['lost']:
            if not r['from'] <= r['to'] or r.get('life', 'previous') != 'previous':
                fault(f'window {k}: lost range {r}')
            if 'life' not in r:
                self.report.lost.append((r['partition'], r['from'], r['to']))
        self.objects(k, m)

    def bounds(self, k: int, start: int, end: int) -> None:
        r = self.report
        if type(start) is not int or type(end) is not int or start >= end:
            r.fault(f'window {k}: from {start} to {end}')
        if r.t_end is not None and start < r.t_end:
            r.fault(f'window {k} begins at {start}, before the end {r.t_end} of the one before')
        unit = UNIT[self.align]
        if unit and start // unit != (end - 1) // unit:
            r.fault(f'window {k} straddles an alignment boundary')
        r.t_start = start if r.t_start is None else r.t_start
        r.t_end = end

    def objects(self, k: int, m: dict) -> None:
        fault = self.report.fault
        count = size = 0
        partitions: set[str] = set()
        stamps: list[int] = []
        if m['layout'] == 'merged' and len(m['objects']) != 1 or not m['objects']:
            fault(f'window {k}: {len(m["objects"])} objects, layout {m["layout"]}')
        for entry in m['objects']:
            key = entry['key']
            if key in self.named:
                fault(f'{key} is named twice')
            self.named.add(key)
            if key != (expected := expected_key(m, entry, self.prefix, self.align)):
                fault(f'key {key}, expected {expected}')
            try:
                data = (self.lake / key).read_bytes()
                records = self.one_object(k, m, entry, data)
            except (OSError, ValueError, KeyError, zstandard.ZstdError, EOFError) as e:
                fault(f'{key}: {type(e).__name__}: {e}')
                continue
            count += len(records)
            size += len(data)
            partitions |= {r.partition for r in records}
            stamps += [min(r.ts for r in records), max(r.ts for r in records)] if records else []
        for what, has, says in (('records', count, m['records']), ('bytes', size, m['bytes']),
                                ('partitions', len(partitions), m['partitions']),
                                ('minTs', min(stamps, default=None), m.get('minTs')),
                                ('maxTs', max(stamps, default=None), m.get('maxTs'))):
            if has != says:
                fault(f'window {k}: {what} {has}, the manifest says {says}')
        self.report.records += count

    def one_object(self, k: int, m: dict, entry: dict, data: bytes) -> list[Record]:
        fault, key = self.report.fault, entry['key']
        if len(data) != entry['bytes'] or hashlib.sha256(data).hexdigest() != entry['sha256']:
            fault(f'{key}: bytes or sha256 differ from the manifest')
        extension = EXTENSION[m['format'], m['compression']]
        records = list(read_object(data, extension, m['queue'], m['compression'], self.foreign))
        if len(records) != entry['records']:
            fault(f'{key}: {len(records)} records, the manifest says {entry["records"]}')
        before = None
        for r in records:
            place = r.partition.encode(), r.offset
            if before is not None and place <= before:
                fault(f'{key}: {r.partition!r}/{r.offset} is out of order')
            before = place
            if not m['tStart'] <= r.ts < m['tEnd']:
                fault(f'{key}: {r.partition!r}/{r.offset} of {iso(r.ts)} is outside the window')
            identity = r.partition, r.offset, r.ts
            if identity in self.seen:
                fault(f'{r.partition!r}/{r.offset} is in window {self.seen[identity][0]} and in window {k}')
            self.seen[identity] = k, r, extension
        if m['layout'] == 'per-partition':
            has = {r.partition for r in records}, records[0].offset, records[-1].offset
            if has != ({entry['partition']}, entry['firstOffset'], entry['lastOffset']):
                fault(f'{key}: partition or offsets differ from the manifest')
        return records

    def strays(self) -> None:
        """Objects that no manifest names, and files that no contract knows."""
        folder = self.root / f'queue={escape(self.queue)}'
        for path in sorted(p for p in folder.rglob('*') if p.is_file()):
            if (key := path.relative_to(self.lake).as_posix()) not in self.named:
                self.report.fault(f'an object that no manifest names: {key}')
        own = self.root / '_queen' / escape(self.queue)
        for path in sorted(own.iterdir()) if own.is_dir() else []:
            if path.name not in ('windows', 'checkpoint'):
                self.report.fault(f'a stray {path.name} in _queen/')

    def checkpoints(self, log: list[Record] | None) -> None:
        folder = self.root / '_queen' / escape(self.queue) / 'checkpoint'
        later: dict[str, list[Record]] = collections.defaultdict(list)
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            found = re.fullmatch(r'(\d{10})\.json\.zst', path.name)
            if not found:
                self.report.fault(f'a stray name among the checkpoints: {path.name}')
                continue
            document = json.loads(decompress(path.read_bytes(), 'jsonl.zst', foreign=True))  # written as a stream
            k = document['k']
            if k != int(found[1]) or k not in self.manifests or document['tEnd'] != self.manifests[k]['tEnd']:
                self.report.fault(f'checkpoint {path.name}: k {k} and tEnd {document["tEnd"]} are of no window')
            names = [entry[0].encode() for entry in document['positions']]
            if names != sorted(set(names)):
                self.report.fault(f'checkpoint {path.name}: positions are not sorted by name')
            if log and not later:
                for record in log:
                    later[record.partition].append(record)
            for name, position, *_ in document['positions']:
                if len({r.offset for r in later[name]}) < len(later[name]):
                    continue  # created again: the position may be one of the life before
                # The one error that would lose a record: a position past one that the next windows have to hold.
                if any(r.offset < position and r.ts >= document['tEnd'] for r in later[name]):
                    self.report.fault(f'checkpoint {path.name}: {name!r} at {position} skips records of later windows')

    def against(self, log: list[Record], start: int | None, complete: bool) -> None:
        """Each record of the log from `start` on is in the lake, once and unchanged, and nothing else is."""
        fault, r = self.report.fault, self.report
        ranges = collections.defaultdict(list)
        for partition, first, last in r.lost:
            ranges[partition].append((first, last))
        logged = set()
        for want in log:
            identity = want.partition, want.offset, want.ts
            logged.add(identity)
            if identity not in self.seen:
                due = complete or (r.t_end is not None and want.ts < r.t_end)
                lost = any(first <= want.offset <= last for first, last in ranges[want.partition])
                if due and not lost and (start is None or want.ts >= start):
                    fault(f'missing: {want.partition!r}/{want.offset} of {iso(want.ts)}')
                continue
            _, have, extension = self.seen[identity]
            same = have.payload == want.payload if '\n' in want.payload or '\r' in want.payload else \
                one_line(have.payload) == want.payload
            if extension != 'parquet':
                same = have.payload == one_line(want.payload)
            if have.transaction_id != want.transaction_id or not same:
                fault(f'{want.partition!r}/{want.offset} differs: {have[2:]!r:.120}, in the log {want[2:]!r:.120}')
        for partition, offset, ts in self.seen.keys() - logged:
            fault(f'not in the log: {partition!r}/{offset} of {iso(ts)}')

    def pointer(self, committed: dict) -> None:
        """The broker's `committed` document is the last window's, its `tEnd` spelled as a time."""
        last = max(self.manifests, default=0)
        m = self.manifests.get(last)
        says = {name: committed.get(name) for name in ('k', 'tEnd', 'records', 'bytes', 'manifest')}
        manifest = f'{self.prefix}/' if self.prefix else ''
        manifest += f'_queen/{escape(self.queue)}/windows/{last:010d}.json'
        has = m and {'k': last, 'tEnd': iso(m['tEnd']), 'records': m['records'], 'bytes': m['bytes'],
                     'manifest': manifest}
        if m and says != has:
            self.report.fault(f'committed is {says}, the last manifest says {has}')
        if not m and committed.get('k'):
            self.report.fault(f'committed is {says}, and there is no manifest')


def check(lake: pathlib.Path, queue: str, prefix: str = 'queen', align: str = 'hour', sink: str = 'default',
          log: Iterable[Record] | None = None, start: int | None = None, complete: bool = False,
          committed: dict | None = None, foreign: bool = False) -> Report:
    """`lake` is the bucket's folder. `start` is the time in microseconds from which the log has to be there (None:
    all of it). `complete`: its newest records too.
    `committed`: the broker's pointer, to be held against the last window.
    `foreign`: part of it was written by the original, whose zstd frames declare no size and whose Parquet files
    have an index and another encoding here and there."""
    run = _Check(pathlib.Path(lake), queue, prefix, align, sink, foreign)
    files = run.manifest_files()
    for k, path in enumerate(files, 1):
        try:
            run.window(k, path)
        except (ValueError, KeyError, TypeError) as e:
            run.report.fault(f'{path.name}: {type(e).__name__}: {e}')
    run.report.windows = len(files)
    run.strays()
    records = None if log is None else list(log)
    run.checkpoints(records)
    if records is not None:
        run.against(records, start, complete)
    if committed is not None:
        run.pointer(committed)
    return run.report


def second_opinion(lake: pathlib.Path, queue: str, prefix: str, align: str, log: list[Record] | None,
                   start: int | None, complete: bool, foreign: bool) -> str | None:
    """What ../shared/tools/lake_check.py says against the lake; None when it finds nothing or is not there."""
    manifests = sorted((pathlib.Path(lake) / prefix / '_queen' / escape(queue) / 'windows').glob('*.json'))
    parquet = any(json.loads(p.read_bytes())['format'] == 'parquet' for p in manifests)
    if not SECOND_OPINION.exists() or parquet and not importlib.util.find_spec('pyarrow'):
        return None
    with tempfile.NamedTemporaryFile('w', suffix='.jsonl', encoding='utf-8', newline='\n') as file:
        arguments = [sys.executable, SECOND_OPINION, lake, '--queue', queue, '--prefix', prefix, '--align', align]
        if log is not None:
            file.writelines(record_line(r._replace(payload=one_line(r.payload))) + '\n' for r in log)
            file.flush()
            arguments += ['--log', file.name] + (['--from', iso(start)] if start is not None else [])
        arguments += ['--complete'] * complete + ['--foreign'] * foreign
        result = subprocess.run([os.fspath(a) for a in arguments], capture_output=True, text=True, timeout=600)
    return result.stdout + result.stderr if result.returncode else None


def assert_lake(test, lake: pathlib.Path, queue: str, prefix: str = 'queen', align: str = 'hour',
                sink: str = 'default', log: Iterable[Record] | None = None, start: int | None = None,
                complete: bool = False, committed: dict | None = None, foreign: bool = False) -> Report:
    """Fails the test with the faults, if there are any; the report is for what the test wants to know beyond."""
    records = None if log is None else list(log)
    report = check(lake, queue, prefix, align, sink, records, start, complete, committed, foreign)
    if report.faults:
        test.fail(f'the lake does not hold: {report}')
    if against := second_opinion(lake, queue, prefix, align, records, start, complete, foreign):
        test.fail(f'the second opinion: {against}')
    return report
