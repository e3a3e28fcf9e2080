"""A real S3 gateway on 127.0.0.1 that keeps each bucket as a folder and checks signatures.

    with Gateway(folder) as s3:
        s3.make_bucket('lake')
        ... s3.endpoint, s3.access_key, s3.secret_key, s3.region ...
        s3.bucket('lake')   # the folder in which a key is a file of that name

What it does that S3 does not: a wrong access key is a 404 (`XAdminUserNotFound`), not a 403 (a wrong secret is one);
it ignores `encoding-type=url`, and leaves `<EncodingType>` empty then; a bucket's folder also has `.sgwtmp`, where
uploads wait; a key can't be both an object and the folder of another (409).

What it does as S3: ETags (MD5, `-<n>` after a multipart upload), Content-MD5, 5 MiB at least for a part but the last,
`NoSuchUpload`, V2 lists with `start-after`, TLS.
"""
import os
import pathlib
import shutil
import subprocess
import unittest

from processes import DEADLINE, ROOT, Program, free_port
from http_client import request


def program() -> str:
    """Where the gateway is, built when it has to be. A test is skipped only where no Go can build it, and never in CI
    on a machine that has one."""
    built = subprocess.run([ROOT / 'tests/integration/gateway'], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=1200)
    if built.returncode == 0:
        return built.stdout.strip()
    reason = (built.stderr.strip().splitlines() or ['gateway: no reason given'])[-1]
    has_go = shutil.which('go') or os.access('/usr/local/go/bin/go', os.X_OK)
    if built.returncode == 77 and not (os.environ.get('CI') == 'true' and has_go):
        raise unittest.SkipTest(reason)
    raise AssertionError(reason)


class Gateway:
    access_key = 'queen-s3-tests'
    secret_key = 'a/secret+of=the tests'
    region = 'eu-central-1'

    def __init__(self, folder: pathlib.Path, certificate: pathlib.Path | None = None, key: pathlib.Path | None = None,
                 port: int = 0):
        """Buckets go to `folder`/buckets. With a certificate and key (PEM files) the endpoint is https."""
        self.folder = pathlib.Path(folder).resolve()
        self.certificate, self.key = certificate, key
        self.port = port or free_port()
        self.endpoint = f'http{"s" if certificate else ""}://127.0.0.1:{self.port}'
        self.program: Program | None = None
        self.start()

    def start(self) -> None:
        """Starts it (again, on the same port) and waits until it answers."""
        self.stop()
        buckets, sidecar = self.folder / 'buckets', self.folder / 'sidecar'
        buckets.mkdir(parents=True, exist_ok=True)
        sidecar.mkdir(exist_ok=True)
        arguments = [program(), '--port', f'127.0.0.1:{self.port}', '--region', self.region, '--health', '/health']
        if self.certificate:
            arguments += ['--cert', self.certificate, '--key', self.key]
        # ETags and content types are kept beside the buckets, so any file system will do.
        arguments += ['posix', '--sidecar', sidecar, buckets]
        environment = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'HOME': str(self.folder),
                       'ROOT_ACCESS_KEY': self.access_key, 'ROOT_SECRET_KEY': self.secret_key}
        self.program = Program(arguments, self.folder / 'gateway.log', environment)
        self.program.wait_for(lambda: request('GET', self.endpoint + '/health', insecure=True).status == 200,
                              'answer to /health', DEADLINE)

    def make_bucket(self, name: str) -> pathlib.Path:
        folder = self.folder / 'buckets' / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def bucket(self, name: str) -> pathlib.Path:
        return self.folder / 'buckets' / name

    def requests(self) -> list[str]:
        """The gateway's own log lines since it started, one a request."""
        return [line for line in self.program.text().splitlines() if ' | ' in line]

    def stop(self) -> None:
        """Ends it at once: what it answered is on disk."""
        if self.program:
            self.program.kill()
            self.program = None

    def sink_environment(self, bucket: str) -> dict[str, str]:
        """What the sink has to be told to write to `bucket`."""
        environment = {'QUEEN_S3_ENDPOINT': self.endpoint, 'QUEEN_S3_REGION': self.region, 'QUEEN_S3_BUCKET': bucket,
                       'QUEEN_S3_ACCESS_KEY': self.access_key, 'QUEEN_S3_SECRET_KEY': self.secret_key,
                       'QUEEN_S3_PATH_STYLE': 'true'}
        if self.certificate:
            environment['QUEEN_S3_CA_FILE'] = str(self.certificate)
        return environment

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def make_certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A self-signed certificate for 127.0.0.1 and localhost, and its key, as PEM files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / 'certificate.pem', folder / 'key.pem'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                    '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
                    '-keyout', key, '-out', certificate], check=True, capture_output=True, timeout=DEADLINE)
    return certificate, key
