"""The S3 gateway that other tests write to: it comes up, over TLS too, and lets nobody in without a signature."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from gateway import Gateway, make_certificate, program
from http_client import request
from processes import BUILD


class GatewayTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def refuses(self, s3: Gateway) -> None:
        s3.make_bucket('lake')
        for method in ('PUT', 'GET'):
            answer = request(method, s3.endpoint + '/lake/key', b'x' if method == 'PUT' else None, insecure=True)
            self.assertIn(answer.status, (400, 403), answer.text)
        self.assertEqual(list(s3.bucket('lake').rglob('key')), [])

    def test_plain(self):
        with Gateway(self.folder) as s3:
            self.refuses(s3)
            s3.start()
            self.assertTrue(s3.bucket('lake').is_dir())

    def test_tls(self):
        with Gateway(self.folder, *make_certificate(self.folder / 'tls')) as s3:
            self.assertTrue(s3.endpoint.startswith('https://'))
            self.refuses(s3)

    def test_store_over_tls(self):
        """The unit test of the S3 store, which the runner gives a plain gateway, once more over TLS."""
        certificate, key = make_certificate(self.folder / 'tls')
        environment = os.environ | {'QUEEN_S3_TEST_GATEWAY': program(), 'QUEEN_S3_TEST_GATEWAY_CERT': str(certificate),
                                    'QUEEN_S3_TEST_GATEWAY_KEY': str(key)}
        result = subprocess.run([BUILD / 'tests/unit/s3_gateway_test'], env=environment, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=240)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r'100%: Checks: [1-9]')


if __name__ == '__main__':
    unittest.main()
