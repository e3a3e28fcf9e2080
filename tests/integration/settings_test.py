"""Where settings come from, `-f FILE`, and `check`, which tries a configuration before it is started."""
import os
import unittest

import mirror
from devbroker import DevBroker
from gateway import Gateway
from processes import free_port
from sink import Sink, command, file_lake

SECRET = 'wJalr/secret+of=a test'


class SettingsTest(mirror.MirrorTest):
    def file(self, text: str, name: str = 'queen-s3.conf'):
        path = self.folder / name
        path.write_text(text)
        return path

    def place(self) -> str:
        return ''.join(f'{name}={value}\n' for name, value in file_lake(self.folder).items())

    def said(self, result, code: int) -> tuple[str, str]:
        """What it wrote: standard output and standard error."""
        self.assertEqual(result.returncode, code, result)
        return result.stdout.decode(), result.stderr.decode()

    # -f

    def test_run_from_a_file(self):
        broker = self.broker('--rate', 500, '--rate-records', 300)
        path = self.file(f'# the whole of it\nQUEEN_URL="{broker.url}"\nQUEEN_S3_QUEUES = {self.queue}\n{self.place()}'
                         "QUEEN_S3_SINK='from-file'\nQUEEN_S3_PREFIX=from-file\n"
                         + ''.join(f'{k}={v}\n' for k, v in mirror.QUICK.items()))
        # The environment wins; the name of the file holds from wherever it is started.
        sink = Sink(self.folder, {'QUEEN_S3_PREFIX': 'from-environment'}, '-f', os.path.relpath(path))
        self.addCleanup(sink.kill)
        line = sink.wait_line('target_mb')
        self.assertIn(' sink=from-file ', line)
        self.assertIn(' prefix=from-environment ', line)
        self.prefix, self.sink_name = 'from-environment', 'from-file'
        self.wait_mirrored(broker, sink, 300)
        self.assertEqual(sink.terminate(), 0)
        self.hold(broker)
        # Every command reads the same file, before its name and behind it.
        path.write_text(path.read_text().replace('PREFIX=from-file', 'PREFIX=from-environment'))
        for line in (['-f', path, 'windows', self.queue], ['windows', '-f', path, self.queue],
                     ['verify', self.queue, '-f', path], ['-f', path, 'cat', '--', self.queue],
                     ['-f', path, 'ddl', 'duckdb', self.queue], ['-f', path, 'check']):
            with self.subTest(line=[str(part) for part in line]):
                out, err = self.said(command({'QUEEN_S3_LISTEN': f'127.0.0.1:{free_port()}'}, *line), 0)
                self.assertTrue(out)
                self.assertEqual(err, '')

    def test_file_that_does_not_hold(self):
        base = f'QUEEN_S3_QUEUES=orders\n{self.place()}'
        for text, line, said in (('QUEEN_S3_BUKET=lake\n', 1, 'unknown setting QUEEN_S3_BUKET; did you mean '
                                  'QUEEN_S3_BUCKET?'),
                                 (base + 'PG_HOST=db\n', 4, 'unknown setting PG_HOST'),
                                 (base + 'QUEEN_S3_TARGET_MB=0\n', 4, 'QUEEN_S3_TARGET_MB=0: expected a whole number '
                                  'from 1 to 5120'),
                                 (base + f"\nQUEEN_S3_SECRET_KEY='{SECRET}\n", 5, 'the quote that begins here never '
                                  'ends'),
                                 (base + f'QUEEN_S3_SECRET_KEY {SECRET}\n', 4, 'expected NAME=value, or a comment '
                                  'that begins with # or ;'),
                                 (base + f'QUEEN_TOKEN={SECRET}\nQUEEN_TOKEN_FILE=/dev/null\n', 5,
                                  'QUEEN_TOKEN_FILE=/dev/null: expected either the secret itself or a file that holds '
                                  'it, not both')):
            for name in 'run', 'check', 'verify':
                with self.subTest(text=text, command=name):
                    path = self.file(text)
                    words = [self.queue] if name == 'verify' else []
                    out, err = self.said(command({}, name, '-f', path, *words), 2)
                    self.assertEqual((out, err), ('', f'queen-s3: {path}:{line}: {said}\n'))
        missing = self.folder / 'missing.conf'
        out, err = self.said(command({}, '-f', missing), 2)
        self.assertEqual((out, err), ('', f'queen-s3: configuration file {missing}: No such file or directory\n'))

    def test_arguments(self):
        path = self.file(self.place())
        for line, said in ((['-f'], '-f wants a file; see queen-s3 help'),
                           (['check', '-f'], '-f wants a value; see queen-s3 help check'),
                           (['-f', path, '-f', path, 'check'], '-f is given twice'),
                           (['-f', path, 'check', '-f', path], '-f is given twice'),
                           (['-f', path, 'chek'], 'unknown command chek; did you mean check?'),
                           (['-f', path, 'check', 'orders'], 'unexpected argument orders; see queen-s3 help check')):
            with self.subTest(line=[str(part) for part in line]):
                self.assertEqual(self.said(command({}, *line), 2), ('', f'queen-s3: {said}\n'))

    def test_unknown_variables_are_told(self):
        broker = self.broker()
        unknown = {'QUEEN_S3_BUKET': 'value-not-shown', 'QUEEN_S3_SERVICE_HOST': '10.0.0.1', 'QUEEN_S3_BIN': '/bin/x'}
        said = 'QUEEN_S3_BUKET: unknown setting in the environment, ignored; did you mean QUEEN_S3_BUCKET?'
        sink = self.sink(broker, **unknown)
        sink.wait_health()
        self.assertEqual(sink.terminate(), 0)
        self.assertEqual([line.split('warn')[1].strip() for line in sink.text().splitlines()
                          if 'unknown setting' in line], [said])
        self.assertNotIn('value-not-shown', sink.text())
        # Where a setting is missing it is told too: it may be this one that is meant.
        for name in [], ['check']:
            _, err = self.said(command(unknown, *name), 2)
            self.assertIn(said, err)
            self.assertIn('queen-s3: QUEEN_S3_QUEUES is not set', err)

    # check

    def check(self, code: int, broker: DevBroker | None = None, **changes) -> tuple[str, str]:
        return self.said(command({'QUEEN_URL': broker.url if broker else f'http://127.0.0.1:{free_port()}',
                                  'QUEEN_S3_QUEUES': self.queue, **file_lake(self.folder), **changes}, 'check'), code)

    def test_check_of_what_is_right(self):
        broker = self.broker()
        broker.push([{'queue': self.queue, 'partition': 'a', 'payload': 1}])
        out, err = self.check(0, broker)
        lines = out.splitlines()
        self.assertEqual((len(lines), err), (4, ''))
        self.assertRegex(lines[0], r'^queen-s3 \S+ sink=default instance=test-0 queues=orders .* workers=1$')
        self.assertRegex(lines[1], r'^broker: answers in \d+ ms, version 1\.x, safeTime \d{4}-\d\d-\d\dT[\d:.]+Z$')
        self.assertEqual(lines[2], 'queues: 1 of 1 are there')
        self.assertRegex(lines[3], r'^bucket: answers in \d+ ms: a file was written and removed$')
        # Nothing was claimed, nothing is left.
        self.assertIsNone(broker.document(self.queue, 'lease'))
        self.assertEqual([path.name for path in self.lake_folder.rglob('*') if path.is_file()], [])
        # A queue that isn't there is no error, and neither is a list that a token may not read.
        broker.fault(route='queues', kind='status', status=403)
        out, _ = self.check(0, broker, QUEEN_S3_QUEUES='nowhere,orders,gone')
        self.assertIn('queues: 1 of 3 are there; asked for again every minute: nowhere, gone\n', out)
        broker.clear_faults()
        out, _ = self.check(0, broker, QUEEN_S3_QUEUES='*')
        self.assertIn(', version 1.x, ', out)
        self.assertIn('queues: * is 1 by now: orders\n', out)

    def test_check_of_more_queues_than_a_call_takes(self):
        names = [f'q{i}' for i in range(150)]
        broker = self.broker(queues=tuple(names[:149]))
        out, _ = self.check(0, broker, QUEEN_S3_QUEUES=','.join(names))
        self.assertIn('queues: 149 of 150 are there; asked for again every minute: q149\n', out)

    def test_check_of_a_second_generation(self):
        broker = DevBroker(self.folder, '--queue', self.queue, '--broker', 2)
        self.addCleanup(broker.stop)
        broker.push([{'queue': self.queue, 'partition': 'a', 'payload': 1}])
        self.assertIn(', version 2.x, ', self.check(0, broker)[0])

    def test_check_warns(self):
        broker = self.broker()
        broker.control('safe-time', mode='degraded')
        _, err = self.check(0, broker, QUEEN_S3_MEMORY_MB='200')
        self.assertIn('queen-s3: warning: QUEEN_S3_MEMORY_MB=200: below 256', err)
        self.assertIn("queen-s3: warning: the broker's safeTime is degraded", err)
        self.assertIn('pg_read_all_stats', err)

    def test_check_of_what_does_not_answer(self):
        """Both sides are asked, and both are told."""
        port = free_port()
        out, err = self.check(3, QUEEN_S3_ENDPOINT=f'http://127.0.0.1:{port}', QUEEN_S3_PATH_STYLE='1',
                              QUEEN_S3_REGION='r', QUEEN_S3_ACCESS_KEY='k', QUEEN_S3_SECRET_KEY=SECRET)
        self.assertEqual(out.count('\n'), 1)
        self.assertEqual([line.split(' ')[1:4] for line in err.splitlines()],
                         [['cannot', 'reach', 'Queen'], ['cannot', 'use', 'bucket']])
        self.assertNotIn(SECRET, out + err)
        out, err = self.check(3)
        self.assertIn('bucket: answers in ', out)
        self.assertIn('QUEEN_URL', err)
        out, err = self.check(3, self.broker(), QUEEN_S3_ENDPOINT='file:///proc/no/such')
        self.assertIn('broker: answers in ', out)
        self.assertEqual(err, "queen-s3: can't make the folder /proc/no: No such file or directory\n")

    def test_check_of_settings_that_no_pool_can_have(self):
        out, err = self.check(2, QUEEN_S3_MEMORY_MB='47')
        self.assertIn('queen-s3: QUEEN_S3_MEMORY_MB=47: expected at least 48', err)
        self.assertNotIn('broker:', out + err)

    def test_check_of_a_bucket(self):
        broker = self.broker()
        with Gateway(self.folder / 's3') as s3:
            s3.make_bucket('lake')
            out, err = self.check(0, broker, **s3.sink_environment('lake'))
            self.assertRegex(out, r'bucket: answers in \d+ ms: HEAD of the prefix gives 404, which is fine\n')
            self.assertEqual(err, '')
            # The start can't tell this from an empty bucket; check can.
            out, err = self.check(3, broker, **s3.sink_environment('missing'))
            self.assertIn('broker: answers in ', out)
            self.assertIn('cannot use bucket missing at ', err)
            _, err = self.check(3, broker, **{**s3.sink_environment('lake'), 'QUEEN_S3_SECRET_KEY': SECRET})
            self.assertIn('403', err)
            self.assertNotIn(SECRET, err)


if __name__ == '__main__':
    unittest.main()
