"""One small HTTP request: a status, headers and a body, whatever the status; status 0 when nobody answers."""
import dataclasses
import http.client
import ssl
import urllib.parse


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors='replace')


def request(method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None,
            timeout: float = 30, insecure: bool = False) -> Answer:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == 'https':
        context = ssl._create_unverified_context() if insecure else ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    try:
        connection.request(method, parts.path + ('?' + parts.query if parts.query else ''), body, headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    except (OSError, http.client.HTTPException):
        return Answer(0, {}, b'')
    finally:
        connection.close()
