"""What producers may write arrives as they wrote it, whatever it looks like: the lake's lines and the broker's own
export of its log are compared as bytes."""
import json
import pathlib
import unittest

import lake
import mirror
from processes import ROOT
from sink import file_lake

NESTED = ROOT.parent / 'shared/data/nested-unicode.ndjson'
COMPRESSIONS = ('zstd', 'gzip', 'none')

# Payloads as their bytes stand on the wire.
PAYLOADS = {
    'line feeds': b'{\n  "a": 1,\n  "b": [\n    1,\n    2\n  ]\n}',
    'CRLF': b'{\r\n  "a": 1\r\n}',
    'lone CR': b'[1,\r2]',
    'tabs': b'{\t"a"\t:\t1\t,\t"b"\t:\t[\t]\t}',
    'all blanks': b'[ \t\r\n1 \t\r\n, \t\r\n2 \t\r\n]',
    'large numbers': b'[1e400,-1e400,12345678901234567890,123456789012345678901234567890.5,1E-400,0.1e+7]',
    'zeros': b'[-0,0.0,-0.0,0e0,1.10,100000000000000000000000000000000]',
    'one long number': b'[' + b'9' * 100000 + b']',
    'lone surrogates': rb'["\ud800","\udc00","\udc00\ud800","x\uDBFFy"]',
    'surrogate pair': rb'"\ud83d\ude00"',
    'NUL': rb'"\u0000 and \u0000"',
    'duplicate keys': b'{"a":1,"a":2,"a":{"a":3,"a":4}}',
    'escapes': rb'"\/ \u0041 \b\f\n\r\t \\ \" \u00e8"',
    'raw UTF-8': '"caffè 日本語 😀 \u2028 \u2029 \x7f \ufeff \U0010ffff"'.encode(),
    'keys': rb'{"":1,"\"":2,"\\":3,"\u0000":4,"payload":5,"offset":6,"}":7,"{":8,"]":9,",":10,":":11}',
    'what an envelope looks like': rb'{"offset":0,"transactionId":"x","payload":null,"ts":"2026-01-01T00:00:00Z"}]}]}',
    'text of an envelope': json.dumps('"},"ts":"2026-01-01T00:00:00.000000Z"}],"highWatermark":0}').encode(),
    'backslashes': b'"' + rb'\\' * 64 + rb'\"' + b'"',
    'null': b'null', 'true': b'true', 'false': b'false', 'zero': b'0', 'empty string': b'""', 'empty list': b'[]',
    'empty object': b'{}', 'object of one blank': b'{ }',
    'lists, 100 000 deep': b'[' * 100000 + b']' * 100000,
    'objects, 100 000 deep': b'{"a":' * 100000 + b'1' + b'}' * 100000,
}
PAYLOADS['what an envelope looks like'] = PAYLOADS['what an envelope looks like'][:-4]

PARTITIONS = [
    '', ' ', '   ', '"', '\\', '"quoted"', "it's", 'a/b', '/', '//', '%', '%41', '100%', '.', '..', '~', 'a~b', 'A',
    'a', 'caffè', '日本語', '😀', '\x7f', 'a\u2028b', '\u2029', '\ufeff', '\u0080', 'p' * 3000, 'è' * 1500, 'Default',
    'null', 'x=y', 'a,b', '\\u0041', '\U0010ffff', '\uffff', '[', '}', 'queue=orders']
QUEUES = [
    'a/b', '.', '..', '%', '%41', 'caffè', '日本語', 'dt=2026-01-01', 'with blank', '"', '\\', "it's", 'a~b', '~', '\x7f',
    'a\u2028b', '-', '_queen', 'windows', 'Q' * 161, 'q' * 160, 'è' * 53, 'è' * 54, 'n' * 1000, ':', 's3:default:x',
    '{', '[]', '😀', '#', '?x=1&y', '+', ';', '$HOME', '*x']


def item(queue: str, partition: str, transaction_id: str, payload: bytes) -> bytes:
    names = {'queue': queue, 'partition': partition, 'transactionId': transaction_id}
    return json.dumps(names, ensure_ascii=False).encode()[:-1] + b',"payload":' + payload + b'}'


class PayloadsTest(mirror.MirrorTest):
    def push(self, broker, items: list[bytes]) -> None:
        answer = broker.request('POST', '/api/v1/push', raw=b'{"items":[' + b','.join(items) + b']}', timeout=60)
        self.assertEqual(answer.status, 201, answer.text[:500])
        self.assertEqual({s['status'] for s in json.loads(answer.body)}, {'queued'})

    def each_compression(self, test) -> None:
        for compression in COMPRESSIONS:
            with self.subTest(compression=compression):
                self.setUp()
                test(compression)
                self.doCleanups()

    def mirror_all(self, items: list[bytes], environment: dict | None = None) -> list[bytes]:
        broker = self.broker()
        self.push(broker, items)
        sink = self.sink(broker, **(environment or {}))
        self.wait_mirrored(broker, sink, len(items))
        self.assertEqual(sink.terminate(), 0)
        lines = self.hold_lines(broker)
        self.hold(broker)
        return lines

    def test_payloads(self):
        """Each on its own, and once more surrounded by others in one partition."""
        items = [item(self.queue, f'own {name}', name, payload) for name, payload in PAYLOADS.items()]
        items += [item(self.queue, 'all', f'all {name}', payload) for name, payload in PAYLOADS.items()]

        def test(compression):
            lines = self.mirror_all(items, {'QUEEN_S3_COMPRESSION': compression})
            found = {json.loads(lake.LINE.fullmatch(line.decode())[3]): line for line in lines}
            for name, payload in PAYLOADS.items():
                one_line = payload.replace(b'\r', b' ').replace(b'\n', b' ')
                for of in (name, f'all {name}'):
                    self.assertTrue(found[of].endswith(b',"payload":' + one_line + b'}'), of)
        self.each_compression(test)

    def test_payloads_of_each_length(self):
        """Around every multiple that vector instructions care for, ending in what needs care."""
        items = []
        for size in range(1, 200):
            text = b'x' * size
            items += [item(self.queue, f'p{size % 3}', f't{size}-{i}', p) for i, p in enumerate((
                b'"' + text + rb'\""', b'"' + text + rb'\\"', b'["' + text + b'",\n1]', b' ' * size + b'1',
                text.replace(b'x', b'7')))]
        self.mirror_all(items)

    def test_a_payload_left_empty_is_null(self):
        """The broker's answer says null for it, and so does the lake."""
        lines = self.mirror_all([item(self.queue, 'p', 't', b'null')])
        self.assertTrue(lines[0].endswith(b'"payload":null}'))

    def test_sixty_megabytes_in_one_record(self):
        """One record as large as a push can carry, between two small ones of its partition and beside others."""
        large = b'"' + (b'0123456789 abcdef ' + '日本'.encode() + rb'\u00e8\n') * (60 * 1024 * 1024 // 32) + b'"'
        self.assertGreater(len(large), 55 * 1024 * 1024)
        broker = self.broker()
        self.push(broker, [item(self.queue, 'large', 'before', b'1'), item(self.queue, 'other', 'o', b'2')])
        self.push(broker, [item(self.queue, 'large', 'large', large)])
        self.push(broker, [item(self.queue, 'large', 'after', b'3')])
        sink = self.sink(broker)
        self.wait_mirrored(broker, sink, 4)
        self.assertEqual(sink.terminate(), 0)
        self.hold_lines(broker)
        self.hold(broker)

    def test_partition_names(self):
        items = [item(self.queue, name, f'{i} {n}', b'%d' % n) for i, name in enumerate(PARTITIONS) for n in range(3)]

        def test(compression):
            lines = self.mirror_all(items, {'QUEEN_S3_COMPRESSION': compression})
            self.assertEqual({json.loads(line)['partition'] for line in lines}, set(PARTITIONS))
        self.each_compression(test)

    def test_partition_names_after_a_restart(self):
        """A checkpoint and a fetch in the middle: positions are found again under each name."""
        broker = self.broker()
        for n in range(2):
            self.push(broker, [item(self.queue, name, f'{i} {n}', b'%d' % n) for i, name in enumerate(PARTITIONS)])
            sink = self.sink(broker, QUEEN_S3_CHECKPOINT_EVERY='1')
            self.wait_mirrored(broker, sink, (n + 1) * len(PARTITIONS))
            self.assertEqual(sink.terminate(), 0)
        self.hold_lines(broker)
        self.hold(broker)

    def test_transaction_ids(self):
        """Up to 65 535 bytes, and with everything that has to be escaped or must not be."""
        ids = ['', ' ', '"', '\\', '\\"', '/', 'a"b\\c/d', 'caffè', '日本語😀', '\x7f', 'x\u2028y', '\ufeff', 't' * 65535,
               '"' * 32767, '\\' * 20000, 'è' * 32767, '\\u0041', 'null', '},', ']}', '"payload":1']
        items = [item(self.queue, f'p{i % 2}', name, b'{"i":%d}' % i) for i, name in enumerate(ids) if name]

        def test(compression):
            lines = self.mirror_all(items, {'QUEEN_S3_COMPRESSION': compression})
            self.assertEqual({json.loads(line)['transactionId'] for line in lines}, set(ids) - {''})
        self.each_compression(test)

    def test_queue_names(self):
        """All in one sink: keys, documents and metrics of each are its own."""
        broker = self.broker()
        for name in QUEUES:
            self.push(broker, [item(name, partition, partition + name[:100], json.dumps(name).encode())
                               for partition in ('p', 'a/b', '')])
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(QUEUES))
        for name in QUEUES:
            with self.subTest(queue=name):
                self.wait_mirrored(broker, sink, 3, queue=name)
                sink.wait_metric('queen_s3_records_written_total', 3, queue=name)
        self.assertEqual(sink.terminate(), 0)
        for name in QUEUES:
            with self.subTest(queue=name):
                self.hold_lines(broker, name)
                self.hold(broker, name)

    def test_nested_documents(self):
        """Real nested documents, many of them Japanese; generated ones where the sample isn't there."""
        if NESTED.exists():
            texts = [line for line in NESTED.read_bytes().split(b'\n') if line.strip()]
        else:
            print(f'{NESTED} is not there: documents of its kind are generated')
            texts = []
            for i in range(100):
                document = {'名前': f'文書{i}', 'text': 'こんにちは"\\/' * (i + 1), 'n': i / 7}
                for _ in range(i):
                    document = {'子': [document, None, True], 'x': '\u2028'}
                texts.append(json.dumps(document, ensure_ascii=i % 2 == 0).encode())
        self.mirror_all([item(self.queue, f'p{i % 5}', f't{i}', text) for i, text in enumerate(texts)])

    def test_two_lakes_have_the_same_lines(self):
        """A lake written with another compression by another sink has the same lines."""
        broker = self.broker()
        self.push(broker, [item(self.queue, 'p', name, payload) for name, payload in PAYLOADS.items()])
        lines = []
        for compression in COMPRESSIONS:
            self.bucket = f'lake-{compression}'
            sink = self.sink(broker, f'sink-{compression}', QUEEN_S3_SINK=compression,
                             QUEEN_S3_COMPRESSION=compression, **file_lake(self.folder, self.bucket))
            sink.wait_records(len(PAYLOADS))
            self.assertEqual(sink.terminate(), 0)
            lines.append(self.hold_lines(broker))
            lake.assert_lake(self, pathlib.Path(self.lake_folder), self.queue, sink=compression,
                             log=broker.log(self.queue), complete=True,
                             committed=broker.document(self.queue, 'committed', compression))
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(lines[0], lines[2])


if __name__ == '__main__':
    unittest.main()
