"""The whole way into a real gateway that checks signatures: path style and virtual-host addressing, parts, TLS, and
what is wrong with keys, endpoint or region at boot."""
import http.server
import pathlib
import re
import signal
import threading
import unittest
import urllib.parse

import mirror
from gateway import Gateway, make_certificate
from processes import free_port
from sink import Sink, command

MIB = 1 << 20


class Folder(http.server.BaseHTTPRequestHandler):
    """As much of S3 as one PUT needs, and each request's Host kept: nothing checks a signature here."""
    protocol_version = 'HTTP/1.1'
    hosts: set[str]
    folder: pathlib.Path

    def answer(self, status: int, body: bytes = b'') -> None:
        self.hosts.add(self.headers['Host'])
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def path_of(self) -> pathlib.Path:
        return self.folder / urllib.parse.unquote(urllib.parse.urlsplit(self.path).path[1:])

    def do_HEAD(self):
        self.answer(200 if self.path_of().is_file() else 404)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.path_of().parent.mkdir(parents=True, exist_ok=True)
        self.path_of().write_bytes(body)
        self.answer(200)

    def do_GET(self):
        if 'list-type=2' in self.path:
            self.answer(200, b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
                             b'</ListBucketResult>')
        else:
            path = self.path_of()
            self.answer(200, path.read_bytes()) if path.is_file() else self.answer(404)

    def do_DELETE(self):
        self.path_of().unlink(missing_ok=True)
        self.answer(204)

    def log_message(self, *_):
        pass


class S3Test(mirror.MirrorTest):
    def gateway(self, tls: bool = False) -> Gateway:
        s3 = Gateway(self.folder, *(make_certificate(self.folder / 'tls') if tls else ()))
        self.addCleanup(s3.stop)
        self.bucket = s3.make_bucket('lake').relative_to(self.folder.resolve()).as_posix()
        return s3

    def whole_way(self, s3: Gateway, **environment) -> Sink:
        broker = self.broker('--rate', 3000, '--rate-records', 3000)
        sink = self.sink(broker, **{**s3.sink_environment('lake'), **environment})
        self.wait_mirrored(broker, sink, 3000)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)
        self.assertEqual([line for line in s3.requests() if re.search(r'\| (?:403|400) \|', line)], [])
        return sink

    def test_path_style(self):
        self.whole_way(self.gateway())

    def test_tls(self):
        s3 = self.gateway(tls=True)
        self.assertTrue(s3.endpoint.startswith('https://'))
        self.whole_way(s3)

    def test_tls_by_an_authority_nobody_knows(self):
        s3, broker = self.gateway(tls=True), self.broker()
        environment = {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': 'orders', **s3.sink_environment('lake')}
        self.refused({**environment, 'QUEEN_S3_CA_FILE': None}, 'certificate')

    def test_odd_names(self):
        """Queues and a prefix whose keys need escaping, once for the key and once more for the request."""
        s3, broker = self.gateway(), self.broker()
        self.prefix = "a b/c+d/é='(x)~&!*"
        queues = ['a/b', 'caffè', 'dt=x', 'with blank', '+', '%41', '*x', 'n' * 200, "it's", '~', '日本語']
        for queue in queues:
            broker.push(mirror.records(20, queue=queue))
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(queues), QUEEN_S3_PREFIX=self.prefix,
                         **s3.sink_environment('lake'))
        for queue in queues:
            self.wait_mirrored(broker, sink, 20, queue=queue)
        self.assertEqual(sink.terminate(), 0)
        for queue in queues:
            with self.subTest(queue=queue):
                self.hold(broker, queue)

    def large(self, **environment):
        """A backlog that makes windows of more than 40 MB, uncompressed."""
        s3 = self.gateway()
        path = self.folder / 'records.ndjson'
        path.write_text(''.join(f'{{"p":"p-{i % 7}","text":"{chr(97 + i % 26) * 20000}"}}\n' for i in range(500)))
        broker = self.broker('--load', path, '--partition-by', 'p', '--load-repeat', 10, '--segment-records', 20,
                             '--base-time', '2026-03-01T10:00:00.000000Z', '--time-step-us', 10000)
        sink = self.sink(broker, QUEEN_S3_COMPRESSION='none', QUEEN_S3_TARGET_MB='45', QUEEN_S3_MAX_WINDOW_MS='300000',
                         QUEEN_S3_MULTIPART_THRESHOLD_MB='5', **s3.sink_environment('lake'), **environment)
        return s3, broker, sink

    def finish_large(self, s3, broker, sink) -> None:
        self.wait_mirrored(broker, sink, 5000, deadline=90)
        self.assertEqual(sink.terminate(), 0)
        self.hold_lines(broker)
        self.assertGreater(max(m['bytes'] for m in self.manifests()), 40 * MIB)
        self.assertTrue(any('uploadId=' in line or 'partNumber=' in line or 'POST' in line for line in s3.requests()))

    def test_multipart(self):
        s3, broker, sink = self.large()
        self.finish_large(s3, broker, sink)
        self.assertGreater(sink_requests(s3, 'POST'), 3)

    def test_killed_in_a_multipart_upload(self):
        """By a crash point after the first part, then from outside while a part is on its way."""
        s3, broker, sink = self.large(QUEEN_S3_CRASH_AT='mid_upload')
        self.assertEqual(sink.wait(), -signal.SIGKILL)
        sink.start(QUEEN_S3_CRASH_AT='never')
        sink.program.wait_for(lambda: sink.metric('queen_s3_s3_requests_total', op='multipart_part') >= 1
                              or any('PUT' in line for line in s3.requests()), 'a part')
        sink.kill()
        sink.start()
        self.finish_large(s3, broker, sink)

    def test_gateway_goes_and_comes_in_a_multipart_upload(self):
        s3, broker, sink = self.large()
        sink.program.wait_for(lambda: sink_requests(s3, 'PUT') >= 2, 'two parts')
        s3.stop()
        sink.program.wait_for(lambda: sink.metric('queen_s3_s3_requests_total', code='0') > 0, 'a failed request')
        s3.start()
        self.finish_large(s3, broker, sink)

    def refused(self, environment: dict, *parts: str) -> None:
        result = command({**environment, 'QUEEN_S3_LISTEN': f'127.0.0.1:{free_port()}'}, deadline=60)
        text = (result.stdout + result.stderr).decode()
        self.assertEqual(result.returncode, 3, text)
        said = [line for line in text.splitlines() if line.startswith('queen-s3: ') and all(p in line for p in parts)]
        self.assertEqual(len(said), 1, f'no one line with {parts}:\n{text}')

    def test_what_is_wrong_at_boot(self):
        s3, broker = self.gateway(), self.broker()
        good = {'QUEEN_URL': broker.url, 'QUEEN_S3_QUEUES': 'orders', **s3.sink_environment('lake')}
        check = ('QUEEN_S3_ACCESS_KEY', 'QUEEN_S3_SECRET_KEY', 'QUEEN_S3_PATH_STYLE', 'QUEEN_S3_BUCKET')
        for changes, parts in (
                ({'QUEEN_S3_SECRET_KEY': 'wrong'}, (*check, '403')),
                ({'QUEEN_S3_REGION': 'us-west-9'}, ('QUEEN_S3_REGION',)),
                ({'QUEEN_S3_ENDPOINT': f'http://127.0.0.1:{free_port()}'}, ('QUEEN_S3_ENDPOINT', *check))):
            with self.subTest(**changes):
                self.refused({**good, **changes}, *parts)

    def test_virtual_host(self):
        """The bucket is in the Host, and only there."""
        hosts: set[str] = set()
        folder = self.folder / self.bucket
        handler = type('Handler', (Folder,), {'hosts': hosts, 'folder': folder})
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        port = server.server_address[1]
        broker = self.broker()
        broker.push(mirror.records(100))
        sink = self.sink(broker, QUEEN_S3_ENDPOINT=f'http://s3.localhost:{port}', QUEEN_S3_REGION='eu-central-1',
                         QUEEN_S3_BUCKET='my-lake', QUEEN_S3_ACCESS_KEY='key', QUEEN_S3_SECRET_KEY='secret')
        self.wait_mirrored(broker, sink, 100)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)
        self.assertEqual(hosts, {f'my-lake.s3.localhost:{port}'})


def sink_requests(s3: Gateway, method: str) -> int:
    return sum(method in line for line in s3.requests())


if __name__ == '__main__':
    unittest.main()
