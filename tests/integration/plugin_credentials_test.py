"""Where the plugin gets its credentials from when the configuration has none: each source of the default chain, their
order, what is signed with them, and that they are renewed."""
import datetime
import json
import pathlib
import tempfile
import unittest
import urllib.parse

from bucket_server import BucketServer, Request
from plugin_host import ERROR, Host
from plugin_test import config, name, records

AFTER = datetime.timedelta(hours=6)


def when(delta: datetime.timedelta) -> str:
    return (datetime.datetime.now(datetime.timezone.utc) + delta).strftime('%Y-%m-%dT%H:%M:%SZ')


def answer_json(key: str, delta: datetime.timedelta = AFTER) -> bytes:
    return json.dumps({'Code': 'Success', 'AccessKeyId': key, 'SecretAccessKey': 'secret', 'Token': f'token of {key}',
                       'Expiration': when(delta)}).encode()


class Case(unittest.TestCase):
    def setUp(self):
        self.s3 = self.enterContext(BucketServer())
        # Stands for STS, the container's agent and the instance's metadata; each has paths of its own.
        self.source = self.enterContext(BucketServer())
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.environment = {'HOME': str(self.folder), 'AWS_EC2_METADATA_SERVICE_ENDPOINT': self.source.endpoint + '/',
                            # nobody is there: what goes through it fails
                            'http_proxy': 'http://127.0.0.1:1', 'no_proxy': 'localhost'}
        self.expires = AFTER
        self.source.answer = self.metadata

    def enterContext(self, manager):
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered

    def metadata(self, request: Request):
        if request.key == 'latest/api/token' and request.method == 'PUT':
            self.assertEqual(request.headers['x-aws-ec2-metadata-token-ttl-seconds'], '21600')
            return 200, b'metadata-token'
        if request.headers.get('x-aws-ec2-metadata-token') != 'metadata-token':
            return 401
        if request.key == 'latest/meta-data/iam/security-credentials/':
            return 200, b'the-role\n'
        if request.key == 'latest/meta-data/iam/security-credentials/the-role':
            return 200, answer_json('METADATA', self.expires)
        return 404

    def open(self, **more) -> Host:
        given = config(self.s3, **more) | {'endpoint': self.s3.endpoint.replace('127.0.0.1', 'localhost')}
        del given['access_key_id'], given['secret_access_key']
        host = self.enterContext(Host(self.environment))
        self.opened = host.open(1, given)
        return host

    def signed_by(self, access_key: str, token: str | None) -> None:
        self.assertTrue(self.s3.requests)
        for request in self.s3.requests:
            authorization = request.headers['authorization']
            self.assertIn(f'Credential={access_key}/', authorization)
            self.assertEqual(request.headers.get('x-amz-security-token'), token)
            self.assertEqual('x-amz-security-token' in authorization, token is not None)

    def profile(self, text: str, file: str = '.aws/credentials') -> pathlib.Path:
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path


class Sources(Case):
    def test_environment(self):
        self.environment |= {'AWS_ACCESS_KEY_ID': 'ENV', 'AWS_SECRET_ACCESS_KEY': 's', 'AWS_SESSION_TOKEN': 't/+='}
        self.profile('[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n')
        self.open()
        self.assertEqual(self.opened, 0)
        self.signed_by('ENV', 't/+=')

    def test_environment_without_a_token(self):
        self.environment |= {'AWS_ACCESS_KEY_ID': 'ENV', 'AWS_SECRET_ACCESS_KEY': 's'}
        self.open()
        self.signed_by('ENV', None)

    def test_web_identity(self):
        token = self.folder / 'token'
        token.write_text('a.web+token\n')

        def sts(request: Request):
            form = urllib.parse.parse_qs(request.body.decode())
            self.assertEqual(form, {'Action': ['AssumeRoleWithWebIdentity'], 'Version': ['2011-06-15'],
                                    'RoleArn': ['arn:aws:iam::1:role/r'], 'RoleSessionName': ['picomq-s3-sink'],
                                    'WebIdentityToken': ['a.web+token']})
            return 200, f'''<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
                <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>WEB</AccessKeyId><SecretAccessKey>s
                </SecretAccessKey><SessionToken>tt</SessionToken><Expiration>{when(AFTER)}</Expiration></Credentials>
                </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>'''.encode()
        self.source.answer = sts
        del self.environment['http_proxy']
        self.environment |= {'AWS_WEB_IDENTITY_TOKEN_FILE': str(token), 'AWS_ROLE_ARN': 'arn:aws:iam::1:role/r',
                             'AWS_ENDPOINT_URL_STS': self.source.endpoint}
        self.profile('[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n')
        self.open()
        self.assertEqual(self.opened, 0)
        self.signed_by('WEB', 'tt')

    def test_a_source_that_is_set_up_and_fails_is_an_error(self):
        self.environment |= {'AWS_WEB_IDENTITY_TOKEN_FILE': str(self.folder / 'none'), 'AWS_ROLE_ARN': 'arn'}
        self.profile('[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n')
        host = self.open()
        self.assertEqual(self.opened, 1)
        self.assertIn('credentials from web identity', host.messages(ERROR)[-1])
        self.assertEqual(self.s3.requests, [])

    def test_shared_profile(self):
        self.profile('# both\n[other]\naws_access_key_id = OTHER\naws_secret_access_key = s\naws_session_token = t\n'
                     '[default]\naws_access_key_id=FILE\r\naws_secret_access_key=s\n')
        self.open()
        self.assertEqual(self.opened, 0)
        self.signed_by('FILE', None)
        self.s3.requests.clear()
        self.environment['AWS_PROFILE'] = 'other'
        self.open()
        self.signed_by('OTHER', 't')

    def test_a_named_profile_must_be_there(self):
        self.environment |= {'AWS_PROFILE': 'missing',
                             'AWS_SHARED_CREDENTIALS_FILE': str(self.profile('[default]\n', 'elsewhere'))}
        host = self.open()
        self.assertEqual(self.opened, 1)
        self.assertIn('no profile missing', host.messages(ERROR)[-1])

    def test_container(self):
        def agent(request: Request):
            return (200, answer_json('CONTAINER')) if request.headers.get('authorization') == 'bearer' else 403
        self.source.answer = agent
        self.environment |= {'AWS_CONTAINER_CREDENTIALS_FULL_URI': self.source.endpoint + '/role',
                             'AWS_CONTAINER_AUTHORIZATION_TOKEN': 'bearer'}
        self.open()
        self.assertEqual(self.opened, 0)
        self.signed_by('CONTAINER', 'token of CONTAINER')
        self.assertEqual([request.key for request in self.source.requests], ['role'])

    def test_a_token_goes_to_no_stranger(self):
        self.environment |= {'AWS_CONTAINER_CREDENTIALS_FULL_URI': 'http://example.org/role',
                             'AWS_CONTAINER_AUTHORIZATION_TOKEN': 'bearer'}
        host = self.open()
        self.assertEqual(self.opened, 1)
        self.assertIn('neither https nor an address of this host', host.messages(ERROR)[-1])

    def test_instance_metadata_through_no_proxy(self):
        self.open()
        self.assertEqual(self.opened, 0)
        self.signed_by('METADATA', 'token of METADATA')

    def test_no_source_at_all(self):
        self.environment['AWS_EC2_METADATA_DISABLED'] = 'true'
        host = self.open()
        self.assertEqual(self.opened, 1)
        self.assertIn('no credentials: set access_key_id', host.messages(ERROR)[-1])


class Renewal(Case):
    def searches(self) -> int:
        return len([r for r in self.source.requests if r.key.endswith('/the-role')])

    def test_they_are_kept_while_they_last(self):
        host = self.open(file_rotation='messages', max_messages_per_file=1)
        self.assertEqual(host.consume(1, 't', records(0, 4)), 0)
        self.assertEqual(self.searches(), 1)

    def test_they_are_renewed_before_they_end(self):
        self.expires = datetime.timedelta(minutes=2)
        host = self.open(file_rotation='messages', max_messages_per_file=1)
        self.assertEqual(host.consume(1, 't', records(0, 0)), 0)
        self.source.wait_for(lambda: self.searches() >= 2, 'another search')

    def test_what_has_ended_is_not_used(self):
        self.expires = datetime.timedelta(seconds=-5)
        host = self.open(file_rotation='messages', max_messages_per_file=1)
        self.assertEqual(self.opened, 0)
        before = self.searches()
        self.assertEqual(host.consume(1, 't', records(0, 0)), 0)
        self.assertGreater(self.searches(), before)

    def test_what_is_refused_is_asked_for_again(self):
        host = self.open(file_rotation='messages', max_messages_per_file=1)
        self.s3.answer = lambda request: 403
        self.assertEqual(host.consume(1, 't', records(0, 0)), 1)
        self.s3.answer = lambda request: None
        self.assertEqual(host.consume(1, 't', records(0, 0)), 0)
        self.assertGreaterEqual(self.searches(), 2)
        self.assertIn(name('t', 0, 0), self.s3.objects)

    def test_a_search_that_fails_is_tried_with_the_next_attempt(self):
        failures = [2]
        good = self.source.answer

        def sometimes(request: Request):
            if failures[0] > 0 and request.key == 'latest/api/token':
                failures[0] -= 1
                return 500
            return good(request)
        host = self.open(file_rotation='messages', max_messages_per_file=1)
        self.s3.answer = lambda request: 403
        self.assertEqual(host.consume(1, 't', records(0, 0)), 1)
        self.s3.answer = lambda request: None
        self.source.answer = sometimes
        self.assertEqual(host.consume(1, 't', records(0, 0)), 0)


if __name__ == '__main__':
    unittest.main()
