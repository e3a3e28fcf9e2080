"""The S3 store, in C, against a real gateway: signatures over odd keys, multipart, lists, wrong settings; TLS too."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from gateway import make_certificate, program
from processes import BUILD


class S3StoreTest(unittest.TestCase):
    def run_with(self, **variables: str) -> None:
        answer = subprocess.run([BUILD / 'tests/unit/s3_gateway_test'], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                                env=dict(os.environ, QUEEN_S3_TEST_GATEWAY=program(), **variables))
        self.assertEqual(answer.returncode, 0, answer.stdout)
        self.assertIn('100%', answer.stdout)

    def test_plain(self):
        self.run_with()

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = make_certificate(pathlib.Path(folder) / 'tls')
            self.run_with(QUEEN_S3_TEST_GATEWAY_CERT=str(certificate), QUEEN_S3_TEST_GATEWAY_KEY=str(key))


if __name__ == '__main__':
    unittest.main()
