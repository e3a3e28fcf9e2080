"""The S3 gateway that other tests write to: it comes up, over TLS too, and lets nobody in without a signature."""
import pathlib
import tempfile
import unittest

from gateway import Gateway, make_certificate
from http_client import request


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


if __name__ == '__main__':
    unittest.main()
