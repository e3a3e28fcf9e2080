"""Parquet as others read it: files made by build/tests/tools/encode, read by Arrow and by parquet_reader.py.

Arrow's word counts for what every reader meets first (schema, metadata, statistics, rows); parquet_reader.py looks at
each page. The files that the original wrote from the same log must look the same to Arrow.
"""
import io
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import installed
import lake
import parquet_reader
from lake import Record
from processes import BUILD, ROOT

SHARED = pathlib.Path(os.environ.get('QUEEN_S3_SHARED', ROOT.parent / 'shared'))
START = 1788516000000000
COLUMNS = ['partition', 'offset', 'transaction_id', 'ts', 'payload']
SCHEMA = '''
required group field_id=-1 queen_record {
  required binary field_id=-1 partition (String);
  required int64 field_id=-1 offset;
  required binary field_id=-1 transaction_id (String);
  required int64 field_id=-1 ts (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false,'''


def encode(records: list[Record], codec: str = 'zstd', queue: str = 'orders') -> bytes:
    lines = ''.join(lake.record_line(r) + '\n' for r in records).encode()
    return subprocess.run([BUILD / 'tests/tools/encode', queue, 'parquet', codec], input=lines, check=True,
                          stdout=subprocess.PIPE, timeout=120).stdout


def record(number: int, partition: str = 'p', payload: str = '{"a":1}') -> Record:
    return Record(partition, number, f't-{number:08x}', START + number * 7919 % 1000003, payload)


def rows(records: list[Record]) -> list[tuple]:
    return [(r.partition, r.offset, r.transaction_id, r.ts, None if r.payload == 'null' else r.payload)
            for r in records]


class ParquetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.arrow = installed.module('pyarrow')
        cls.parquet = installed.module('pyarrow', 'parquet')

    def open(self, data: bytes):
        return self.parquet.ParquetFile(io.BytesIO(data))

    def table_rows(self, table) -> list[tuple]:
        """ts as the number that it is."""
        table = table.set_column(3, 'ts', table['ts'].cast(self.arrow.int64()))
        return list(zip(*(table[name].to_pylist() for name in COLUMNS)))

    def check_chunk(self, name: str, chunk, codec: str, records: list[Record], dictionary: tuple) -> None:
        encodings = {'partition': {'RLE', *(['PLAIN', 'RLE_DICTIONARY'] if dictionary[0] else []),
                                   *(['PLAIN'] if dictionary[1] else [])},
                     'offset': {'RLE', 'DELTA_BINARY_PACKED'}, 'ts': {'RLE', 'DELTA_BINARY_PACKED'}}
        self.assertEqual(chunk.compression, codec.upper())
        self.assertEqual(set(chunk.encodings), encodings.get(name, {'RLE', 'PLAIN'}), name)
        self.assertEqual(chunk.has_dictionary_page, name == 'partition' and dictionary[0])
        self.assertFalse(chunk.has_column_index or chunk.has_offset_index)
        statistics = chunk.statistics
        nulls = sum(r.payload == 'null' for r in records) if name == 'payload' else 0
        self.assertEqual((statistics.null_count, statistics.distinct_count), (nulls, None))
        self.assertEqual(statistics.has_min_max, name in ('partition', 'offset', 'ts'))
        if name == 'offset':
            self.assertEqual((statistics.min, statistics.max),
                             (min(r.offset for r in records), max(r.offset for r in records)))
        if name == 'ts':
            self.assertEqual((statistics.min_raw, statistics.max_raw),
                             (min(r.ts for r in records), max(r.ts for r in records)))
        if name == 'partition':
            self.assertLessEqual(statistics.min.encode(), records[0].partition.encode())
            self.assertGreaterEqual(statistics.max.encode(), records[-1].partition.encode())
            if len(records[-1].partition.encode()) <= 64:
                self.assertEqual(statistics.max, records[-1].partition)

    def check(self, records: list[Record], codec: str, queue: str = 'orders', dictionary=(True, False)) -> bytes:
        """Encodes; all that Arrow sees of it, column by column against spec 2.2, and each page."""
        data = encode(records, codec, queue)
        file = self.open(data)
        meta = file.metadata
        self.assertIn(SCHEMA.strip(), str(file.schema))
        self.assertIn('optional binary field_id=-1 payload (String);', str(file.schema))
        self.assertEqual(meta.metadata, {b'queen.envelope': b'1', b'queen.queue': queue.encode()})
        self.assertEqual((meta.created_by, meta.num_columns, meta.num_rows), ('queen-s3', 5, len(records)))
        self.assertEqual([meta.row_group(i).num_rows for i in range(meta.num_row_groups)],
                         [min(100_000, len(records) - at) for at in range(0, len(records), 100_000)])
        for i in range(meta.num_row_groups):
            for j, name in enumerate(COLUMNS):
                chunk = meta.row_group(i).column(j)
                self.assertEqual(chunk.path_in_schema, name)
                self.check_chunk(name, chunk, codec, records[i * 100_000:(i + 1) * 100_000], dictionary)
        table = file.read()
        table.validate(full=True)
        want = rows(records)
        self.assertTrue(self.table_rows(table) == want, 'the rows')
        self.assertTrue(list(parquet_reader.read_records(data, queue, codec)) == want, 'the rows, page by page')
        return data

    def test_no_record(self):
        self.check([], 'zstd')

    def test_one_record(self):
        for codec in ('zstd', 'snappy'):
            self.check([record(1811)], codec)

    def test_row_groups(self):
        records = [record(i, f'p-{i // 30_000}') for i in range(100_001)]
        self.check(records[:100_000], 'zstd')
        self.check(records, 'snappy')

    def test_all_payloads_null(self):
        self.check([record(i, payload='null') for i in range(45_000)], 'zstd')

    def test_nulls_here_and_there(self):
        self.check([record(i, payload='null' if i * 2654435761 % 97 < 30 else '"null"') for i in range(45_000)],
                   'snappy')

    def test_a_payload_of_sixty_megabytes(self):
        pieces = ''.join(f'{i * 2654435761 % 4294967296:08x} and text ' for i in range(3_500_000))
        records = [record(0), record(1, payload='"' + pieces + '"'), record(2)]
        self.assertGreater(len(records[1].payload), 59_000_000)
        for codec in ('zstd', 'snappy'):
            self.check(records, codec)

    def test_a_hundred_thousand_partitions(self):
        records = [record(i, f'customer-{i:07d}') for i in range(100_000)]
        for codec in ('zstd', 'snappy'):
            self.check(records, codec, dictionary=(True, True))

    def test_names_that_are_hard_to_carry(self):
        names = ['', ' ', '"', '\\', 'a/b', 'caffè', 'x' * 3000, 'p\u2028q', '\x7f', '日本語', '😀', '%41', 'dt=x', '~']
        records = []
        for partition in sorted(names, key=str.encode):
            records += [Record(partition, i, name, START + i, json.dumps(name)) for i, name in enumerate(names)]
        for codec in ('zstd', 'snappy'):
            self.check(records, codec, queue='caffè "1"/%')
        self.check([Record('p', i, 'i' * 65_535, START, '0') for i in range(40)], 'zstd')

    def test_cut_bounds_lose_no_row(self):
        """Names that differ behind the cut, before it, and in the character that it divides."""
        ends = ('a', 'è', '日', '😀', '\U0010ffff', '\x7f')
        names = {'n' * 63 + end + more for end in ends for more in ('', 'x', 'yz')}
        names = sorted(names | {'n' * 10, 'n' * 64, 'n' * 65, '\U0010ffff' * 20}, key=str.encode)
        for i, name in enumerate(names):
            records = [record(0, names[max(0, i - 1)]), record(1, name)] if i > 0 else [record(1, name)]
            data = encode(records)
            for wanted in {r.partition for r in records}:
                found = self.parquet.read_table(io.BytesIO(data), filters=[('partition', '=', wanted)])
                self.assertEqual(set(found['partition'].to_pylist()), {wanted})
            list(parquet_reader.read_records(data, 'orders', 'zstd'))

    def original_objects(self):
        """Path, codec, and the records of the log that belong there."""
        archive = SHARED / 'data/original-lakes.tar.zst'
        if not archive.exists():
            self.skipTest(f'the original lakes are not there ({archive.name})')
        temporary = tempfile.TemporaryDirectory(dir=BUILD, prefix='original-')
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        subprocess.run(f'zstd -qdc "{archive}" | tar -x -C "{folder}"', shell=True, check=True)
        log = [lake.line_record(line) for line in (folder / 'log.jsonl').read_text().split('\n')[:-1]]
        log.sort(key=lambda r: (r.partition.encode(), r.offset))
        for name, codec in (('parquet-zstd', 'zstd'), ('parquet-snappy', 'snappy'), ('per-partition', 'zstd')):
            for path in sorted((folder / 'lake' / name / '_queen/orders/windows').iterdir()):
                manifest = json.loads(path.read_text())
                for entry in manifest['objects']:
                    yield folder / 'lake' / entry['key'], codec, [
                        r for r in log if manifest['tStart'] <= r.ts < manifest['tEnd']
                        and r.partition == entry.get('partition', r.partition)]

    def test_the_originals_files(self):
        objects = 0
        for path, codec, records in self.original_objects():
            data = encode(records, codec)
            ours, theirs = self.open(data), self.parquet.ParquetFile(path)
            self.assertTrue(ours.schema.equals(theirs.schema), path.name)
            self.assertTrue(ours.schema_arrow.equals(theirs.schema_arrow, check_metadata=True), path.name)
            self.assertTrue(ours.read().equals(theirs.read(), check_metadata=True), path.name)
            self.assertEqual(ours.metadata.metadata, theirs.metadata.metadata)
            for i in range(5):
                mine, other = (f.metadata.row_group(0).column(i) for f in (ours, theirs))
                self.assertEqual((mine.compression, mine.physical_type, set(mine.encodings)),
                                 (other.compression, other.physical_type, set(other.encodings)))
                if mine.statistics.has_min_max:
                    self.assertEqual((mine.statistics.min, mine.statistics.max),
                                     (other.statistics.min, other.statistics.max))
            objects += 1
        self.assertGreater(objects, 60)


if __name__ == '__main__':
    unittest.main()
