"""Reads the one kind of Parquet file that the lake has, strictly: what the contract does not say is an error.

Five columns, V1 data pages, zstd or snappy; written from the format's specification, with the standard library and
zstandard alone, so that it can check the sink's own writer on any machine.
"""
import struct
from collections.abc import Iterator

import zstandard

PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY = 0, 2, 3, 5, 8
INT64, BYTE_ARRAY = 2, 6
CODEC = {'snappy': 1, 'zstd': 6}
COLUMNS = ['partition', 'offset', 'transaction_id', 'ts', 'payload']
ROWS_A_GROUP, ROWS_A_PAGE, PAGE_BYTES = 100_000, 20_000, 1 << 20
LEVEL_BYTES = 8192  # which 20 000 rows of definition levels never reach


class Thrift:
    """The compact protocol: structs as {field id: value}, lists as lists."""

    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 0x7f) << shift
            shift += 7
            if b < 0x80:
                return value

    def zigzag(self) -> int:
        n = self.varint()
        return n >> 1 ^ -(n & 1)

    def value(self, kind: int):
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return struct.unpack('b', bytes([self.byte()]))[0]
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            size = self.varint()
            self.at += size
            return self.data[self.at - size:self.at]
        if kind in (9, 10):
            head = self.byte()
            size = head >> 4 if head >> 4 != 15 else self.varint()
            return [self.value(self.byte() if head & 15 in (1, 2) else head & 15) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError(f'thrift type {kind}')

    def struct(self) -> dict:
        fields, last = {}, 0
        while (head := self.byte()) != 0:
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            fields[last] = self.value(head & 15)
        return fields


def unsnappy(data: bytes) -> bytes:
    reader = Thrift(data)
    size, out = reader.varint(), bytearray()
    at = reader.at
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(data[at:at + extra], 'little')
                at += extra
            out += data[at:at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, distance = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            length, distance = (tag >> 2) + 1, int.from_bytes(data[at:at + width], 'little')
            at += width
        if not 0 < distance <= len(out):
            raise ValueError('snappy: a copy from before the beginning')
        while length > 0:
            piece = out[-distance:][:length]
            out += piece
            length -= len(piece)
    if len(out) != size:
        raise ValueError('snappy: another size than declared')
    return bytes(out)


def inflate(data: bytes, size: int, codec: int) -> bytes:
    out = unsnappy(data) if codec == CODEC['snappy'] else \
        zstandard.ZstdDecompressor().decompress(data, max_output_size=max(size, 1)) if size else b''
    if len(out) != size:
        raise ValueError('a page has another size than its header says')
    return out


def hybrid(data: bytes, width: int, count: int) -> list[int]:
    """The RLE and bit-packing hybrid."""
    reader, out = Thrift(data), []
    while len(out) < count:
        head = reader.varint()
        if head & 1:
            size = (head >> 1) * width
            bits = int.from_bytes(data[reader.at:reader.at + size], 'little')
            reader.at += size
            out += [bits >> i * width & (1 << width) - 1 for i in range((head >> 1) * 8)]
        else:
            size = (width + 7) // 8
            out += [int.from_bytes(data[reader.at:reader.at + size], 'little')] * (head >> 1)
            reader.at += size
    return out[:count]


def delta(data: bytes, count: int) -> list[int]:
    """DELTA_BINARY_PACKED of 64-bit integers (which wrap)."""
    reader = Thrift(data)
    block, minis, total, value = reader.varint(), reader.varint(), reader.varint(), reader.zigzag()
    if total != count or block % 128 or block // minis % 32:
        raise ValueError('DELTA_BINARY_PACKED: a header that does not fit')
    out = [value] if count else []
    while len(out) < count:
        least = reader.zigzag()
        widths = data[reader.at:reader.at + minis]
        reader.at += minis
        for width in widths:
            if len(out) >= count:
                break
            size = block // minis * width // 8
            bits = int.from_bytes(data[reader.at:reader.at + size], 'little')
            reader.at += size
            for i in range(min(block // minis, count - len(out))):
                value += least + (bits >> i * width & (1 << width) - 1)
                value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
                out.append(value)
    return out


def byte_arrays(data: bytes, count: int) -> list[str]:
    out, at = [], 0
    for _ in range(count):
        size = int.from_bytes(data[at:at + 4], 'little')
        out.append(data[at + 4:at + 4 + size].decode())
        at += 4 + size
    if at != len(data):
        raise ValueError('a page of byte arrays does not end with its last value')
    return out


def expect(what: str, has, wanted) -> None:
    if has != wanted:
        raise ValueError(f'{what} is {has!r}, not {wanted!r}')


def check_schema(schema: list[dict]) -> None:
    root, columns = schema[0], schema[1:]
    expect('the schema', (root[4].decode(), root.get(5), [c[4].decode() for c in columns]),
           ('queen_record', 5, COLUMNS))
    for c in columns:
        name = c[4].decode()
        expect(f'repetition of {name}', c[3], 1 if name == 'payload' else 0)
        if name in ('offset', 'ts'):
            expect(f'type of {name}', c[1], INT64)
        else:
            expect(f'type of {name}', (c[1], c.get(6), c.get(10)), (BYTE_ARRAY, 0, {1: {}}))
        if name == 'ts':
            expect('types of ts', (c.get(6), c.get(10)), (10, {8: {1: True, 2: {2: {}}}}))


def check_statistics(name: str, meta: dict, values: list) -> None:
    s = meta.get(12, {})
    expect(f'distinct_count of {name}', s.get(4), None)
    if name == 'payload':
        expect('null_count of payload', s.get(3, sum(v is None for v in values)), sum(v is None for v in values))
    if name in ('offset', 'ts'):
        expect(f'bounds of {name}', (s.get(6), s.get(5)), tuple(struct.pack('<q', f(values)) for f in (min, max)))
    elif name == 'partition':
        low, high = min(v.encode() for v in values), max(v.encode() for v in values)
        least, most = s.get(6), s.get(5)
        if least is None or least > low or len(least) > 64 or (s.get(8, True) and least != low):
            raise ValueError(f'min_value of partition is {least!r}, the least {low!r}')
        if most is not None and (most < high or len(most) > 64 or (s.get(7, True) and most != high)):
            raise ValueError(f'max_value of partition is {most!r}, the greatest {high!r}')


def read_chunk(data: bytes, name: str, chunk: dict, codec: int, rows: int, strict: bool) -> list:
    meta = chunk[3]
    expect(f'path, codec and values of {name}', ([p.decode() for p in meta[3]], meta[4], meta[5]),
           ([name], codec, rows))
    if strict:
        expect(f'page index of {name}', [f for f in (4, 5, 6, 7) if f in chunk], [])
    at = meta.get(11) or meta[9]
    end, dictionary, values = at + meta[7], None, []
    while at < end:
        reader = Thrift(data, at)
        header = reader.struct()
        body = data[reader.at:reader.at + header[3]]
        at = reader.at + header[3]
        page = inflate(body, header[2], codec)
        if header[1] == 2:
            if name != 'partition' or dictionary is not None or len(page) > PAGE_BYTES:
                raise ValueError(f'a dictionary page that {name} should not have')
            dictionary = byte_arrays(page, header[7][1])
            expect('distinct values in the dictionary', len(set(dictionary)), len(dictionary))
            continue
        expect(f'page type of {name}', header[1], 0)
        count, encoding = header[5][1], header[5][2]
        if count > ROWS_A_PAGE:
            raise ValueError(f'a page of {count} rows')
        if strict and count > 1 and len(page) > PAGE_BYTES + LEVEL_BYTES:
            raise ValueError(f'a page of {count} rows and {len(page)} bytes')
        present = [1] * count
        if name == 'payload':
            size = int.from_bytes(page[:4], 'little')
            present, page = hybrid(page[4:4 + size], 1, count), page[4 + size:]
        if name in ('offset', 'ts'):
            expect(f'encoding of {name}', encoding, DELTA_BINARY_PACKED)
            found = delta(page, count)
        elif encoding in (RLE_DICTIONARY, PLAIN_DICTIONARY) and dictionary is not None:
            found = [dictionary[i] for i in hybrid(page[1:], page[0], count)]
        else:
            expect(f'encoding of {name}', encoding, PLAIN)
            found = byte_arrays(page, sum(present))
        value = iter(found)
        values += [next(value) if p else None for p in present]
    expect(f'the end of {name}', (at, len(values)), (end, rows))
    check_statistics(name, meta, values)
    return values


def footer(data: bytes) -> dict:
    if data[:4] != b'PAR1' or data[-4:] != b'PAR1':
        raise ValueError('no Parquet file')
    size = int.from_bytes(data[-8:-4], 'little')
    return Thrift(data, len(data) - 8 - size).struct()


def read_records(data: bytes, queue: str, compression: str, foreign: bool = False) -> Iterator[tuple]:
    """(partition, offset, transaction id, ts, payload or None) of every record; ValueError for a fault.
    `foreign`: a file that the original wrote, with a page index and more key/value metadata."""
    meta = footer(data)
    check_schema(meta[2])
    metadata = {kv[1].decode(): kv[2].decode() for kv in meta.get(5, [])}
    if foreign:
        metadata.pop('ARROW:schema', None)
    else:
        expect('created_by', meta.get(6), b'queen-s3')
    expect('key/value metadata', metadata, {'queen.envelope': '1', 'queen.queue': queue})
    expect('column orders', meta.get(7), [{1: {}}] * 5)
    groups = meta[4]
    expect('rows', sum(g[3] for g in groups), meta[3])
    for i, group in enumerate(groups):
        rows = group[3]
        if rows > ROWS_A_GROUP or i < len(groups) - 1 and rows != ROWS_A_GROUP:
            raise ValueError(f'row group {i} has {rows} rows')
        expect('columns', len(group[1]), 5)
        yield from zip(*(read_chunk(data, name, chunk, CODEC[compression], rows, not foreign)
                         for name, chunk in zip(COLUMNS, group[1])))
