"""A Kafka broker for the connector's tests: one in memory (librdkafka's own), and Apache Kafka itself in KRaft mode,
from the jars that maven fetches once into build/kafka.

    broker = kafka.Mock(folder)          or kafka.Broker(folder)
    broker.create('orders', 2)
    broker.produce([kafka.Record('orders', 0, b'{}')])
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess

from processes import BUILD, DEADLINE, ROOT, Program, free_port

VERSION = '3.7.1'
TOOL = BUILD / 'tests/tools/kafka'
POM = f'''<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
'''
PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies'


@dataclasses.dataclass
class Record:
    topic: str
    partition: int
    value: bytes | None
    key: bytes | None = None
    timestamp: int = 1788516000000
    headers: tuple[tuple[str, bytes], ...] = ()

    def line(self) -> str:
        def spell(value: bytes | None) -> str:
            return '-' if value is None else value.hex()
        fields = [self.topic, str(self.partition), str(self.timestamp), spell(self.key), spell(self.value)]
        return ' '.join(fields + [part for name, value in self.headers for part in (name, spell(value))])


def define(path: pathlib.Path, key: str, topic: str, folder: pathlib.Path) -> None:
    """A connector's definition, plain as can be: from one topic into the folder <folder>/kafka."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'''
type = "sink"
key = "{key}"
enabled = true
version = 0
name = "test"
path = "x"
[[topics]]
topics = ["{topic}"]
schema = "json"
[plugin_config]
endpoint = "file://{folder}"
bucket = "kafka"
region = "r"
path_template = "{{topic}}"
''')


class Client:
    servers: str

    def tool(self, *arguments, text: str = '') -> str:
        done = subprocess.run([TOOL, *map(str, arguments)], input=text, capture_output=True, text=True,
                              timeout=DEADLINE)
        if done.returncode:
            raise AssertionError(f'kafka {arguments[0]}: {done.stderr}')
        return done.stdout.strip()

    def create(self, topic: str, partitions: int, **settings) -> None:
        self.tool('create', self.servers, topic, partitions,
                  *(f'{name.replace("_", ".")}={value}' for name, value in settings.items()))

    def remove(self, topic: str) -> None:
        self.tool('remove', self.servers, topic)

    def trim(self, topic: str, partition: int, offset: int) -> None:
        self.tool('trim', self.servers, topic, partition, offset)

    def produce(self, records: list[Record]) -> None:
        count = self.tool('produce', self.servers, text=''.join(r.line() + '\n' for r in records))
        assert int(count) == len(records), count

    def abort(self, topic: str, partition: int, count: int) -> None:
        """Records of a transaction that is aborted: offsets that nobody reads, and one more for its marker."""
        self.tool('abort', self.servers, topic, partition, count)

    def committed(self, group: str, topic: str, partition: int) -> tuple[int, str]:
        """Offset (negative: none) and metadata."""
        offset, _, metadata = self.tool('committed', self.servers, group, topic, partition).partition(' ')
        return int(offset), metadata

    def commit(self, group: str, topic: str, partition: int, offset: int, metadata: str = '') -> None:
        self.tool('commit', self.servers, group, topic, partition, offset, *([metadata] if metadata else []))


class Mock(Client):
    """Nothing is ever deleted here."""

    def __init__(self, brokers: int = 1):
        self.process = subprocess.Popen([TOOL, 'mock', str(brokers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.servers = self.process.stdout.readline().strip()

    def _order(self, line: str) -> None:
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        assert self.process.stdout.readline() == 'done\n'

    def create(self, topic: str, partitions: int, **settings) -> None:
        assert not settings
        self._order(f'create {topic} {partitions}')

    def refuse_notes(self) -> None:
        """The next commit is refused because of its metadata."""
        self._order('without notes')

    def refuse_members(self, count: int) -> None:
        """So many that would join a group are refused; 0: no more are."""
        self._order(f'refuse {count}')

    def set(self, up: bool, broker: int = 1) -> None:
        self._order(f'{"up" if up else "down"} {broker}')

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(DEADLINE)
        self.process.stdout.close()


def jars() -> pathlib.Path | str:
    """The folder of Kafka's jars; or why there is none."""
    folder = ROOT / 'build/kafka' / VERSION
    if folder.is_dir():
        return folder
    for program in 'java', 'mvn':
        if not shutil.which(program):
            return f'{program} is not installed'
    work = folder.with_name(f'{VERSION}.{os.getpid()}')
    work.mkdir(parents=True)
    (work / 'pom.xml').write_text(POM)
    done = subprocess.run(['mvn', '-q', '-B', PLUGIN, '-DoutputDirectory=jars', '-DincludeScope=runtime'], cwd=work,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    if done.returncode == 0:
        try:
            (work / 'jars').rename(folder)
        except OSError:
            assert folder.is_dir()  # another was quicker
    shutil.rmtree(work, ignore_errors=True)
    return folder if done.returncode == 0 else f'maven could not fetch Kafka: {done.stdout.strip()[-300:]}'


class Broker(Client):
    """Apache Kafka, one node. Ends with stop(). With a certificate and its key (PEM) it listens over TLS too, at
    `secure_servers`, for that user (SASL PLAIN) alone."""
    user, password = 'queen-s3', 'the "right" password'

    def __init__(self, folder: pathlib.Path, certificate: tuple[pathlib.Path, pathlib.Path] | None = None):
        self.folder = pathlib.Path(folder)
        self.jars = jars()
        assert isinstance(self.jars, pathlib.Path), self.jars
        port, controller = free_port(), free_port()
        self.port = port
        self.servers = f'127.0.0.1:{port}'
        listeners, secure = [f'PLAINTEXT://{self.servers}'], []
        if certificate:
            self.secure_servers = f'127.0.0.1:{free_port()}'
            listeners.append(f'SASL_SSL://{self.secure_servers}')
            secure = self._secure(*certificate)
        self.settings = self.folder / 'server.properties'
        self.settings.write_text('\n'.join([
            'process.roles=broker,controller', 'node.id=1', f'controller.quorum.voters=1@127.0.0.1:{controller}',
            f'listeners={",".join([*listeners, f"CONTROLLER://127.0.0.1:{controller}"])}',
            f'advertised.listeners={",".join(listeners)}', 'controller.listener.names=CONTROLLER',
            'listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL', *secure,
            f'log.dirs={self.folder}/kafka', 'offsets.topic.replication.factor=1', 'offsets.topic.num.partitions=1',
            'transaction.state.log.replication.factor=1',
            'transaction.state.log.min.isr=1', 'transaction.state.log.num.partitions=1',
            'group.initial.rebalance.delay.ms=0', 'group.min.session.timeout.ms=1000',
            'auto.create.topics.enable=false', 'log.retention.ms=-1', '']))
        subprocess.run([*self._java('kafka.tools.StorageTool'), 'format', '-t', 'AAAAAAAAAAAAAAAAAAAAAA', '-c',
                        self.settings], check=True, capture_output=True, timeout=DEADLINE)
        self.start()

    def _secure(self, certificate: pathlib.Path, key: pathlib.Path) -> list[str]:
        store = self.folder / 'store.pem'
        store.write_text(key.read_text() + certificate.read_text())
        password = self.password.replace('"', r'\\"')
        return ['ssl.keystore.type=PEM', f'ssl.keystore.location={store}', 'sasl.enabled.mechanisms=PLAIN',
                'listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule '
                f'required user_{self.user}="{password}";']

    def _java(self, name: str) -> list[str]:
        return ['java', '-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', f'{self.jars}/*', name]

    def start(self) -> None:
        self.program = Program([*self._java('kafka.Kafka'), self.settings], self.folder / 'kafka.log')
        self.program.wait_for(self._answers, 'a Kafka broker that answers')

    def _answers(self) -> bool:
        return subprocess.run([TOOL, 'committed', self.servers, 'nobody', 'nothing', '0'], capture_output=True,
                              timeout=DEADLINE).returncode == 0

    def stop(self) -> None:
        self.program.kill()
