"""`policy` against what the sink is seen to ask of a bucket: all that it does is granted, and nothing else is."""
import fnmatch
import json
import signal
import unittest
import urllib.parse

import mirror
from gateway import Gateway
from sink import command


def action(method: str, path: str, query: str) -> tuple[str, str]:
    """The S3 action that a request needs, and the ARN that it needs it on."""
    _, bucket, key = (urllib.parse.unquote(path) + '/').split('/', 2)
    key = key.rstrip('/') if not path.endswith('/') else key[:-1]
    asked = urllib.parse.parse_qs(query, keep_blank_values=True)
    if method == 'GET' and 'list-type' in asked:
        return 's3:ListBucket', f'arn:aws:s3:::{bucket}'
    names = {'PUT': 's3:PutObject', 'POST': 's3:PutObject', 'GET': 's3:GetObject', 'HEAD': 's3:GetObject',
             'DELETE': 's3:AbortMultipartUpload' if 'uploadId' in asked else 's3:DeleteObject'}
    return names[method], f'arn:aws:s3:::{bucket}/{key}'


class PolicyTest(mirror.MirrorTest):
    def seen(self, gateway: Gateway) -> set[tuple[str, str]]:
        fields = [[part.strip() for part in line.split(' | ')] for line in gateway.requests()]
        return {action(f[4], f[5], f[7] if len(f) > 7 else '') for f in fields if f[5] != '/health'}

    def test_all_that_is_asked_is_granted(self):
        gateway = Gateway(self.folder)
        self.addCleanup(gateway.stop)
        gateway.make_bucket('lake')
        broker = self.broker('--rate', 1000)
        environment = {**gateway.sink_environment('lake'), 'QUEEN_S3_CHECKPOINT_EVERY': '1'}
        for layout, point in (('merged', 'after_upload'), ('per-partition', 'mid_upload')):
            sink = self.sink(broker, name=layout, QUEEN_S3_LAYOUT=layout, QUEEN_S3_CRASH_AT=point, **environment)
            self.assertEqual(sink.wait(), -signal.SIGKILL)
            sink.start(QUEEN_S3_CRASH_AT='never')
            sink.wait_metric('queen_s3_windows_committed_total', 3)
            self.assertEqual(sink.terminate(), 0)
        printed = command(environment, 'policy')
        self.assertEqual(printed.returncode, 0, printed.stderr)
        statements = json.loads(printed.stdout)['policy']['Statement']
        seen = self.seen(gateway)
        for wanted, resource in sorted(seen):
            granted = any(wanted in s['Action'] and fnmatch.fnmatchcase(resource, s['Resource']) for s in statements)
            self.assertTrue(granted, f'{wanted} on {resource}')
        used = {wanted for wanted, _ in seen}
        self.assertLessEqual({'s3:PutObject', 's3:GetObject', 's3:ListBucket', 's3:DeleteObject'}, used)
        self.assertEqual({a for s in statements for a in s['Action']} - used - {'s3:AbortMultipartUpload'}, set())


if __name__ == '__main__':
    unittest.main()
