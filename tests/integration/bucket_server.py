"""A bucket on 127.0.0.1 that does what a test says: it keeps what is put; a test can refuse, delay or hold requests.
It checks no signature (gateway.py does).

    with BucketServer() as s3:
        s3.answer = lambda request: 503 if request.method == 'PUT' else None   # None: as S3 would
        s3.objects['bucket/key']
"""
import dataclasses
import hashlib
import http.server
import threading
import urllib.parse

from processes import DEADLINE


@dataclasses.dataclass
class Request:
    method: str
    key: str  # `bucket/key`, decoded
    headers: dict[str, str]
    body: bytes


class BucketServer:
    def __init__(self):
        self.objects: dict[str, bytes] = {}
        self.requests: list[Request] = []
        self.answer = lambda request: None
        self.changed = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def handle_any(self):
                length = int(self.headers.get('Content-Length') or 0)
                body = self.rfile.read(length)
                if len(body) < length:  # whoever sent it was killed
                    self.close_connection = True
                    return
                key = urllib.parse.unquote(self.path.split('?')[0])[1:]
                request = Request(self.command, key, {n.lower(): v for n, v in self.headers.items()}, body)
                with outer.changed:
                    outer.requests.append(request)
                    outer.changed.notify_all()
                answer = outer.answer(request)
                status, content = answer if isinstance(answer, tuple) else (answer, b'')
                if status is None:
                    status, content = outer.serve(request)
                self.send_response(status)
                if status == 200 and self.command == 'PUT':
                    self.send_header('ETag', '"' + hashlib.md5(body).hexdigest() + '"')
                self.send_header('Content-Length', str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_PUT = do_DELETE = do_GET = do_POST = do_HEAD = handle_any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a client that is killed, or ends what it holds

        self.server = Server(('127.0.0.1', 0), Handler)
        self.endpoint = f'http://127.0.0.1:{self.server.server_address[1]}'
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.02})
        self.thread.start()

    def serve(self, request: Request) -> tuple[int, bytes]:
        with self.changed:
            if request.method == 'PUT':
                self.objects[request.key] = request.body
            elif request.method == 'DELETE':
                self.objects.pop(request.key, None)
                self.changed.notify_all()
                return 204, b''
            self.changed.notify_all()
        return 200, b''

    def wait_for(self, condition, what: str, timeout: float = DEADLINE):
        """The first true answer of condition(), asked again after each request."""
        with self.changed:
            if not self.changed.wait_for(condition, timeout):
                raise AssertionError(f'after {timeout} s: no {what}; {sorted(self.objects)}')
            return condition()

    def puts(self, key_part: str = '') -> list[Request]:
        with self.changed:
            return [r for r in self.requests if r.method == 'PUT' and key_part in r.key]

    def keys(self) -> list[str]:
        with self.changed:
            return sorted(self.objects)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
