#!/usr/bin/python3
"""Writes the Parquet files beside it: the same records, by another writer, in every way that the format has.

    python3 -m venv build/venv && build/venv/bin/pip install pyarrow zstandard
    build/venv/bin/python tests/unit/data/parquet/make.py

They were written with pyarrow 26.0.1. `records.jsonl` is what each of them holds, as the lake's JSON Lines; the files
named `other-*` have another schema than the lake's and must be refused. A few smaller ones are what the fuzzers of
tests/fuzz begin with.
"""
import gzip
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parents[2] / 'fuzz/corpus'
BASE = 1_788_516_000_000_000
PAYLOADS = ['{"type":"paid","amount":1290}', None, '0', '{\n  "a": [1,\r\n 2]\n}',
            '"caff\u00e8 \\ud83d\\ude00 \U0001f600"', '{}', '[true,false,null,-1.5e+300]',
            '"' + 'long ' * 40 + '"', '""', 'null']
PARTITIONS = ['', 'A', 'a/b', 'caff\u00e8', 'cust-0420']
DELTAS = {'partition': 'DELTA_BYTE_ARRAY', 'offset': 'DELTA_BINARY_PACKED', 'transaction_id': 'DELTA_BYTE_ARRAY',
          'ts': 'DELTA_BINARY_PACKED', 'payload': 'DELTA_LENGTH_BYTE_ARRAY'}
MIXED = {'partition': 'DELTA_LENGTH_BYTE_ARRAY', 'offset': 'PLAIN', 'transaction_id': 'DELTA_LENGTH_BYTE_ARRAY',
         'ts': 'PLAIN', 'payload': 'DELTA_BYTE_ARRAY'}
STRINGS = pa.string()
SCHEMA = pa.schema([pa.field('partition', STRINGS, False), pa.field('offset', pa.int64(), False),
                    pa.field('transaction_id', STRINGS, False), pa.field('ts', pa.timestamp('us', 'UTC'), False),
                    pa.field('payload', STRINGS, True)])

FILES = {
    'plain-none': dict(compression='none', use_dictionary=False),
    'plain-snappy-v2': dict(compression='snappy', use_dictionary=False, data_page_version='2.0'),
    'dictionary-none-v2': dict(compression='none', data_page_version='2.0', write_page_index=True),
    'dictionary-gzip': dict(compression='gzip', row_group_size=16),
    'dictionary-full': dict(compression='zstd', dictionary_pagesize_limit=64, write_batch_size=4, data_page_size=64),
    'deltas-zstd-v2': dict(compression='zstd', use_dictionary=False, column_encoding=DELTAS, data_page_version='2.0'),
    'deltas-snappy': dict(compression='snappy', use_dictionary=False, column_encoding=DELTAS, data_page_size=100,
                          write_batch_size=8),
    'mixed-gzip-v2': dict(compression='gzip', use_dictionary=False, column_encoding=MIXED, data_page_version='2.0'),
    'mixed-codecs': dict(compression={'partition': 'none', 'offset': 'snappy', 'transaction_id': 'gzip', 'ts': 'zstd',
                                      'payload': 'snappy'}, use_dictionary=['partition', 'ts'], write_statistics=False),
    'checksums': dict(compression='none', write_page_checksum=True, row_group_size=24),
    'checksums-v2': dict(compression='zstd', write_page_checksum=True, data_page_version='2.0',
                         use_dictionary=['partition'], column_encoding={'offset': 'DELTA_BINARY_PACKED'}),
    'row-groups': dict(compression='zstd', row_group_size=10),
}


def records() -> list[tuple]:
    out = []
    for number, partition in enumerate(PARTITIONS):
        for i in range(10):
            out.append((partition, 1000 * number + i * i, f'ord-{partition}-{i:04d}\t"' if i % 3 else 'ord',
                        BASE + number * 1_000_000 + i * 333_333, PAYLOADS[(i + number) % len(PAYLOADS)]))
    return out


def line(record: tuple) -> str:
    partition, offset, identity, ts, payload = record
    second, fraction = divmod(ts - BASE, 1_000_000)
    payload = (payload or 'null').replace('\n', ' ').replace('\r', ' ')
    return (f'{{"partition":{json.dumps(partition, ensure_ascii=False)},"offset":{offset},'
            f'"transactionId":{json.dumps(identity, ensure_ascii=False)},'
            f'"ts":"2026-09-04T10:00:{second:02d}.{fraction:06d}Z","payload":{payload}}}\n')


def table_of(rows: list[tuple]) -> pa.Table:
    columns = [list(column) for column in zip(*rows)]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA)], schema=SCHEMA)


def write_corpus(rows: list[tuple]) -> None:
    table = table_of(rows)
    files = {name: FILES[name] for name in ('plain-none', 'dictionary-none-v2', 'mixed-gzip-v2', 'deltas-zstd-v2',
                                            'deltas-snappy', 'dictionary-full')}
    files['deltas-none'] = dict(compression='none', use_dictionary=False, column_encoding=DELTAS, row_group_size=3)
    for name, options in files.items():
        pq.write_table(table, CORPUS / 'parquet_read' / name, store_schema=False, **options)
    lines = ''.join(line(row) for row in rows[:3]).encode()
    for name, compressed in (('0-plain', lines), ('1-zstd', zstandard.compress(lines, 3)),
                             ('2-gzip', gzip.compress(lines, 6, mtime=0))):
        (CORPUS / 'jsonl_read' / name).write_bytes(name[0].encode() + compressed)


def main() -> None:
    rows = records()
    (HERE / 'records.jsonl').write_text(''.join(line(row) for row in rows))
    table = table_of(rows)
    write_corpus(rows[17:20] + rows[30:33])
    for name, options in FILES.items():
        pq.write_table(table, HERE / f'{name}.parquet', store_schema=False, **options)

    few = table.slice(0, 1)
    nullable = pa.schema([field.with_nullable(True) for field in SCHEMA])
    milliseconds = SCHEMA.set(3, pa.field('ts', pa.timestamp('ms', 'UTC'), False))
    local = SCHEMA.set(3, pa.field('ts', pa.timestamp('us'), False))
    binary = SCHEMA.set(0, pa.field('partition', pa.binary(), False))
    unsigned = SCHEMA.set(1, pa.field('offset', pa.uint64(), False))
    for name, schema in (('nullable', nullable), ('milliseconds', milliseconds), ('local-time', local),
                         ('binary', binary), ('unsigned', unsigned)):
        pq.write_table(few.cast(schema), HERE / f'other-{name}.parquet', store_schema=False)
    pq.write_table(few.select([1, 0, 2, 3, 4]), HERE / 'other-order.parquet', store_schema=False)
    pq.write_table(few.append_column('more', pa.array([1])), HERE / 'other-columns.parquet', store_schema=False)
    pq.write_table(few, HERE / 'other-codec.parquet', store_schema=False, compression='brotli')


if __name__ == '__main__':
    main()
