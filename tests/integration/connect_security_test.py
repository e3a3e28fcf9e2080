"""`queen-s3 connect` with Apache Kafka behind TLS and SASL (spec 5.4): the settings reach the client, and what doesn't
fit is lag that says why, never an exit."""
import pathlib
import re
import tempfile
import unittest

import kafka
from connect_test import ConnectTest
from gateway import make_certificate
from processes import BUILD
from sink import Sink

PREFIX = 'PICOMQ_CONNECTORS_KAFKA__'


@unittest.skipIf(isinstance(kafka.jars(), str), kafka.jars())
class SecurityTest(ConnectTest):
    @classmethod
    def setUpClass(cls):
        BUILD.mkdir(exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=BUILD, prefix='Secure-', ignore_cleanup_errors=True)
        cls.addClassCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name).resolve()
        cls.certificate, key = make_certificate(folder / 'broker')
        cls.stranger, _ = make_certificate(folder / 'stranger')
        cls.broker = kafka.Broker(folder, (cls.certificate, key))
        cls.addClassCleanup(cls.broker.stop)

    def secure(self, name: str, **changes: object) -> Sink:
        """A connector with a group and a prefix of its own; `changes` to the settings that are right."""
        right = {'BOOTSTRAP_SERVERS': self.broker.secure_servers, 'SECURITY_PROTOCOL': 'SASL_SSL',
                 'SASL__MECHANISM': 'PLAIN', 'SASL__USERNAME': self.broker.user,
                 'SASL__PASSWORD': self.broker.password, 'TLS__CA_FILE': self.certificate}
        return self.connect(
            self.broker, self.definition(name, prefix=name, properties={'reconnect.backoff.max.ms': 500}), name=name,
            **{PREFIX + setting: str(value) for setting, value in {**right, **changes}.items()})

    def test_what_is_right_mirrors(self):
        self.broker.create('orders.right', 2)
        self.send(self.broker, 20, topic='orders.right')
        sink = self.secure('right')
        self.wait_landed(sink, 10, self.lake / 'right')
        self.hold(self.lake / 'right')
        self.assertEqual(sink.program.terminate(), 0)
        self.assertNotIn(self.broker.password, sink.text())

    def test_what_is_wrong_is_lag(self):
        """All at once: none ends or begins anew, each says why, and the secret stays one."""
        wrong = 'Wr0ng!'
        refused = {
            'password': ({'SASL__PASSWORD': wrong}, 'Authentication failure: .*Invalid username or password'),
            'authority': ({'TLS__CA_FILE': self.stranger}, 'SSL error: .*certificate verify failed'),
            'protocol': ({'SECURITY_PROTOCOL': 'plaintext'}, 'Broker transport failure: .*incorrect security.protocol'),
        }
        self.broker.create('orders.wrong', 2)
        self.send(self.broker, 20, topic='orders.wrong')
        sinks = {name: self.secure(name, **changes) for name, (changes, _) in refused.items()}
        for name, (_, why) in refused.items():
            with self.subTest(name):
                sink = sinks[name]
                sink.program.wait_for(lambda: re.search(f' warn  {name}: kafka: Local: {why}', sink.text()), why)
                self.assertEqual(sink.health(), (200, {'ok': True, 'queues': 0, 'connectors': 1}))
                self.assertEqual(sink.metric('picomq_connectors_sinks_running'), 1)
                sink.wait_metric('picomq_connector_errors_total', 1)
                sink.program.wait_for(lambda: 'kafka: ' in sink.get('/').text, 'the reason on the status page')
                self.assertEqual(sink.program.terminate(), 0)
                self.assertEqual(sink.text().count('worker 0: started'), 1, sink.text())
                self.assertEqual(sink.text().count(wrong) + sink.text().count(self.broker.password), 0)
        self.assertEqual([path for path in self.lake.rglob('*') if path.is_file()], [])


if __name__ == '__main__':
    unittest.main()
