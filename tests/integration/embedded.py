"""The development broker with the sink embedded: the sink as the child of a broker.

    with Embedded(folder, {'QUEEN_S3_QUEUES': 'orders', **file_lake(folder)}, '--load', 'events.ndjson') as broker:
        broker.sink.wait_health()
        broker.status()                           # the s3 block of GET /status
"""
import os
import pathlib

from devbroker import DevBroker
from processes import BUILD, DEADLINE, alive, free_port, tree
from sink import BASE, Endpoint


class Embedded(DevBroker):
    def __init__(self, folder: pathlib.Path, environment: dict[str, str], *arguments, **options):
        """Environment: the broker's, so the sink's: BASE, then what is given (None takes a name out)."""
        listen = environment.get('QUEEN_S3_LISTEN') or f'127.0.0.1:{free_port()}'
        whole = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'HOME': str(folder), 'LC_ALL': 'C', **BASE,
                 'QUEEN_S3_EMBEDDED': 'true', 'QUEEN_S3_BIN': str(BUILD / 'queen-s3'), 'QUEEN_S3_LISTEN': listen,
                 **environment}
        whole.update({k: v for k, v in os.environ.items() if k.endswith('SAN_OPTIONS')})
        self.sink_url = 'http://' + listen
        super().__init__(folder, *arguments, **options,
                         environment={k: str(v) for k, v in whole.items() if v is not None})

    @property
    def pid(self) -> int:
        return self.program.pid

    @property
    def sink(self) -> Endpoint:
        return Endpoint(self.sink_url, self.program)

    def text(self) -> str:
        return self.program.text()

    def status(self) -> dict:
        return self.call('GET', '/status')['s3']

    def wait_status(self, deadline: float = DEADLINE, **fields) -> dict:
        """The first s3 block with these fields."""
        def look():
            status = self.status()
            return status if all(status[name] == value for name, value in fields.items()) else None
        return self.program.wait_for(look, f's3 block with {fields}', deadline)

    def supervisor(self) -> int:
        return self.status()['pid']

    def workers(self) -> list[int]:
        """Those of the sink; its probe is in its own group."""
        return [pid for pid in self.descendants() if pid != self.supervisor() and os.getpgid(pid) == pid]

    def descendants(self) -> list[int]:
        """All processes of the sink."""
        return alive(tree(self.pid)[1:])
