"""The development broker as a process.

    with DevBroker(folder, '--load', 'events.ndjson', '--queue', 'orders', '--partition-by', 'page') as broker:
        broker.url
        broker.call('POST', '/api/v1/partitions/changed', {'entries': []})
"""
import json
import pathlib
import re
import urllib.parse

import lake
from http_client import Answer, request
from processes import BUILD, DEADLINE, Program

READY = re.compile(r'^devbroker listening on http://.*:(\d+)$', re.M)


class DevBroker:
    def __init__(self, folder: pathlib.Path, *arguments, deadline: float = DEADLINE,
                 environment: dict[str, str] | None = None, binary: pathlib.Path = BUILD / 'tests/devbroker'):
        """Starts it and waits for the line that names its address. `folder` gets devbroker.log."""
        self.folder = pathlib.Path(folder)
        self.arguments = [str(a) for a in arguments]
        self.environment = environment
        self.binary = binary
        self.url = ''
        self.port = 0
        self.token = ''  # what calls from here show to a broker that asks for one
        self.program: Program | None = None
        self.start(deadline=deadline)

    def start(self, *more, deadline: float = DEADLINE) -> None:
        """Starts it again with the same arguments and `more` (a log that it keeps in memory is gone by then)."""
        self.stop()
        self.program = Program([self.binary, *self.arguments, *more], self.folder / 'devbroker.log', self.environment)
        self.program.wait_line('devbroker listening on ', deadline)
        found = self.program.wait_for(lambda: READY.search(self.program.text()), 'address', deadline)
        self.port = int(found[1])
        self.url = f'http://127.0.0.1:{self.port}'

    def request(self, method: str, path: str, document=None, raw: bytes | None = None, timeout: float = 30) -> Answer:
        """The answer as it is, whatever its status."""
        body = raw if raw is not None else None if document is None else json.dumps(document).encode()
        headers = {'Content-Type': 'application/json'}
        if self.token:
            headers['Authorization'] = f'Bearer {self.token}'
        return request(method, self.url + path, body, headers, timeout)

    def call(self, method: str, path: str, document=None, timeout: float = 30):
        """The answer's JSON (None for an empty body); anything but a 2xx is an error."""
        answer = self.request(method, path, document, timeout=timeout)
        if not 200 <= answer.status < 300:
            raise AssertionError(f'{method} {path}: {answer.status} {answer.text[:500]}')
        return json.loads(answer.body) if answer.body else None

    def push(self, items: list[dict]) -> list[dict]:
        """Records into the log: {queue, partition, payload, transactionId?} each."""
        return self.call('POST', '/api/v1/push', {'items': items})

    def kv(self, *operations: dict) -> dict:
        """One kv batch; `ns` is filled in."""
        return self.call('POST', '/api/v1/kv', {'operations': [{'ns': 'queen-s3', **o} for o in operations]})

    def document(self, queue: str, which: str, sink: str = 'default'):
        """The value of a queue's `intent`, `committed` or `lease`, or None."""
        result = self.kv({'op': 'get', 'key': f's3:{sink}:{queue}:{which}'})['results'][0]
        return result['value'] if result.get('found') else None

    def now(self) -> str:
        """The broker's safeTime as it spells it."""
        return self.call('POST', '/api/v1/partitions/changed', {'entries': []})['safeTime']

    def log(self, queue: str, deleted: bool = False) -> list[lake.Record]:
        """The queue's log as the broker itself knows it, what tests hold a lake against. `deleted`: also what
        retention, holes and deletions took away. (Raw line breaks in payloads come as blanks.)"""
        query = urllib.parse.urlencode({'queue': queue} | ({'deleted': 'true'} if deleted else {}))
        answer = request('GET', f'{self.url}/_dev/log?{query}', timeout=120)
        if answer.status != 200:
            raise AssertionError(f'/_dev/log: {answer.status} {answer.text[:500]}')
        return [lake.line_record(line) for line in answer.text.split('\n')[:-1]]

    def fault(self, **rule) -> None:
        """One thing to go wrong: route=, kind=, count=, skip=, status=, ... as GET /_dev/ lists them."""
        self.call('POST', '/_dev/faults', rule)

    def clear_faults(self) -> None:
        self.call('DELETE', '/_dev/faults')

    def stats(self) -> dict:
        """Calls by route."""
        return self.call('GET', '/_dev/stats')

    def control(self, what: str, **document):
        """POST /_dev/<what>: hole, trim, retain, recreate, delete-partition, safe-time, clock, database, ..."""
        return self.call('POST', f'/_dev/{what}', document)

    def partitions(self, queue: str) -> list[dict]:
        """All partitions of a queue, by a full enumeration."""
        found, after = [], None
        while True:
            asked = {'queue': queue, 'since': None, 'after': after, 'limit': 1000}
            entry = self.call('POST', '/api/v1/partitions/changed', {'entries': [asked]})['entries'][0]
            found += entry.get('partitions', [])
            after = entry.get('next')
            if not after:
                return found

    def stop(self) -> None:
        if self.program:
            self.program.kill()
            self.program = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
