"""What ships beside the program and runs elsewhere: systemd unit, alert rules, dashboard, Kubernetes manifests, image.

Each is held against the tool that will read it (systemd-analyze, promtool, the schemas of Kubernetes, BuildKit's own
parser), and against the program: settings that it knows, metrics and labels that a running pool shows, its version, its
times. package_test.py installs and runs the Debian package.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

import installed
import kafka
import mirror
import promtool
from processes import BUILD, ROOT
from sink import SAMPLE, LABEL

PACKAGING = ROOT / 'packaging'
UNIT = PACKAGING / 'systemd/queen-s3.service'
RULES = PACKAGING / 'prometheus/queen-s3.rules.yaml'
DASHBOARD = PACKAGING / 'grafana/queen-s3.json'
CONFIGURATION = PACKAGING / 'queen-s3.conf'
SETTINGS = '\n'.join(p.read_text() for p in sorted((ROOT / 'common').glob('setting*.c')))
VERSION = re.search(r'#define QUEEN_S3_VERSION "([^"]+)"', (ROOT / 'common/settings.h').read_text())[1]
# The table of settings, one text a row: names, and the defaults of those that have one.
ROWS = {row[1]: row[0] for row in re.finditer(r'{\.name = "(\w+)".*?(?=\n    {\.name|\n};)', SETTINGS, re.S)}
DEFAULTS = {name: found[1] for name, row in ROWS.items() if (found := re.search(r'fallback = "([^"]*)"', row))}
GRACE = int(DEFAULTS['QUEEN_S3_SHUTDOWN_GRACE_MS']) / 1000

METRIC = r'\b((?:queen_s3|picomq_connectors?)_[a-z0-9_]+)'
# What prometheus adds to every sample of a scrape.
SCRAPED = {'job', 'instance'}


def run(*arguments: object, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120, **options)


def assignments(text: str) -> list[tuple[str, str]]:
    """NAME=value of a configuration file, commented out or not."""
    return re.findall(r'^#?([A-Z][A-Z0-9_]+)=(.*)$', text, re.M)


class Versions(unittest.TestCase):
    def test_all_say_the_same(self):
        changelog = (PACKAGING / 'debian/changelog').read_text()
        self.assertEqual(re.match(r'queen-s3 \(([^)]+)\)', changelog)[1], VERSION)
        self.assertIn(f'newTag: {VERSION}\n', (PACKAGING / 'kubernetes/kustomization.yaml').read_text())
        self.assertIn(f'image.version="{VERSION}"', (PACKAGING / 'docker/Dockerfile').read_text())


class Configuration(unittest.TestCase):
    def test_every_name_is_a_setting(self):
        text = CONFIGURATION.read_text()
        names = {name for name, _ in assignments(text)}
        self.assertGreater(len(names), 25)
        self.assertEqual(names - set(ROWS), set())

    def test_the_program_takes_it_all(self):
        """With each line uncommented but those that stand in the place of others."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir=BUILD)))
        (folder / 'secret').write_text('secret\n')
        text = re.sub(r'^#([A-Z][A-Z0-9_]+=)', r'\1', CONFIGURATION.read_text(), flags=re.M)
        text = text.replace('QUEEN_S3_ENDPOINT=file:///var/lib/queen-s3\nQUEEN_S3_BUCKET=lake\n', '')
        text = re.sub(r'(?<==)/etc/queen-s3/credentials/[a-z-]+', str(folder / 'secret'), text)
        (folder / 'queen-s3.conf').write_text(text)
        done = run(BUILD / 'queen-s3', 'policy', '-f', folder / 'queen-s3.conf', env={'PATH': os.environ['PATH']})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn('"arn:aws:s3:::my-lake"', done.stdout)
        (folder / 'queen-s3.conf').write_text(text + 'QUEEN_S3_PREFIXX=x\n')
        done = run(BUILD / 'queen-s3', 'policy', '-f', folder / 'queen-s3.conf', env={'PATH': os.environ['PATH']})
        self.assertEqual(done.returncode, 2, done.stdout)

    def test_no_secret_belongs_there(self):
        names = {name for name, _ in assignments(CONFIGURATION.read_text())}
        self.assertFalse(names & {'QUEEN_TOKEN', 'QUEEN_S3_SECRET_KEY'})

    def test_what_it_shows_as_default_is_one(self):
        shown = {'QUEEN_URL', 'QUEEN_S3_SINK', 'QUEEN_S3_PREFIX', 'QUEEN_S3_TARGET_MB', 'QUEEN_S3_MAX_WINDOW_MS',
                 'QUEEN_S3_MEMORY_MB', 'QUEEN_S3_LISTEN', 'QUEEN_S3_SHUTDOWN_GRACE_MS'}
        for name, value in assignments(CONFIGURATION.read_text()):
            if name in shown:
                self.assertEqual(value, DEFAULTS[name], name)
                shown.discard(name)
        self.assertEqual(shown, set())


class Systemd(unittest.TestCase):
    def setUp(self):
        if not shutil.which('systemd-analyze'):
            self.skipTest('systemd-analyze is not installed')
        # The same unit with a program that is there: verify looks for it.
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir=BUILD)))
        self.unit = self.folder / UNIT.name
        text = UNIT.read_text()
        self.assertIn('ExecStart=/usr/bin/queen-s3 ', text)
        self.unit.write_text(text.replace('/usr/bin/queen-s3 ', f'{BUILD}/queen-s3 '))

    def value(self, name: str) -> str:
        return re.search(rf'^{name}=(.*)$', UNIT.read_text(), re.M)[1]

    def test_verify(self):
        done = run('systemd-analyze', 'verify', '--man=no', self.unit)
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_verify_sees_a_mistake(self):
        self.unit.write_text(self.unit.read_text().replace('KillMode=mixed', 'KillMod=mixed'))
        self.assertIn('KillMod', run('systemd-analyze', 'verify', '--man=no', self.unit).stdout)

    def test_exposure(self):
        if 'offline' not in run('systemd-analyze', '--help').stdout:
            self.skipTest('this systemd-analyze rates no unit offline')
        done = run('systemd-analyze', 'security', '--offline=true', '--threshold=20', '--no-pager', self.unit)
        self.assertEqual(done.returncode, 0, done.stdout)
        rating = re.search(r'Overall exposure level for \S+: ([0-9.]+)', done.stdout)
        self.assertLess(float(rating[1]), 2.0)

    def test_times(self):
        self.assertGreater(int(self.value('TimeoutStopSec')), GRACE + 5)
        # Two probes of 30 s each.
        self.assertGreater(int(self.value('TimeoutStartSec')), 60)


class Prometheus(mirror.MirrorTest):
    def test_rules(self):
        code, text = promtool.run('test', 'rules', 'queen-s3.rules.test.yaml', folder=RULES.parent)
        self.assertEqual(code, 0, text)

    def test_every_alert_is_tested(self):
        alerts = set(re.findall(r'- alert: (\w+)', RULES.read_text()))
        self.assertGreater(len(alerts), 8)
        fired = set(re.findall(r'alertname="(\w+)",alertstate="firing"', RULES.with_suffix('.test.yaml').read_text()))
        self.assertEqual(alerts, fired)

    def test_tests_see_a_change(self):
        (self.folder / 'queen-s3.rules.test.yaml').write_text(RULES.with_suffix('.test.yaml').read_text())
        for old, new in (('queen_s3_lag_seconds) > 900\n        for', 'queen_s3_lag_seconds) > 898\n        for'),
                         ('up{job="queen-s3"} == 0', 'up == 0'), ('"[23]..|404"', '"[23].."'),
                         ('restarts_total[15m]) > 3', 'restarts_total[15m]) > 0'),
                         ('sinks_total\n          and on (job, instance) queen_s3_build_info', 'sinks_total'),
                         ('errors_total[5m])) > 0\n          and on (job, instance) queen_s3_build_info',
                          'errors_total[5m])) > 0'),
                         ('errors_total[5m])) > 0', 'errors_total[5m])) > 20')):
            text = RULES.read_text()
            self.assertIn(old, text)
            (self.folder / RULES.name).write_text(text.replace(old, new, 1))
            code, told = promtool.run('test', 'rules', 'queen-s3.rules.test.yaml', folder=self.folder)
            self.assertNotEqual(code, 0, f'{new}\n{told}')

    def expressions(self) -> list[str]:
        """Those of all panels and alerts, variables filled in."""
        found = [target['expr'] for panel in json.loads(DASHBOARD.read_text())['panels']
                 for target in panel.get('targets', [])]
        found = [re.sub(r'\$(job|instance|queue)\b', '.*', e).replace('$__rate_interval', '5m') for e in found]
        code, text = promtool.run('check', 'rules', RULES.name, folder=RULES.parent)
        self.assertEqual(code, 0, text)
        rules = installed.python('PyYAML')
        told = run(rules, '-c', 'import json, sys, yaml\n'
                   'print(json.dumps([r["expr"] for g in yaml.safe_load(open(sys.argv[1]))["groups"] '
                   'for r in g["rules"]]))', RULES)
        return found + json.loads(told.stdout)

    def test_every_expression_is_one(self):
        (self.folder / 'rules.yaml').write_text(json.dumps({'groups': [{'name': 'panels', 'rules': [
            {'record': f'panel:{i}', 'expr': e} for i, e in enumerate(self.expressions())]}]}))
        code, text = promtool.run('check', 'rules', 'rules.yaml', folder=self.folder)
        self.assertEqual(code, 0, text)

    def scrape(self) -> dict[str, set[str]]:
        """The names of all metrics of a running pool, with their labels. It has lived through what makes a series."""
        broker = self.broker()
        broker.push(mirror.records(50))
        log = kafka.Mock()
        self.addCleanup(log.stop)
        log.create('clicks', 1)
        kafka.define(self.folder / 'connectors/clicks.toml', 'clicks', 'clicks', self.folder)
        sink = self.sink(broker, QUEEN_S3_CONNECTORS=str(self.folder / 'connectors'),
                         PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS=log.servers)
        sink.wait_records(50)
        os.kill(sink.workers()[0], signal.SIGKILL)
        sink.wait_metric('queen_s3_worker_restarts_total', 1)
        text = sink.get('/metrics').text
        # A gauge that ends in _total: PicoMQ's runtime has called it so, and what watches that is to go on.
        code, told = self.check_metrics(text.replace('picomq_connectors_sinks_total', 'picomq_connectors_sinks'))
        self.assertEqual(code, 0, told)
        names: dict[str, set[str]] = {'up': set(), 'ALERTS': set()}
        for line in text.splitlines():
            if found := SAMPLE.match(line):
                names.setdefault(found[1], set()).update(label for label, _ in LABEL.findall(found[2] or ''))
        return names

    def check_metrics(self, text: str) -> tuple[int, str]:
        """What promtool thinks of a scrape."""
        done = subprocess.run([promtool.program(), 'check', 'metrics'], input=text, capture_output=True, text=True,
                              timeout=60)
        return done.returncode, done.stdout + done.stderr

    def test_every_metric_is_there(self):
        there = self.scrape()
        expressions = self.expressions()
        dashboard = json.loads(DASHBOARD.read_text())
        expressions += [v['definition'] for v in dashboard['templating']['list'] if v['type'] == 'query']
        used = set()
        for expression in expressions:
            names = re.findall(METRIC, expression)
            self.assertTrue(names or 'up{' in expression, expression)
            labels = set().union(SCRAPED, *(there.get(name, set()) for name in names))
            for name, matchers in re.findall(METRIC + r'\{([^}]*)\}', expression):
                for label in re.findall(r'(\w+)\s*[=!]', matchers):
                    self.assertIn(label, there.get(name, set()) | SCRAPED, f'{name} in {expression}')
            for group in re.findall(r'\b(?:by|on) \(([^)]*)\)', expression):
                self.assertLessEqual(set(re.split(r',\s*', group)), labels, expression)
            self.assertLessEqual(set(names), set(there), expression)
            used.update(names)
        # And the other way round: nothing that the pool tells is left out of the dashboard.
        self.assertEqual(set(there) - used - {'up', 'ALERTS'}, set())

    def test_dashboard(self):
        dashboard = json.loads(DASHBOARD.read_text())
        variables = {v['name'] for v in dashboard['templating']['list']}
        self.assertEqual(variables, {'datasource', 'job', 'instance', 'queue'})
        panels = dashboard['panels']
        self.assertEqual(len({p['id'] for p in panels}), len(panels))
        taken = set()
        for panel in panels:
            place = panel['gridPos']
            cells = {(x, y) for x in range(place['x'], place['x'] + place['w'])
                     for y in range(place['y'], place['y'] + place['h'])}
            self.assertLessEqual(place['x'] + place['w'], 24)
            self.assertFalse(cells & taken, panel['title'])
            taken |= cells
            if panel['type'] == 'row':
                continue
            self.assertTrue(panel['description'], panel['title'])
            self.assertEqual(panel['datasource']['uid'], '${datasource}')
            for target in panel['targets']:
                kept = set(re.findall(r'{{(\w+)}}', target['legendFormat']))
                told = re.search(r'\bby \(([^)]*)\)', target['expr'])
                if told:
                    self.assertLessEqual(kept, set(re.split(r',\s*', told[1])), target['expr'])


class Kubernetes(unittest.TestCase):
    CHECK = '''
import json, pathlib, sys, kubernetes_validate, yaml
documents = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob('*.yaml')):
    documents[path.name] = document = yaml.safe_load(path.read_text())
    if document['kind'] not in ('Kustomization', 'ServiceMonitor'):
        for version in sys.argv[2:]:
            kubernetes_validate.validate(document, version, strict=True)
print(json.dumps(documents))
'''

    def setUp(self):
        self.python = installed.python('kubernetes-validate', 'PyYAML')
        self.folder = PACKAGING / 'kubernetes'

    def documents(self, folder: pathlib.Path | None = None) -> dict[str, dict]:
        done = run(self.python, '-c', self.CHECK, folder or self.folder, '1.27', '1.37')
        self.assertEqual(done.returncode, 0, done.stdout)
        return json.loads(done.stdout)

    def test_schema(self):
        self.assertEqual(len(self.documents()), 6)

    def test_schema_sees_a_mistake(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            text = (self.folder / 'deployment.yaml').read_text()
            (pathlib.Path(folder) / 'deployment.yaml').write_text(text.replace('livenessProbe', 'livenesProbe'))
            with self.assertRaisesRegex(AssertionError, 'livenesProbe'):
                self.documents(pathlib.Path(folder))

    def test_they_name_each_other(self):
        documents = self.documents()
        kustomization = documents.pop('kustomization.yaml')
        self.assertEqual(set(kustomization['resources']), set(documents))
        deployment = documents['deployment.yaml']['spec']
        pod = deployment['template']
        labels = pod['metadata']['labels']
        container = pod['spec']['containers'][0]
        self.assertEqual(deployment['selector']['matchLabels'], labels)
        self.assertEqual(documents['service.yaml']['spec']['selector'], labels)
        monitor = documents['servicemonitor.yaml']['spec']
        self.assertEqual(monitor['selector']['matchLabels'], documents['service.yaml']['metadata']['labels'])
        self.assertEqual(monitor['endpoints'][0]['port'], documents['service.yaml']['spec']['ports'][0]['name'])
        self.assertEqual(labels[monitor['jobLabel']], 'queen-s3')
        self.assertEqual([image['name'] for image in kustomization['images']], [container['image']])
        secret = documents['secret.yaml']
        self.assertEqual(container['envFrom'],
                         [{'configMapRef': {'name': documents['configmap.yaml']['metadata']['name']}}])
        volume = next(v['secret'] for v in pod['spec']['volumes'] if v['name'] == 'credentials')
        self.assertEqual(volume['secretName'], secret['metadata']['name'])
        wanted = {item['key'] for item in volume['items']}
        wanted |= {e['valueFrom']['secretKeyRef']['key'] for e in container['env'] if 'valueFrom' in e}
        self.assertEqual(wanted, set(secret['stringData']))
        mount = next(m['mountPath'] for m in container['volumeMounts'] if m['name'] == 'credentials')
        files = {e['value'] for e in container['env'] if 'value' in e}
        self.assertEqual(files, {f'{mount}/{item["path"]}' for item in volume['items']})

    def test_it_fits_the_program(self):
        documents = self.documents()
        data = documents['configmap.yaml']['data']
        pod = documents['deployment.yaml']['spec']['template']['spec']
        container = pod['containers'][0]
        self.assertLessEqual(set(data) | {e['name'] for e in container['env']}, set(ROWS))
        self.assertEqual(int(data['QUEEN_S3_SHUTDOWN_GRACE_MS']) / 1000, GRACE)
        self.assertGreater(pod['terminationGracePeriodSeconds'], GRACE + 5)
        self.assertTrue(data['QUEEN_S3_LISTEN'].endswith(f':{container["ports"][0]["containerPort"]}'))
        limit = int(container['resources']['limits']['memory'].removesuffix('Mi'))
        self.assertGreaterEqual(limit, 1.25 * int(data['QUEEN_S3_MEMORY_MB']))
        self.assertEqual((documents['deployment.yaml']['spec']['replicas'],
                          documents['deployment.yaml']['spec']['strategy']['type']), (1, 'Recreate'))


# What it takes to build, as with-dependencies has it, less what only tests use.
BUILD_PACKAGES = set(re.search(r'^packages="([^"]*)"', (PACKAGING / 'with-dependencies').read_text(), re.M)[1].split()
                     ) - {'python3', 'python3-zstandard', 'zstd', 'git', 'ca-certificates'}


class Debian(unittest.TestCase):
    def test_build_depends(self):
        text = (PACKAGING / 'debian/control').read_text()
        listed = re.search(r'^Build-Depends:\n((?: .*\n)+)', text, re.M)[1]
        self.assertEqual({re.match(r'[a-z0-9.+-]+', entry)[0] for entry in re.findall(r' (.*),\n', listed)},
                         BUILD_PACKAGES - {'make', 'gcc', 'g++', 'libc6-dev'} | {'debhelper-compat'})


class Docker(mirror.MirrorTest):
    DOCKERFILE = PACKAGING / 'docker/Dockerfile'
    PARSE = '''
import dockerfile, json, sys
print(json.dumps([(c.cmd, list(c.flags), list(c.value), c.original) for c in dockerfile.parse_file(sys.argv[1])]))
'''

    def setUp(self):
        super().setUp()
        if BUILD != ROOT / 'build':
            self.skipTest('the image is built without sanitizers')
        done = run(installed.python('dockerfile'), '-c', self.PARSE, self.DOCKERFILE)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.steps = json.loads(done.stdout)
        last = max(i for i, step in enumerate(self.steps) if step[0] == 'FROM')
        self.build, self.image = self.steps[:last], self.steps[last:]

    def values(self, steps: list, command: str) -> list[list[str]]:
        return [value for name, _, value, _ in steps if name == command]

    def packages(self, steps: list) -> set[str]:
        text = ' '.join(value[0] for value in self.values(steps, 'RUN'))
        return set(re.search(r'apt-get install -y --no-install-recommends ([a-z0-9+. -]+?) +&&', text)[1].split())

    def test_image(self):
        self.assertEqual(self.values(self.image, 'USER'), [['65532:65532']])
        self.assertEqual(self.values(self.image, 'STOPSIGNAL'), [['SIGTERM']])
        self.assertEqual(self.values(self.image, 'ENTRYPOINT'), [['/usr/bin/queen-s3']])
        self.assertEqual(len(self.values(self.image, 'HEALTHCHECK')), 1)
        names = {value[0] for value in self.values(self.steps, 'ENV')}
        self.assertLessEqual(names, set(ROWS) - {'QUEEN_TOKEN', 'QUEEN_S3_SECRET_KEY'})
        # Nothing of the build's but the program, and what no build stage has made.
        copied = [(flags, value) for name, flags, value, _ in self.image if name == 'COPY']
        self.assertEqual({tuple(flags) for flags, _ in copied}, {('--from=build',)})

    def test_build_packages(self):
        self.assertEqual(self.packages(self.build), BUILD_PACKAGES)

    def test_it_builds_from_what_it_copies(self):
        """The stage's own steps, in a folder with only its context. The objects of this build are good there."""
        with tempfile.TemporaryDirectory(dir=BUILD) as name:
            source, stage = pathlib.Path(name, 'source'), pathlib.Path(name, 'stage')
            source.mkdir()
            for _, flags, value, _ in (s for s in self.build if s[0] == 'COPY'):
                self.assertEqual(len(value), 2)
                self.assertTrue((ROOT / value[0]).exists(), value)
                self.assertIn(f'!{value[0]}\n', self.DOCKERFILE.with_name('Dockerfile.dockerignore').read_text())
                (source / value[0]).symlink_to(ROOT / value[0])
            shutil.copytree(BUILD / 'obj/release', source / 'build/obj/release')
            step = self.values(self.build, 'RUN')[-1][0].replace('/stage', shlex.quote(str(stage)))
            environment = {k: v for k, v in os.environ.items() if not k.startswith('MAKE') and k != 'MFLAGS'}
            done = run('sh', '-c', step, cwd=source, env=environment)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(run(stage / 'usr/bin/queen-s3', 'version').stdout, f'queen-s3 {VERSION}\n')
            for value in self.values(self.image, 'COPY'):
                self.assertTrue(pathlib.Path(str(stage) + value[0].removeprefix('/stage')).exists(), value)

    def test_health_check(self):
        """Bad while no pool answers, good while one does."""
        words, = self.values(self.image, 'HEALTHCHECK')
        self.assertEqual(words[0], 'CMD')
        check = words[1].replace('/usr/bin/queen-s3', str(BUILD / 'queen-s3'))
        control = self.folder / 'control.sock'
        broker = self.broker()
        sink = self.sink(broker, QUEEN_S3_CONTROL=str(control), start=False)
        environment = {k: str(v) for k, v in sink.environment.items()}
        self.assertNotEqual(run('sh', '-c', check, env=environment).returncode, 0)
        sink.start()
        sink.wait_metric('queen_s3_worker_up', 1)
        done = run('sh', '-c', check, env=environment)
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_runtime_packages(self):
        """What the program is linked with, and no library more."""
        done = run('ldd', BUILD / 'queen-s3')
        needed = run('objdump', '-p', BUILD / 'queen-s3').stdout
        direct = set(re.findall(r'NEEDED +(\S+)', needed))
        paths = [p for name, p in re.findall(r'(\S+) => (\S+)', done.stdout) if name in direct]
        owners = run('dpkg-query', '-S', *{os.path.realpath(p) for p in paths}, *paths).stdout
        packages = set(re.findall(r'^([a-z0-9.+-]+)(?::\w+)?: ', owners, re.M)) - {'dpkg-query'}
        packages -= {'libc6', 'libgcc-s1', 'libstdc++6'}  # no Debian is without these
        self.assertEqual(self.packages(self.image) - {'ca-certificates'}, packages)


if __name__ == '__main__':
    unittest.main()
