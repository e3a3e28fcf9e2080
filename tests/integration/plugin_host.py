"""The connector plugin in a process of its own, called as PicoMQ's runtime calls it.

    with Host() as host:
        host.open(1, {'bucket': …})                 # what the call returned
        host.consume(1, 'orders', [Record(0, b'{}')], schema='json')
        call = host.start('consume', …)             # on a thread of its own; call.result()
        host.logs                                   # (level, message) so far
"""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import threading

from processes import BUILD, DEADLINE

LIBRARY = BUILD / 'libpicomq_connector_s3_sink.so'
SCHEMAS = ['json', 'raw', 'text', 'proto', 'flatbuffer', 'avro']
MOMENT = 1788470104118  # 2026-09-03T21:15:04.118Z
ERROR, WARN, INFO, DEBUG = 4, 3, 2, 1


@dataclasses.dataclass
class Record:
    offset: int
    payload: bytes = b'{}'
    timestamp: int = MOMENT
    key: bytes | None = None
    headers: bytes = b''


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return varint(len(value)) + value


def headers(values: dict[str, bytes]) -> bytes:
    return varint(len(values)) + b''.join(text(name) + text(value) for name, value in values.items())


def topic_buffer(topic: str) -> bytes:
    return text(topic)


def batch_buffer(partition: int, current_offset: int, schema: str) -> bytes:
    return varint(partition << 1 if partition >= 0 else (-partition << 1) - 1) + varint(current_offset) + \
        varint(SCHEMAS.index(schema))


def messages_buffer(records: list[Record], schema: str = 'json') -> bytes:
    parts = [varint(SCHEMAS.index(schema)), varint(len(records))]
    for record in records:
        parts += [varint(record.offset), varint(record.timestamp),
                  b'\0' if record.key is None else b'\1' + text(record.key), text(record.headers), text(record.payload)]
    return b''.join(parts)


class Call:
    def __init__(self, tag: str):
        self.tag = tag
        self._done = threading.Event()
        self._result: int | None = None

    def finish(self, result: int | None) -> None:
        self._result = result
        self._done.set()

    def done(self) -> bool:
        return self._done.is_set()

    def result(self, timeout: float = DEADLINE) -> int:
        if not self._done.wait(timeout):
            raise AssertionError(f'{self.tag}: no answer in {timeout} s')
        if self._result is None:
            raise AssertionError(f'{self.tag}: the host has ended')
        return self._result


class Host:
    def __init__(self, environment: dict[str, str] | None = None, library: pathlib.Path = LIBRARY):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith('AWS_')}
        self.process = subprocess.Popen([BUILD / 'tests/tools/plugin_host', library], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=inherited | (environment or {}))
        self.logs: list[tuple[int, str]] = []
        self.calls: dict[str, Call] = {}
        self.count = 0
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            first, rest = line.decode().rstrip('\n').split(' ', 1)
            with self.changed:
                if first == 'log':
                    level, target, message = rest.split(' ', 2)
                    assert target == 'picomq_connector_s3_sink', target
                    self.logs.append((int(level), message))
                else:
                    self.calls.pop(first).finish(int(rest))
                self.changed.notify_all()
        with self.changed:
            for call in self.calls.values():
                call.finish(None)

    def _send(self, tag: str, *words: str) -> Call:
        call = Call(f'{tag} {words[0]}')
        with self.changed:
            self.calls[tag] = call
        try:
            self.process.stdin.write(' '.join([tag, *words]).encode() + b'\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            call.finish(None)
        return call

    def start(self, *words: str) -> Call:
        """On a thread of its own."""
        self.count += 1
        return self._send(f'&{self.count}', *words)

    def call(self, *words: str, timeout: float = DEADLINE) -> int:
        self.count += 1
        return self._send(f'{self.count}', *words).result(timeout)

    @staticmethod
    def hex(value: bytes) -> str:
        return value.hex() or '-'

    def open(self, number: int, config) -> int:
        """config: a dictionary, or the text itself."""
        value = config if isinstance(config, bytes) else json.dumps(config).encode()
        return self.call('open', str(number), self.hex(value))

    def consume_words(self, number: int, topic: str, records: list[Record], schema: str = 'json',
                      partition: int = 0) -> list[str]:
        last = records[-1].offset if records else 0
        return ['consume', str(number), self.hex(topic_buffer(topic)), self.hex(batch_buffer(partition, last, schema)),
                self.hex(messages_buffer(records, schema))]

    def consume(self, number: int, topic: str, records: list[Record], schema: str = 'json', partition: int = 0) -> int:
        return self.call(*self.consume_words(number, topic, records, schema, partition))

    def start_consume(self, number: int, topic: str, records: list[Record], schema: str = 'json',
                      partition: int = 0) -> Call:
        return self.start(*self.consume_words(number, topic, records, schema, partition))

    def close(self, number: int, timeout: float = DEADLINE) -> int:
        return self.call('close', str(number), timeout=timeout)

    def messages(self, level: int) -> list[str]:
        with self.changed:
            return [message for at, message in self.logs if at == level]

    def wait_for_log(self, part: str, timeout: float = DEADLINE) -> str:
        def found():
            return next((message for _, message in self.logs if part in message), None)
        with self.changed:
            if not self.changed.wait_for(found, timeout):
                raise AssertionError(f'no log line with {part!r} in {timeout} s: {self.logs}')
            return found()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)

    def stop(self) -> int:
        """Ends it as a host ends; its exit status, negative for a signal."""
        self.process.stdin.close()
        status = self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)
        self.process.stdout.close()
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
