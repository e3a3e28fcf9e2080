"""`queen-s3 connect`: real processes between a Kafka broker and a lake (spec 5.4). What a reader that only lists the
bucket sees are ranges of offsets that tile, and in them the log's records, each once: through kills at any moment,
rebalances, outages of either side and a configuration that changes meanwhile."""
import base64
import gzip
import json
import os
import pathlib
import random
import re
import signal
import threading
import time
import unittest

import kafka
import mirror
from bucket_server import BucketServer
from gateway import Gateway
from processes import BUILD, alive, free_port, tree, until
from sink import Sink, command

GROUP = 'picomq-connect-sink-orders'
NAME = re.compile(r'(\d{5})-(\d{20})-(\d{20})\.(\w+)(\.gz)?$')
QUICK = {'fetch.wait.max.ms': 50, 'heartbeat.interval.ms': 300}


class File:
    def __init__(self, path: pathlib.Path):
        name = NAME.search(path.name)
        self.path = path
        self.partition, self.start, self.last = int(name[1]), int(name[2]), int(name[3])

    def text(self) -> str:
        data = self.path.read_bytes()
        return (gzip.decompress(data) if self.path.suffix == '.gz' else data).decode()

    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.text().splitlines()]


class ConnectTest(unittest.TestCase):
    topic = 'orders.eu'

    def setUp(self):
        BUILD.mkdir(exist_ok=True)
        temporary = mirror.tempfile.TemporaryDirectory(dir=BUILD, prefix=f'{type(self).__name__}-',
                                                       ignore_cleanup_errors=True)
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.lake = self.folder / 'lake'
        self.sent: dict[tuple[str, int], list[kafka.Record]] = {}

    def mock(self) -> kafka.Mock:
        broker = kafka.Mock()
        self.addCleanup(broker.stop)
        return broker

    def definition(self, name: str = 'orders', extra: str = '', topics: str = '', properties: dict | None = None,
                   plain: bool = True, **options) -> pathlib.Path:
        """A definition's file; options are [plugin_config]'s."""
        options = {'endpoint': f'file://{self.folder}', 'bucket': 'lake', 'region': 'r', 'path_template': '{topic}',
                   'file_rotation': 'messages', 'max_messages_per_file': 10, **options}
        listed = {**QUICK, **(properties or {})}
        path = self.folder / f'{name}.toml'
        path.write_text('\n'.join([
            'type = "sink"', f'key = "{name}"', 'enabled = true', 'version = 0', 'name = "test"', 'path = "x"', extra,
            '[[topics]]', "pattern = 'orders\\..*'" if plain else '', 'schema = "json"', topics, '[topics.properties]',
            *(f'"{key}" = {json.dumps(value)}' for key, value in listed.items()),
            '[plugin_config]', *(f'{key} = {json.dumps(value)}' for key, value in options.items()), '']))
        return path

    def connect(self, broker: kafka.Client, *files: pathlib.Path, name: str = 'connect', **environment) -> Sink:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        sink = Sink(folder, {'PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS': broker.servers, **environment}, 'connect',
                    *files)
        self.addCleanup(sink.program.kill)
        return sink

    def send(self, broker: kafka.Client, count: int, partitions: int = 2, topic: str = '', size: int = 0) -> None:
        topic = topic or self.topic
        records = []
        for i in range(count):
            partition = i % partitions
            sent = self.sent.setdefault((topic, partition), [])
            body = {'n': len(sent), 'partition': partition, 'fill': 'x' * random.randrange(size + 1)}
            sent.append(kafka.Record(topic, partition, json.dumps(body).encode(), str(len(sent)).encode()))
            records.append(sent[-1])
        broker.produce(records)

    def files(self, topic: str = '', partition: int = 0, lake: pathlib.Path | None = None) -> list[File]:
        found = [File(path) for path in ((lake or self.lake) / (topic or self.topic)).rglob('*') if path.is_file()]
        return sorted((f for f in found if f.partition == partition), key=lambda f: f.start)

    def covered(self, topic: str, partition: int, lake: pathlib.Path | None = None) -> int:
        files = self.files(topic, partition, lake)
        return files[-1].last + 1 if files else 0

    def hold(self, lake: pathlib.Path | None = None, holes: bool = False) -> None:
        """Ranges tile from 0 on, and have what was sent: each record once, in order, as it was."""
        for (topic, partition), sent in self.sent.items():
            following, values = 0, []
            for file in self.files(topic, partition, lake):
                self.assertEqual(file.start, following, f'{file.path} does not begin where the one before ends')
                following = file.last + 1
                for record in file.records():
                    self.assertTrue(file.start <= record['offset'] <= file.last)
                    self.assertEqual((record['topic'], record['partition']), (topic, partition))
                    values.append(record)
            offsets = [record['offset'] for record in values]
            self.assertEqual(offsets, sorted(set(offsets)))
            if not holes:
                self.assertEqual(offsets, list(range(following)))
            self.assertEqual([v['payload'] for v in values], [json.loads(r.value) for r in sent[:len(values)]])
            self.assertEqual([base64.b64decode(v['key']) for v in values], [r.key for r in sent[:len(values)]])

    def wait_landed(self, sink: Sink, least: int, lake: pathlib.Path | None = None) -> None:
        """All partitions are covered that far."""
        sink.program.wait_for(
            lambda: all(self.covered(topic, partition, lake) >= least for topic, partition in self.sent),
            f'{least} offsets of each partition in the lake')


class MockTest(ConnectTest):
    """Against a broker in memory."""

    def test_records_land(self):
        """Keys, headers, tombstones; the endpoint; the group's offset; a clean stop."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        broker.produce([kafka.Record('orders.eu', 0, b'{"a" : 1.50}', b'k', 1788516000123,
                                     (('h', b'v'), ('b', b'\xff'))),
                        kafka.Record('orders.eu', 0, None, b''),
                        kafka.Record('orders.eu', 0, b'not json'),
                        kafka.Record('orders.eu', 0, b'[\n1]', None)])
        sink = self.connect(broker, self.definition(include_headers=True, max_messages_per_file=4, compression='gzip'))
        until(lambda: self.files(), 'file')
        only, = self.files()
        self.assertEqual(only.path.relative_to(self.lake).as_posix(),
                         'orders.eu/00000-00000000000000000000-00000000000000000003.jsonl.gz')
        self.assertEqual(only.text().splitlines(), [
            '{"offset":0,"timestamp":"2026-09-04T10:00:00.123Z","topic":"orders.eu","partition":0,"key":"aw==",'
            '"headers":{"b":"/w==","h":"v"},"payload":{"a" : 1.50}}',
            '{"offset":1,"timestamp":"2026-09-04T10:00:00.000Z","topic":"orders.eu","partition":0,"key":"",'
            '"payload":null}',
            '{"offset":2,"timestamp":"2026-09-04T10:00:00.000Z","topic":"orders.eu","partition":0,'
            '"payload":"bm90IGpzb24="}',
            '{"offset":3,"timestamp":"2026-09-04T10:00:00.000Z","topic":"orders.eu","partition":0,"payload":[ 1]}'])
        until(lambda: broker.committed(GROUP, 'orders.eu', 0) == (4, ''), 'commit')
        labels = {'connector_key': 'orders', 'connector_type': 'sink'}
        sink.wait_metric('picomq_connector_messages_processed_total', 4, **labels)
        self.assertEqual(sink.metric('picomq_connector_messages_consumed_total', **labels), 4)
        self.assertEqual(sink.metric('picomq_connectors_sinks_running'), 1)
        self.assertEqual(sink.health(), (200, {'ok': True, 'queues': 0, 'connectors': 1}))
        self.assertEqual(sink.program.terminate(), 0)

    def test_undecodable(self):
        broker = self.mock()
        broker.create('orders.eu', 4)
        good, bad = kafka.Record('orders.eu', 0, b'{}'), kafka.Record('orders.eu', 0, b'{')
        broker.produce([good, bad, good])
        sink = self.connect(broker, self.definition(extra='on_undecodable = "skip"', max_messages_per_file=2))
        until(lambda: self.files(), 'file')
        only, = self.files()
        self.assertEqual((only.start, only.last), (0, 2))
        self.assertEqual([r['offset'] for r in only.records()], [0, 2])
        sink.wait_metric('picomq_connector_messages_filtered_total', 1)
        self.assertIn('offset 1 is no json: skipped', sink.text())
        self.assertEqual(sink.program.terminate(), 0)
        sink = self.connect(broker, self.definition(extra='on_undecodable = "stop"',
                                                    topics='consumer_group = "other"'), name='stop')
        self.assertEqual(sink.program.wait(), 2)
        self.assertIn('orders.eu/0: offset 1 is no json, and on_undecodable is stop', sink.text())

    def test_a_time_after_year_9999(self):
        """One that no date can be written for is taken for the last that has one, in the key too, and keeps nobody from
        going on. (The plugin refuses it.)"""
        broker = self.mock()
        broker.create('orders.eu', 4)
        times = [1788516000000, 253402300799999, 253402300800000, 1788516000000000, 2**63 - 1, 1788516000001]
        broker.produce([kafka.Record('orders.eu', 0, b'{}', timestamp=t) for t in times])
        sink = self.connect(broker, self.definition(max_messages_per_file=2, path_template='{topic}/{date}/{hour}'))
        until(lambda: len(self.files()) == 3, 'three files')
        last = '9999-12-31T23:59:59.999Z'
        self.assertEqual([r['timestamp'] for f in self.files() for r in f.records()],
                         ['2026-09-04T10:00:00.000Z', last, last, last, last, '2026-09-04T10:00:00.001Z'])
        self.assertEqual([f.path.parent.relative_to(self.lake).as_posix() for f in self.files()],
                         ['orders.eu/2026-09-04/10', 'orders.eu/9999-12-31/23', 'orders.eu/9999-12-31/23'])
        self.assertIn('offset 2: its time of 253402300800000 ms, after year 9999', sink.text())
        self.assertEqual(sink.program.terminate(), 0)

    def test_rolling_restart(self):
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 20)
        sink = self.connect(broker, self.definition(), QUEEN_S3_BUCKET='another-program')
        self.wait_landed(sink, 10)
        sink.program.signal(signal.SIGHUP)
        sink.wait_line('every worker has been started again')
        self.assertEqual(sink.metric('queen_s3_worker_restarts_total'), 0)
        self.assertEqual(sink.metric('picomq_connectors_sinks_running'), 1)
        lines = [line for line in sink.text().splitlines() if ' sink=connect-orders ' in line]
        self.assertEqual(len(lines), 2, 'once at the start, once when the settings are read again')
        for line in lines:
            self.assertRegex(line, r'queen-s3 \S+ sink=connect-orders memory_mb=\d+ listen=\S+ shutdown_grace_ms=\d+$')
        self.assertEqual(sink.program.terminate(), 0)
        self.hold()

    def test_definitions_are_read_again(self):
        """SIGHUP: an edited one counts, a broken one changes nothing, and what was refused gets another try."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 10, 1)
        soon = {'session.timeout.ms': 6000}
        file = self.definition(properties=soon)
        control = str(self.folder / 'control.sock')
        sink = self.connect(broker, file, self.definition('refused', properties={'nonsense': 1}),
                            QUEEN_S3_CONTROL=control)
        sink.wait_line('refused: the connector stays down')
        self.wait_landed(sink, 10)

        def hang_up(round_number: int) -> None:
            sink.program.signal(signal.SIGHUP)
            sink.program.wait_for(lambda: sink.text().count('every worker has been started again') == round_number,
                                  'every worker started again')
        self.definition(max_messages_per_file=4, properties=soon)
        self.definition('refused', bucket='mended', properties=soon)
        hang_up(1)
        self.send(broker, 8, 1)
        self.wait_landed(sink, 18)
        self.wait_landed(sink, 10, self.folder / 'mended')
        self.assertEqual([(f.start, f.last) for f in self.files()], [(0, 9), (10, 13), (14, 17)])
        self.assertEqual(sink.metric('picomq_connectors_sinks_running'), 2)
        answer = command({'QUEEN_S3_CONTROL': control}, 'status', '--json')
        self.assertEqual([c['reason'] for c in json.loads(answer.stdout)['connectors']], [None, None])
        self.assertNotIn('goes on with the definition that it has', sink.text())
        file.write_text('key = "orders\n')
        hang_up(2)
        self.assertIn(f'orders: goes on with the definition that it has: {file}: line 1', sink.text())
        self.send(broker, 4, 1)
        self.wait_landed(sink, 22)
        self.assertEqual((self.files()[-1].start, self.files()[-1].last), (18, 21))
        self.hold()
        self.assertEqual(sink.program.terminate(), 0)

    def test_age(self):
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 6)
        sink = self.connect(broker, self.definition(max_messages_per_file=1000, max_file_age='500ms'))
        self.wait_landed(sink, 3)
        self.hold()
        self.assertEqual(sink.program.terminate(), 0)

    def test_a_noted_file_is_rebuilt_whatever_is_configured(self):
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 30, 1)
        note = {'queen-s3': 1, 'next': 7, 'key': 'else/where.json', 'schema': 'raw', 'on_undecodable': 'base64',
                'output_format': 'json_array', 'compression': 'none', 'include_metadata': False,
                'include_headers': False}
        broker.commit(GROUP, 'orders.eu', 0, 2, json.dumps(note))
        sink = self.connect(broker, self.definition(max_messages_per_file=3))
        sink.program.wait_for(lambda: len(self.files()) == 7, 'seven files')
        self.assertEqual(json.loads((self.lake / 'else/where.json').read_text()),
                         [{'payload': json.loads(r.value)} for r in self.sent['orders.eu', 0][2:7]])
        self.assertEqual([(f.start, f.last) for f in self.files()], [(i, i + 2) for i in range(7, 28, 3)])
        self.assertEqual(sink.program.terminate(), 0)

    def test_without_notes(self):
        """A broker that keeps no commit metadata: cuts by count, no age."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 25, 1)
        broker.refuse_notes()
        sink = self.connect(broker, self.definition(max_messages_per_file=10))
        self.wait_landed(sink, 20)
        self.assertIn('gives no commit metadata back', sink.text())
        self.hold()
        self.assertEqual([(f.start, f.last) for f in self.files()], [(0, 9), (10, 19)])
        self.assertEqual(sink.program.terminate(), 0)
        broker.refuse_notes()
        sink = self.connect(broker, self.definition(max_file_age='1m', topics='consumer_group = "aged"'), name='aged')
        self.assertEqual(sink.program.wait(), 2)
        self.assertIn('max_file_age: expected to be absent with a broker that gives no commit metadata', sink.text())

    def test_a_note_of_another_version_is_not_guessed_at(self):
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 3, 1)
        broker.commit(GROUP, 'orders.eu', 0, 1, '{"queen-s3":2,"next":3}')
        sink = self.connect(broker, self.definition())
        self.assertEqual(sink.program.wait(), 2)
        self.assertIn('the note at offset 1 is of another version', sink.text())
        self.assertEqual(self.files(), [])

    def test_broker_away(self):
        """It is lag, at the start and later."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 20)
        broker.set(False)
        sink = self.connect(broker, self.definition(properties={'reconnect.backoff.max.ms': 200}))
        sink.wait_line('kafka')
        self.assertEqual(sink.health()[0], 200)
        broker.set(True)
        self.wait_landed(sink, 10)
        broker.set(False)
        broker.set(True)
        self.send(broker, 20)
        self.wait_landed(sink, 20)
        self.hold()
        self.assertEqual(sink.program.terminate(), 0)
        self.assertNotIn('started again', sink.text())

    def test_broken_definitions(self):
        """Each stops itself alone."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 20)
        broken = self.folder / 'broken.toml'
        broken.write_text('key = "broken"\n')
        refused = self.definition('refused', properties={'nonsense': 1})
        control = str(self.folder / 'control.sock')
        sink = self.connect(broker, broken, self.definition(), refused, QUEEN_S3_CONTROL=control)
        sink.wait_line('refused: the connector stays down: property nonsense')
        self.wait_landed(sink, 10)
        self.assertIn('broken: the connector stays down', sink.text())
        sink.program.wait_for(lambda: sink.metric('picomq_connectors_sinks_running') == 1, 'one that runs')
        self.assertEqual(sink.metric('picomq_connectors_sinks_total'), 3)
        self.assertEqual(sink.metric('queen_s3_worker_up'), 1)
        answer = command({'QUEEN_S3_CONTROL': control}, 'status', '--json')
        self.assertEqual(answer.returncode, 0, answer.stderr)
        status = {c['connector']: c for c in json.loads(answer.stdout)['connectors']}
        self.assertEqual({key: c['state'] for key, c in status.items()},
                         {'orders': 'running', 'refused': 'down', 'broken': 'down'})
        self.assertIn('No such configuration property: "nonsense"', status['refused']['reason'])
        self.assertIn('broken.toml: type is missing', status['broken']['reason'])
        self.assertIsNone(status['orders']['reason'])
        shown = command({'QUEEN_S3_CONTROL': control}, 'status').stdout.decode()
        self.assertRegex(shown, r'(?m)^. *orders +running +0 +4 ')
        self.assertEqual(sink.program.terminate(), 0)

    @staticmethod
    def kill_workers(sink: Sink) -> None:
        for worker in tree(sink.pid)[1:]:
            os.kill(worker, signal.SIGKILL)

    def test_health_of_one_that_ends_again_and_again(self):
        """Red within its limit, though no life of it owes anything for long, and green when one does well; one that
        ended once and goes on is green all along, one that has nothing to read too."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        broker.create('away', 1)
        broker.produce([kafka.Record('away', 0, b'{}')])
        soon = {'max_file_age': '1s', 'properties': {'session.timeout.ms': 6000}}
        control = str(self.folder / 'control.sock')
        once = self.connect(broker, self.definition('once', **soon), name='once')
        again = self.connect(broker, self.definition('again', **soon), name='again', QUEEN_S3_CONTROL=control)
        away = self.connect(broker, self.definition(
            'away', plain=False, topics='topics = ["away"]', endpoint=f'http://127.0.0.1:{free_port()}',
            access_key_id='AKIATEST', secret_access_key='secretsecret', **soon), name='away')
        idle = self.connect(broker, self.definition('idle', plain=False, topics='pattern = "none"', **soon),
                            name='idle')
        for sink, line in (once, 'assigned'), (idle, 'worker 0: started'):
            sink.wait_line(line)
            self.kill_workers(sink)
        lives, lines = {again: 0, away: 0}, {again: 'worker 0: started', away: 'attempt 1 failed'}
        red: dict[Sink, dict] = {}

        def kill_and_look() -> bool:
            for sink in lives.keys() - red.keys():
                if sink.text().count(lines[sink]) > lives[sink]:
                    lives[sink] += 1
                    self.kill_workers(sink)
                status, body = sink.health()
                red.update({sink: body} if status == 503 else {})
            self.assertEqual((once.health()[0], idle.health()[0]), (200, 200))
            return len(red) == 2
        until(kill_and_look, 'two that are red')
        self.assertEqual([(red[sink]['connector'], red[sink]['limitMs']) for sink in lives],
                         [('again', 30000), ('away', 30000)])
        self.assertNotIn('partition', red[again])
        connector, = json.loads(command({'QUEEN_S3_CONTROL': control}, 'status', '--json').stdout)['connectors']
        self.assertEqual(connector['reason'], 'its worker was ended by signal 9')
        again.wait_health()
        connector, = json.loads(command({'QUEEN_S3_CONTROL': control}, 'status', '--json').stdout)['connectors']
        self.assertIsNone(connector['reason'])
        for sink in once, idle, again:
            self.assertEqual(sink.program.terminate(), 0)

    def test_health_of_one_that_can_not_talk_to_kafka(self):
        """Red within its limit where it lost the broker, never had one, or is refused by its group; green when it is
        not. One that has nothing to read is green all along: of a topic without records, of no topic, without a
        partition for it."""
        brokers = {name: self.mock() for name in ('lost', 'never', 'refused', 'up')}
        for broker in brokers.values():
            broker.create('orders.eu', 1)
        brokers['never'].set(False)
        brokers['refused'].refuse_members(10000)
        soon = {'properties': {'session.timeout.ms': 6000, 'reconnect.backoff.max.ms': 200}, 'max_file_age': '1s'}

        def start(name: str, broker: str, **options) -> Sink:
            return self.connect(brokers[broker], self.definition(name, **soon, **options), name=name,
                                QUEEN_S3_CONTROL=str(self.folder / f'{name}.sock'))

        def connector(name: str) -> dict:
            environment = {'QUEEN_S3_CONTROL': str(self.folder / f'{name}.sock')}
            return json.loads(command(environment, 'status', '--json').stdout)['connectors'][0]
        shared = {'topics': 'consumer_group = "shared"'}
        red = {name: start(name, name) for name in ('lost', 'never', 'refused')}
        green = {'idle': start('idle', 'up', **shared), 'spare': start('spare', 'up', **shared),
                 'nothing': start('nothing', 'up', plain=False, topics='pattern = "none"')}
        until(lambda: connector('lost')['partitions'] == 1, 'partition')
        until(lambda: connector('idle')['partitions'] + connector('spare')['partitions'] == 1, 'partition for one')
        self.assertIsNone(connector('lost')['reason'])
        brokers['lost'].set(False)

        def look() -> bool:
            for sink in green.values():
                self.assertEqual(sink.health()[0], 200)
            return all(sink.health()[0] == 503 for sink in red.values())
        until(look, 'three that are red')
        why = {'refused': 'JoinGroup failed: Broker: Inconsistent group protocol'}
        for name, sink in red.items():
            body = sink.health()[1]
            self.assertEqual((body['connector'], body['limitMs']), (name, 30000))
            self.assertGreater(body['staleMs'], 30000)
            self.assertRegex(connector(name)['reason'], f'^kafka: .*{why.get(name, "Connection refused")}')
            brokers[name].refuse_members(0)
            brokers[name].set(True)
            sink.wait_health()
            self.assertIsNone(connector(name)['reason'])
        for name, sink in {**red, **green}.items():
            with self.subTest(name):
                self.assertEqual(sink.program.terminate(), 0)

    def test_topics_that_would_share_keys(self):
        """Nothing is put where a file of the one would replace the other's, be they of one [[topics]] or of two."""
        broker = self.mock()
        for topic in 'orders.eu', 'orders.us':
            broker.create(topic, 1)
            self.send(broker, 30, 1, topic=topic)
        second = 'topics = ["orders.us"]\nconsumer_group = "second"\nschema = "json"'
        for name, topics, template in (
                ('one', 'topics = ["orders.eu", "orders.us"]\nconsumer_group = "one"', '{date}/{hour}'),
                ('two', f'topics = ["orders.eu"]\nconsumer_group = "two"\n[[topics]]\n{second}', '{topic_segment[0]}')):
            with self.subTest(template=template):
                sink = self.connect(broker, self.definition(name, plain=False, topics=topics, path_template=template,
                                                            prefix=name, max_messages_per_file=30), name=name)
                line = sink.wait_line('the connector stays down')
                self.assertIn(f"path_template '{template}' makes the same keys for the topics orders.", line)
                self.assertEqual(sink.program.wait(), 2)
                for path in (self.lake / name).rglob('*.jsonl'):  # the second [[topics]] may come later
                    self.assertEqual(len({record['topic'] for record in File(path).records()}), 1)
                self.assertLessEqual(len(list((self.lake / name).rglob('*.jsonl'))), 1)
        sink = self.connect(broker, self.definition('three', plain=False, path_template='{topic_segment[1]}/{date}',
                                                    topics='topics = ["orders.eu", "orders.us"]'), name='three')
        sink.program.wait_for(lambda: len(list(self.lake.glob('[eu][us]/*/*'))) == 6, 'files of both')
        self.assertEqual(sink.program.terminate(), 0)

    def test_a_topic_that_can_have_no_keys(self):
        """Is left out alone, loudly, and red once it has a record; and read from its start when the template is
        mended."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        broker.create('orders', 2)
        self.send(broker, 20)
        control = str(self.folder / 'control.sock')
        options = {'plain': False, 'topics': "pattern = 'orders'", 'max_file_age': '1s',
                   'properties': {'session.timeout.ms': 6000}}
        sink = self.connect(broker, self.definition(path_template='{topic_segment[0]}.{topic_segment[1]}', **options),
                            QUEEN_S3_CONTROL=control)

        def reason() -> str | None:
            connector, = json.loads(command({'QUEEN_S3_CONTROL': control}, 'status', '--json').stdout)['connectors']
            return connector['reason']
        self.wait_landed(sink, 10)
        why = "topic 'orders' has 1 segments, and path_template asks for {topic_segment[1]}"
        until(lambda: reason() == why, 'reason')
        self.assertEqual(sink.text().count(f'orders: the topic is left out: {why}'), 1, sink.text())
        self.send(broker, 10, 2, 'orders')
        until(lambda: sink.health()[0] == 503, 'red')
        self.assertRegex(sink.health()[1]['partition'], '^orders/[01]$')
        self.send(broker, 20)
        sink.program.wait_for(lambda: self.covered('orders.eu', 0) == 20, 'the other topic, still read')
        self.definition(path_template='{topic}', **options)
        sink.program.signal(signal.SIGHUP)
        sink.program.wait_for(lambda: self.covered('orders', 0) == self.covered('orders', 1) == 5, 'what was left out')
        self.hold()
        sink.wait_health()
        self.assertIsNone(reason())
        self.assertEqual(sink.program.terminate(), 0)

    def test_exit_codes(self):
        """Those that the manual lists."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        taken = free_port()
        first = self.connect(broker, self.definition(), QUEEN_S3_LISTEN=f'127.0.0.1:{taken}')
        first.wait_health()
        self.assertEqual(self.connect(broker, self.definition(), name='taken',
                                      QUEEN_S3_LISTEN=f'127.0.0.1:{taken}').program.wait(), 1)
        self.assertEqual(self.connect(broker, self.folder / 'absent.toml', name='absent').program.wait(), 2)
        self.assertEqual(self.connect(broker, self.definition(), name='variable',
                                      PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVER='x').program.wait(), 2)
        self.assertEqual(first.program.terminate(), 0)

    def test_beside_queues(self):
        """QUEEN_S3_CONNECTORS: workers more in the pool."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        self.send(broker, 20)
        queen = mirror.DevBroker(self.folder, '--queue', 'clicks', '--safe-lag-ms', 100)
        self.addCleanup(queen.stop)
        queen.push(mirror.records(20, partitions=2, queue='clicks'))
        definitions = self.folder / 'connectors'
        definitions.mkdir()
        self.definition().rename(definitions / 'orders.toml')
        (definitions / '.hidden.toml').write_text('broken')
        sink = Sink(self.folder, {'QUEEN_URL': queen.url, 'QUEEN_S3_QUEUES': 'clicks', **mirror.QUICK,
                                  **mirror.file_lake(self.folder, 'queues'),
                                  'QUEEN_S3_CONNECTORS': str(definitions),
                                  'PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS': broker.servers})
        self.addCleanup(sink.program.kill)
        sink.wait_records(20)
        self.wait_landed(sink, 10)
        self.hold()
        self.assertEqual(sink.metric('queen_s3_workers'), 2)
        self.assertEqual(sink.metric('picomq_connectors_sinks_running'), 1)
        self.assertEqual(sink.program.terminate(), 0)

    def test_one_that_refuses_stays_down_beside_a_star(self):
        """A queue that appears doesn't start it again; a rolling restart does, and doesn't wait for it."""
        broker = self.mock()
        broker.create('orders.eu', 4)
        queen = mirror.DevBroker(self.folder, '--queue', 'clicks', '--safe-lag-ms', 100)
        self.addCleanup(queen.stop)
        queen.push(mirror.records(20, queue='clicks', partitions=2))
        definitions = self.folder / 'connectors'
        definitions.mkdir()
        self.definition('refused', properties={'nonsense': 1}).rename(definitions / 'refused.toml')
        sink = Sink(self.folder, {'QUEEN_URL': queen.url, 'QUEEN_S3_QUEUES': '*', 'QUEEN_S3_WORKERS': '1',
                                  **mirror.QUICK, **mirror.file_lake(self.folder, 'queues'),
                                  'QUEEN_S3_CONNECTORS': str(definitions),
                                  'PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS': broker.servers})
        self.addCleanup(sink.program.kill)
        sink.wait_line('refused: the connector stays down')
        sink.wait_records(20)
        queen.push(mirror.records(20, queue='late', partitions=2))
        sink.wait_records(40)
        self.assertEqual(sink.text().count('worker 0: started'), 1, sink.text())
        sink.signal(signal.SIGHUP)
        sink.wait_line('every worker has been started again')
        self.assertEqual(sink.text().count('worker 0: started'), 2, sink.text())
        self.assertEqual(sink.text().count('worker 1: started'), 2, sink.text())
        self.assertEqual(sink.program.terminate(), 0)


@unittest.skipIf(isinstance(kafka.jars(), str), kafka.jars())
class KafkaTest(ConnectTest):
    """Against Apache Kafka itself. A dead member is missed soon."""
    SESSION = {'session.timeout.ms': 1500}

    @classmethod
    def setUpClass(cls):
        BUILD.mkdir(exist_ok=True)
        temporary = mirror.tempfile.TemporaryDirectory(dir=BUILD, prefix='Kafka-', ignore_cleanup_errors=True)
        cls.addClassCleanup(temporary.cleanup)
        cls.broker = kafka.Broker(pathlib.Path(temporary.name).resolve())
        cls.addClassCleanup(cls.broker.stop)

    def setUp(self):
        super().setUp()
        self.topic = f'orders.{self._testMethodName[5:20].replace("_", "-")}'

    def mine(self, **options) -> pathlib.Path:
        """A definition of this test's own topic and group."""
        group = f'consumer_group = "{self._testMethodName}"'
        properties = {**self.SESSION, **options.pop('properties', {})}
        return self.definition(plain=False, topics=f'topics = ["{self.topic}"]\n{group}', properties=properties,
                               **options)

    def finish(self, sink: Sink, lake: pathlib.Path | None = None) -> None:
        """The rest that fills no file comes by its age; then everything is there, once."""
        for (topic, partition), sent in self.sent.items():
            sink.program.wait_for(lambda: self.covered(topic, partition, lake) >= len(sent), f'all of {partition}')
        self.hold(lake)
        for (topic, partition), sent in self.sent.items():
            self.assertEqual(self.covered(topic, partition, lake), len(sent))

    def test_kills(self):
        """kill -9 of the worker at any moment, and of the whole tree."""
        self.broker.create(self.topic, 2)
        chance = random.Random(7)
        file = self.mine(max_messages_per_file=7, max_file_age='1s')
        sink = self.connect(self.broker, file)
        for i in range(8):
            self.send(self.broker, 300)
            time.sleep(chance.random() * 0.4)
            if i % 3 == 2:
                sink.program.kill()
                sink = self.connect(self.broker, self.mine(max_messages_per_file=5 + i, max_file_age='1s'))
            else:
                for worker in tree(sink.pid)[1:]:
                    os.kill(worker, signal.SIGKILL)
        self.finish(sink)
        self.assertEqual(sink.program.terminate(), 0)

    def test_rebalances(self):
        """A partition moves between two workers ten times under load."""
        self.broker.create(self.topic, 3)
        done = threading.Event()

        def load():
            while not done.wait(0.1):
                self.send(self.broker, 90, 3)
        producer = threading.Thread(target=load)
        producer.start()
        try:
            file = self.mine(max_messages_per_file=9, max_file_age='2s')
            first = self.connect(self.broker, file)

            def told(what: str) -> int:
                return len(re.findall(rf' partitions? ({what})$', first.text(), re.M))
            for i in range(5):
                first.program.wait_for(lambda n=i: told('assigned') > told('revoked|lost') >= n, 'partitions again')
                moved = told('revoked|lost')
                second = self.connect(self.broker, file, name=f'second{i}')
                second.wait_line('assigned')
                first.program.wait_for(lambda n=moved: told('revoked|lost') > n, 'a partition to move')
                if i % 2 == 0:
                    self.assertEqual(second.program.terminate(), 0)
                else:
                    second.program.kill()
        finally:
            done.set()
            producer.join()
        self.finish(first)
        self.assertGreater(told('revoked|lost'), 4)
        self.assertEqual(first.program.terminate(), 0)

    def test_cooperative(self):
        """The other protocol of rebalancing."""
        self.broker.create(self.topic, 3)
        file = self.mine(max_messages_per_file=6, max_file_age='1s',
                         properties={'partition.assignment.strategy': 'cooperative-sticky'})
        first = self.connect(self.broker, file)
        first.wait_line('assigned')
        self.send(self.broker, 300, 3)
        second = self.connect(self.broker, file, name='second')
        second.wait_line('assigned')
        self.send(self.broker, 300, 3)
        self.assertEqual(first.program.terminate(), 0)
        self.send(self.broker, 300, 3)
        self.finish(second)
        self.assertEqual(second.program.terminate(), 0)

    def test_trimmed(self):
        """Retention took what wasn't read: on from the log start, the gap told."""
        self.broker.create(self.topic, 1)
        sink = self.connect(self.broker, self.mine())
        self.send(self.broker, 10, 1)
        self.wait_landed(sink, 10)
        self.assertEqual(sink.program.terminate(), 0)
        self.send(self.broker, 30, 1)
        self.broker.trim(self.topic, 0, 25)
        sink = self.connect(self.broker, self.mine(), name='again')
        sink.program.wait_for(lambda: self.covered(self.topic, 0) == 35, 'the rest')
        self.assertIn('offsets 10 to 24 were deleted from the log before they were read', sink.text())
        self.assertEqual([(f.start, f.last) for f in self.files()], [(0, 9), (25, 34)])
        self.assertEqual(sink.program.terminate(), 0)

    def test_created_again(self):
        """A topic that ends before what was committed (Kafka forgets the commit with the topic; others may not)."""
        self.broker.create(self.topic, 1)
        self.send(self.broker, 10, 1)
        self.broker.commit(self._testMethodName, self.topic, 0, 20)
        sink = self.connect(self.broker, self.mine())
        self.wait_landed(sink, 10)
        self.assertIn('before the committed 20: the topic was created again, and is read from offset 0', sink.text())
        self.hold()
        self.assertEqual(sink.program.terminate(), 0)

    def test_a_log_that_ends_early_for_a_moment(self):
        """As a leader says that has just been elected: nothing is read again."""
        self.broker.create(self.topic, 1)
        self.send(self.broker, 20, 1)
        self.broker.commit(self._testMethodName, self.topic, 0, 25)
        sink = self.connect(self.broker, self.mine(), QUEEN_S3_LOG_LEVEL='debug')
        sink.wait_line('the log ends at offset 20, before the committed 25: it is looked at again')
        self.send(self.broker, 20, 1)
        sink.program.wait_for(lambda: self.covered(self.topic, 0) == 35, 'a file')
        self.assertEqual([(f.start, f.last) for f in self.files()], [(25, 34)])
        self.assertNotIn('created again', sink.text())
        self.assertEqual(sink.program.terminate(), 0)

    def test_torn(self):
        """Retention took the beginning of a file that was on its way: where it is up whole, it stays as it is."""
        note = {'queen-s3': 1, 'next': 10, 'key': 'torn/whole.jsonl', 'schema': 'json', 'on_undecodable': 'base64',
                'output_format': 'json_lines', 'compression': 'none', 'include_metadata': True,
                'include_headers': False}
        self.broker.create(self.topic, 1)
        self.send(self.broker, 20, 1)
        self.broker.trim(self.topic, 0, 5)
        for group, whole in (('torn-up', True), ('torn-down', False)):
            self.broker.commit(group, self.topic, 0, 0, json.dumps({**note, 'key': f'{group}/file.jsonl'}))
            file = self.lake / group / 'file.jsonl'
            if whole:
                file.parent.mkdir(parents=True)
                file.write_text('whole\n')
            sink = self.connect(self.broker, self.definition(
                plain=False, topics=f'topics = ["{self.topic}"]\nconsumer_group = "{group}"', prefix=group), name=group)
            sink.program.wait_for(lambda: self.covered(self.topic, 0, self.lake / group) == 20, 'the rest')
            self.assertIn('offsets 0 to 4 were deleted from the log before they were read', sink.text())
            self.assertEqual(sink.program.terminate(), 0)
            lines = file.read_text().splitlines()
            if whole:
                self.assertEqual(lines, ['whole'])
            else:
                self.assertEqual([json.loads(line)['offset'] for line in lines], [5, 6, 7, 8, 9])

    def test_torn_and_untold(self):
        """As above, where the bucket doesn't say whether it is up: nothing is put over what may be whole."""
        self.broker.create(self.topic, 1)
        self.send(self.broker, 20, 1)
        self.broker.trim(self.topic, 0, 5)
        self.broker.commit('untold', self.topic, 0, 0, json.dumps(
            {'queen-s3': 1, 'next': 10, 'key': 'untold/file.jsonl', 'schema': 'json', 'on_undecodable': 'base64',
             'output_format': 'json_lines', 'compression': 'none', 'include_metadata': True,
             'include_headers': False}))
        with BucketServer() as s3:
            s3.answer = lambda request: 403 if request.method == 'HEAD' else None
            sink = self.connect(self.broker, self.definition(
                plain=False, topics=f'topics = ["{self.topic}"]\nconsumer_group = "untold"', endpoint=s3.endpoint,
                access_key_id='AKIATEST', secret_access_key='secretsecret', max_messages_per_file=15))
            s3.wait_for(s3.keys, 'file')
            self.assertEqual(sink.program.terminate(), 0)
            self.assertEqual(s3.keys(), [f'lake/{self.topic}/00000-{5:020}-{19:020}.jsonl'])
        self.assertIn("doesn't tell whether it is there", sink.text())

    def test_bucket_away(self):
        """An upload is tried for ever, and the partition waits meanwhile; the cut is as it was begun with."""
        self.broker.create(self.topic, 2)
        self.send(self.broker, 40)
        with Gateway(self.folder / 's3') as s3:
            lake = s3.make_bucket('lake')
            s3.stop()
            options = {'endpoint': s3.endpoint, 'region': s3.region, 'access_key_id': s3.access_key,
                       'secret_access_key': s3.secret_key}
            sink = self.connect(self.broker, self.mine(**options))
            sink.wait_line('attempt 1 failed')
            sink.program.kill()
            self.assertIn('"next":10', self.broker.committed(self._testMethodName, self.topic, 0)[1])
            sink = self.connect(self.broker, self.mine(**{**options, 'max_messages_per_file': 5}), name='again')
            sink.wait_line('rebuilt, as it was begun with')
            s3.start()
            self.wait_landed(sink, 20, lake)
            self.hold(lake)
            self.assertEqual([(f.start, f.last) for f in self.files(lake=lake)], [(0, 9), (10, 14), (15, 19)])
            self.assertEqual(sink.program.terminate(), 0)

    def test_holes(self):
        """Offsets that have no record, before, in and behind a file: the ranges tile all the same."""
        self.broker.create(self.topic, 1)
        self.broker.abort(self.topic, 0, 3)
        for count in 7, 8, 5:
            self.send(self.broker, count, 1)
            self.broker.abort(self.topic, 0, 2)
        sink = self.connect(self.broker, self.mine(max_messages_per_file=5))
        sink.program.wait_for(lambda: len(self.files()) == 4, 'four files')
        self.hold(holes=True)
        self.assertEqual([(f.start, f.last) for f in self.files()], [(0, 8), (9, 16), (17, 21), (22, 29)])
        self.assertEqual(sink.program.terminate(), 0)

    def test_later_topics(self):
        """A pattern takes in what is created while it runs."""
        self.topic = 'orders.first'
        self.broker.create(self.topic, 1)
        sink = self.connect(self.broker, self.definition(topics='consumer_group = "later"', properties={
            'topic.metadata.refresh.interval.ms': 500}))
        self.send(self.broker, 10, 1)
        self.wait_landed(sink, 10)
        self.broker.create('orders.second', 1)
        self.broker.create('my.orders.third', 1)
        self.send(self.broker, 10, 1, 'my.orders.third')
        self.send(self.broker, 10, 1, 'orders.second')
        sink.program.wait_for(lambda: self.covered('orders.second', 0) == 10, 'the later topic')
        self.assertEqual(self.files('my.orders.third'), [])
        self.assertEqual(sink.program.terminate(), 0)

    def test_gateway(self):
        """Into a real S3 gateway, with the bucket and the broker going away meanwhile."""
        self.broker.create(self.topic, 2)
        with Gateway(self.folder / 's3') as s3:
            lake = s3.make_bucket('lake')
            sink = self.connect(self.broker, self.mine(
                endpoint=s3.endpoint, region=s3.region, access_key_id=s3.access_key, secret_access_key=s3.secret_key,
                file_rotation='size', max_file_size='20KiB', max_file_age='2s', compression='gzip'))
            self.send(self.broker, 400, size=400)
            self.wait_landed(sink, 1, lake)
            s3.stop()
            self.send(self.broker, 400, size=400)
            sink.wait_line('attempt 1 failed')
            for worker in tree(sink.pid)[1:]:
                os.kill(worker, signal.SIGKILL)
            s3.start()
            self.broker.stop()
            self.broker.start()
            self.send(self.broker, 200, size=400)
            self.finish(sink, lake)
            pids = tree(sink.pid)
            self.assertEqual(sink.program.terminate(), 0)
            self.assertEqual(alive(pids), [])


if __name__ == '__main__':
    unittest.main()
