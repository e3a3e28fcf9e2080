"""Holds the development broker against what the sink's specification says of Queen's HTTP API (spec 01), a sentence at
a time. What this proves is that tests which lean on the development broker lean on the real broker's behaviour."""
import http.client
import json
import pathlib
import re
import tempfile
import time
import unittest

from devbroker import DevBroker

FETCH = '/api/v1/fetch'
CHANGED = '/api/v1/partitions/changed'
PUSH = '/api/v1/push'
KV = '/api/v1/kv'


class BrokerCase(unittest.TestCase):
    arguments: tuple = ()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.broker = DevBroker(pathlib.Path(self.folder.name), *self.arguments)
        self.addCleanup(self.broker.stop)

    def push(self, partition, *payloads, queue='orders'):
        """Raw payload texts, one push, one segment."""
        items = ','.join('{"queue":%s,"partition":%s,"payload":%s}' % (json.dumps(queue), json.dumps(partition), p)
                         for p in payloads)
        answer = self.broker.request('POST', PUSH, raw=('{"items":[%s]}' % items).encode())
        self.assertEqual(answer.status, 201, answer.text[:300])
        return json.loads(answer.body)

    def fetch(self, *entries):
        full = [{'queue': 'orders', **entry} for entry in entries]
        return self.broker.call('POST', FETCH, {'entries': full, 'maxWaitMs': 0, 'minBytes': 1})['entries']

    def one(self, partition, offset=0, **more):
        return self.fetch({'partition': partition, 'offset': offset, **more})[0]

    def changed(self, **entry):
        return self.broker.call('POST', CHANGED, {'entries': [{'queue': 'orders', 'since': None, **entry}]})

    def names(self, **entry):
        return [p['name'] for p in self.changed(**entry)['entries'][0]['partitions']]

    def status(self, path, document=None, raw=None):
        return self.broker.request('POST', path, document, raw).status

    def kv(self, *operations):
        return self.broker.kv(*operations)


class Fetch(BrokerCase):
    def test_record_shape_and_bounds(self):
        self.push('cust', '{"type":"paid"}')
        text = self.broker.request('POST', FETCH, {'entries': [
            {'queue': 'orders', 'partition': 'cust', 'offset': 0}]}).text
        self.assertRegex(text, r'^\{"entries":\[\{"queue":"orders","partition":"cust","records":\[\{"offset":0,'
                               r'"transactionId":"[^"]+","payload":\{"type":"paid"\},'
                               r'"ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"\}\],'
                               r'"highWatermark":1,"logStartOffset":0\}\]\}$')

    def test_payload_is_spliced(self):
        payloads = ['1e400', '12345678901234567890', '-0', '{"a":1,"a":2}', r'"\/\u0041"', r'"\ud800"', r'"\u0000"',
                    '{\r\n\t"a" : [ 1 ,\n2 ] }', 'null', '[' * 100000 + ']' * 100000]
        self.push('p', *payloads)
        text = self.broker.request('POST', FETCH, {'entries': [
            {'queue': 'orders', 'partition': 'p', 'offset': 0}]}).text
        for payload in payloads:
            self.assertIn('"payload":' + payload + ',"ts":"', text)

    def test_names(self):
        for name in ('', ' ', 'quo"te', 'a/b', '100%', '\x7f', '\u2028', 'n' * 3000):
            self.push(name, '1')
            self.assertEqual(self.one(name)['partition'], name)
            self.assertEqual(len(self.one(name)['records']), 1)
        self.assertEqual(self.status(PUSH, {'items': [{'queue': 'q', 'partition': 'a\nb', 'payload': 1}]}), 400)
        long = 't' * 65535
        self.broker.push([{'queue': 'orders', 'partition': 'long', 'transactionId': long, 'payload': 1}])
        self.assertEqual(self.one('long')['records'][0]['transactionId'], long)

    def test_missing_partition_is_default(self):
        self.broker.push([{'queue': 'orders', 'payload': 1}])
        self.assertEqual(self.fetch({'offset': 0})[0]['partition'], 'Default')
        self.assertEqual(self.one('')['records'], [])

    def test_refusals(self):
        entry = {'queue': 'orders', 'partition': 'p', 'offset': 0}
        self.assertEqual(self.status(FETCH, {'entries': [entry] * 1024}), 200)
        self.assertEqual(self.status(FETCH, {'entries': [entry] * 1025}), 400)
        self.assertEqual(self.status(FETCH, {'entries': [{**entry, 'offset': -1}]}), 400)
        self.assertEqual(self.status(FETCH, raw=b'{"entries":['), 400)

    def test_segments_whole_beyond_max_bytes_and_starts_inside(self):
        self.push('p', *['"x"'] * 1700)
        self.push('p', '"y"')
        self.assertEqual(len(self.one('p', 0, maxBytes=1)['records']), 1700)
        self.assertEqual([r['offset'] for r in self.one('p', 1698, maxBytes=1)['records']], [1698, 1699])
        self.assertEqual(len(self.one('p', 0)['records']), 1701)

    def test_ten_thousand_records_an_entry(self):
        self.push('p', *['1'] * 12000)
        self.assertEqual(len(self.one('p')['records']), 10000)
        self.assertEqual(len(self.one('p', 10000)['records']), 2000)

    def test_call_ceiling_leaves_later_entries_empty(self):
        big = '"' + 'x' * 30_000_000 + '"'
        for name in 'abc':
            self.push(name, big)
        entries = self.fetch(*[{'partition': name, 'offset': 0, 'maxBytes': 8 << 20} for name in 'abc'])
        self.assertEqual([len(e['records']) for e in entries], [1, 1, 0])
        self.assertEqual((entries[2]['highWatermark'], entries[2].get('error')), (1, None))

    def test_errors_of_entries(self):
        self.push('p', '1', '2')
        self.assertEqual(self.one('p', 3)['error'], 'OFFSET_OUT_OF_RANGE')
        self.assertNotIn('error', self.one('p', 2))
        self.assertNotIn('error', self.one('never', 0))
        never = self.one('never', 1)
        self.assertEqual((never['error'], never['highWatermark'], never['logStartOffset']),
                         ('OFFSET_OUT_OF_RANGE', 0, 0))
        self.assertEqual(self.fetch({'queue': 'none', 'partition': 'p', 'offset': 0})[0]['error'],
                         'UNKNOWN_TOPIC_OR_PARTITION')

    def test_holes_and_retention(self):
        for i in range(6):
            self.push('p', str(i))
        where = {'queue': 'orders', 'partition': 'p'}
        self.broker.call('POST', '/_dev/hole', {**where, 'from': 2, 'to': 3})
        self.assertEqual([r['offset'] for r in self.one('p', 2)['records']], [4, 5])
        self.broker.call('POST', '/_dev/hole', {**where, 'from': 4, 'to': 5})
        tail = self.one('p', 2)
        self.assertEqual((tail['records'], tail['highWatermark'], tail.get('error')), ([], 6, None))
        self.broker.call('POST', '/_dev/unhole', where)
        self.broker.call('POST', '/_dev/trim', {**where, 'logStart': 6})
        self.assertEqual(self.one('p', 5)['error'], 'OFFSET_OUT_OF_RANGE')
        page = self.changed()['entries'][0]['partitions'][0]
        self.assertEqual((page['logStart'], page['lastOffset']), (6, 5))
        self.assertEqual(len(self.broker.log('orders')), 0)
        self.assertEqual(len(self.broker.log('orders', deleted=True)), 6)

    def test_parked_call_wakes(self):
        started = time.monotonic()
        self.broker.call('POST', FETCH, {'entries': [{'queue': 'orders', 'partition': 'p', 'offset': 0}],
                                         'maxWaitMs': 300})
        self.assertGreaterEqual(time.monotonic() - started, 0.25)


class Push(BrokerCase):
    def test_segment_shares_a_ts_and_ts_never_decrease(self):
        for _ in range(3):
            self.push('p', '1', '2')
        stamps = [r['ts'] for r in self.one('p')['records']]
        self.assertEqual(stamps[0], stamps[1])
        self.assertEqual(stamps, sorted(stamps))
        self.assertEqual(len(set(stamps)), 3)

    def test_answer_and_deduplication(self):
        item = {'queue': 'orders', 'partition': 'p', 'transactionId': 't', 'payload': 1}
        first, second = self.broker.push([item, item])
        self.assertEqual((first['status'], second['status']), ('queued', 'duplicate'))
        self.assertEqual(set(first), {'index', 'message_id', 'transaction_id', 'queueName', 'status'})
        self.assertEqual(self.one('p')['highWatermark'], 1)

    def test_refusals(self):
        self.assertEqual(self.status(PUSH, {'items': [{'queue': 'q'}]}), 400)
        self.assertEqual(self.status(PUSH, raw=b'{"items":[{"queue":"q","payload":01}]}'), 400)
        self.assertEqual(self.status(PUSH, raw=b'"' + b'x' * (64 << 20) + b'"'), 413)

    def test_large_push(self):
        self.push('p', '"' + 'x' * 60_000_000 + '"')
        self.assertEqual(len(self.one('p')['records'][0]['payload']), 60_000_000)

    def test_database_down(self):
        self.broker.call('POST', '/_dev/database', {'down': True})
        self.assertEqual(self.push('p', '1')[0]['status'], 'buffered')
        for method, path, body in (('POST', FETCH, {'entries': []}), ('POST', CHANGED, {'entries': []}),
                                   ('GET', '/api/v1/resources/queues?stats=cached', None)):
            answer = self.broker.request(method, path, body)
            self.assertEqual((answer.status, json.loads(answer.body)), (500, {'error': 'pool'}))
        self.assertEqual(self.status(KV, {'operations': []}), 503)
        self.broker.call('POST', '/_dev/database', {'down': False})
        self.assertEqual(len(self.one('p')['records']), 1)


class Changed(BrokerCase):
    def test_spelling_and_clock(self):
        self.push('p', '1')
        text = self.broker.request('POST', CHANGED, {'entries': [{'queue': 'orders', 'since': None}]}).text
        self.assertIn('"queue": "orders", "partitions": [{"name": "p", "logStart": 0, "lastOffset": 0, ', text)
        empty = self.broker.call('POST', CHANGED, {'entries': []})
        self.assertEqual((empty['entries'], empty['safeTimeDegraded']), ([], False))
        self.assertEqual(self.changed(queue='none')['entries'][0]['error'], 'UNKNOWN_TOPIC_OR_PARTITION')

    def test_pages(self):
        for name in ('b', 'A', 'a', '-B', 'c', '#d'):
            self.push(name, '1')
        for since in (None, '2020-01-01T00:00:00.000000Z'):
            seen, after, sizes = [], None, []
            while True:
                page = self.changed(since=since, after=after, limit=2)['entries'][0]
                seen += [p['name'] for p in page['partitions']]
                sizes.append(len(page['partitions']))
                after = page['next']
                if after is None:
                    break
            self.assertEqual(sorted(seen), sorted(['b', 'A', 'a', '-B', 'c', '#d']))
            self.assertEqual(sizes, [2, 2, 2, 0])
        self.assertNotEqual(self.names(), sorted(self.names(), key=str.encode))

    def test_bad_cursors_and_timestamps(self):
        self.push('p', '1')
        since = '2020-01-01T00:00:00Z'
        self.assertEqual(self.changed(after='t|1|p')['entries'][0]['error'], 'BAD_CURSOR')
        self.assertEqual(self.changed(since=since, after='n|p')['entries'][0]['error'], 'BAD_CURSOR')
        for bad in ({'since': 'yesterday'}, {'since': since, 'after': 't|soon|p'}):
            entries = [{'queue': 'orders', 'since': None}, {'queue': 'orders', **bad}]
            self.assertEqual(self.status(CHANGED, {'entries': entries}), 400)
        self.assertEqual(self.status(CHANGED, {'entries': [{'queue': 'a\0', 'since': None}]}), 500)
        self.assertEqual(self.status(CHANGED, {'entries': [{'queue': 'orders'}] * 65}), 400)

    def test_last_write_is_coarse(self):
        self.push('p', '1')
        first = self.changed()['entries'][0]['partitions'][0]['lastWriteAt']
        self.push('p', '1')
        self.assertEqual(self.changed()['entries'][0]['partitions'][0]['lastWriteAt'], first)
        self.broker.call('POST', '/_dev/clock', {'addUs': 1_100_000})
        self.push('p', '1')
        self.assertGreater(self.changed()['entries'][0]['partitions'][0]['lastWriteAt'], first)
        self.assertEqual(self.names(since='2100-01-01T00:00:00Z'), [])

    def test_safe_time(self):
        clock = self.broker.call('GET', '/_dev/clock')
        self.assertLess(clock['safeTime'], clock['now'])
        self.broker.call('POST', '/_dev/safe-time', {'mode': 'pinned'})
        pinned = self.broker.now()
        time.sleep(0.01)
        self.assertEqual(self.broker.now(), pinned)
        self.broker.call('POST', '/_dev/safe-time', {'mode': 'degraded'})
        self.assertTrue(self.changed()['safeTimeDegraded'])
        self.broker.call('POST', '/_dev/safe-time', {'mode': 'normal'})
        self.assertGreater(self.broker.now(), pinned)


class Keys(BrokerCase):
    def result(self, *operations):
        return self.kv(*operations)['results']

    def put(self, key, value, **more):
        return {'op': 'put', 'key': key, 'value': value, 'forever': True, **more}

    def test_put_get_delete(self):
        put, = self.result(self.put('k', {'zz': 1, 'a': 2}))
        self.assertTrue(put['applied'])
        got, = self.result({'op': 'get', 'key': 'k'})
        self.assertEqual((got['found'], got['value'], got['version']), (True, {'a': 2, 'zz': 1}, put['version']))
        many, = self.result({'op': 'getMany', 'keys': ['k', 'none']})
        self.assertEqual(([r['key'] for r in many['rows']], many['missing'], many['truncated']),
                         (['k'], ['none'], False))
        self.assertTrue(self.result({'op': 'delete', 'key': 'k', 'expect': put['version']})[0]['applied'])
        self.assertFalse(self.result({'op': 'get', 'key': 'k'})[0]['found'])

    def test_jsonb_spelling(self):
        raw = (b'{"operations":[{"op":"put","ns":"n","key":"k","forever":true,'
               b'"value":{"long":1.50e2,"b":-0,"a":[1,1]}}]}')
        self.assertIn('"value":{"a": [1, 1], "b": 0, "long": 150}', self.broker.request('POST', KV, raw=raw).text)

    def test_losers_see_the_winner(self):
        version = self.result(self.put('k', 1))[0]['version']
        for operation, reason in ((self.put('k', 2, expect=0), 'exists'), (self.put('k', 2, expect=1), 'version'),
                                  ({'op': 'putIfAbsent', 'key': 'k', 'value': 2, 'ttlSeconds': 9}, 'exists'),
                                  ({'op': 'delete', 'key': 'k', 'expect': 1}, 'version')):
            lost, = self.result(operation)
            self.assertEqual((lost['applied'], lost['reason'], lost['version'], lost['value']),
                             (False, reason, version, 1))
        self.assertEqual(self.result(self.put('new', 1, expect=7))[0]['reason'], 'absent')

    def test_required_rolls_back_in_key_order(self):
        self.kv(self.put('q:committed', 1), self.put('q:lease', 1))
        answer = self.kv(self.put('q:lease', 2, expect=1, required=True), self.put('q:intent', 5),
                         self.put('q:committed', 2, expect=1, required=True))
        self.assertEqual((answer['ok'], answer['reason'], answer['failedIndex'], answer['kvReason'], answer['value']),
                         (False, 'kv_precondition', 2, 'version', 1))
        self.assertFalse(self.result({'op': 'get', 'key': 'q:intent'})[0]['found'])
        self.kv(self.put('large', 'x' * 60000))
        self.assertEqual(self.kv(self.put('large', 1, expect=1, required=True)),
                         {'ok': False, 'reason': 'kv_precondition'})

    def test_expiry(self):
        self.kv({'op': 'put', 'key': 'lease', 'value': 1, 'ttlSeconds': 5})
        self.broker.call('POST', '/_dev/clock', {'addUs': 6_000_000})
        self.assertFalse(self.result({'op': 'get', 'key': 'lease'})[0]['found'])
        self.assertEqual(self.result(self.put('lease', 1, expect=4))[0]['reason'], 'absent')
        answer = self.broker.request('POST', KV, {'operations': [
            {'ns': 'n', 'op': 'putIfAbsent', 'key': 'lease', 'value': 1, 'ttlSeconds': 5}]}).text
        self.assertRegex(answer, r'"expiresAt":"[0-9T:.-]+\+00:00"')

    def test_refusals(self):
        def status(*operations):
            return self.status(KV, {'operations': [{'ns': 'n', **o} for o in operations]})
        none = {'op': 'put', 'key': 'k', 'value': 1}
        self.assertEqual(status(none), 400)
        self.assertEqual(status({**none, 'forever': True, 'ttlSeconds': 1}), 400)
        self.assertEqual(status({**none, 'ttlSeconds': 0}), 400)
        for key in ('ttlSeconds', 'expect', 'required'):
            self.assertEqual(status({**none, 'forever': True, key: None}), 400)
        self.assertEqual(status(self.put('k', 1), self.put('k', 2)), 400)
        self.assertEqual(status(self.put('k' * 512, 1)), 200)
        self.assertEqual(status(self.put('k' * 513, 1)), 413)
        self.assertEqual(status(self.put('k', 'x' * 65534)), 200)
        self.assertEqual(status(self.put('k', 'x' * 65535)), 413)
        self.assertEqual(status(*[self.put(str(i), 1) for i in range(257)]), 400)
        self.assertEqual(status({'op': 'getMany', 'keys': [str(i) for i in range(1025)]}), 400)

    def test_prefix(self):
        self.kv(*[self.put(f'p:{i}', i) for i in range(5)])
        page, = self.result({'op': 'getPrefix', 'prefix': 'p:', 'limit': 3})
        self.assertEqual((len(page['rows']), page['truncated'], page['nextAfter']), (3, True, 'p:2'))
        page, = self.result({'op': 'getPrefix', 'prefix': 'p:', 'limit': 3, 'after': 'p:2'})
        self.assertEqual(([r['key'] for r in page['rows']], page['truncated']), (['p:3', 'p:4'], False))


class RateLimits(BrokerCase):
    arguments = ('--rate-limits', 5)

    def test_writes_are_limited(self):
        body = {'operations': [{'ns': 'n', 'op': 'delete', 'key': 'k'}]}
        connection = http.client.HTTPConnection('127.0.0.1', self.broker.port, timeout=10)
        self.addCleanup(connection.close)
        for _ in range(100):
            connection.request('POST', KV, json.dumps(body))
            answer = connection.getresponse()
            answer.read()
            if answer.status == 429:
                break
        self.assertEqual((answer.status, answer.getheader('Retry-After')), (429, '1'))


class Token(BrokerCase):
    arguments = ('--token', 'secret')

    def test_token(self):
        for given, wanted in ((None, 401), ('Bearer wrong', 401), ('Bearer secret', 200)):
            connection = http.client.HTTPConnection('127.0.0.1', self.broker.port, timeout=10)
            connection.request('POST', CHANGED, '{"entries":[]}', {'Authorization': given} if given else {})
            self.assertEqual(connection.getresponse().status, wanted)
            connection.close()


class Queues(BrokerCase):
    def queue_names(self):
        return [q['name'] for q in self.broker.call('GET', '/api/v1/resources/queues?stats=cached')['queues']]

    def test_list_delete_create_again(self):
        self.push('p', '1', '2')
        self.assertEqual(self.queue_names(), ['orders'])
        self.broker.call('DELETE', '/api/v1/resources/queues/orders')
        self.assertEqual(self.queue_names(), [])
        self.push('p', '3')
        self.assertEqual([r['offset'] for r in self.one('p')['records']], [0])
        self.assertEqual(len(self.broker.log('orders', deleted=True)), 3)

    def test_retention_and_its_hold(self):
        options = {'retentionSeconds': 10, 'retentionEnabled': True, 'retentionSinkHold': 'default',
                   'retentionSinkHoldMaxSeconds': 1000}
        self.push('p', '1', '2')
        self.broker.call('POST', '/api/v1/configure', {'queue': 'orders', 'options': options})
        self.broker.call('POST', '/_dev/clock', {'addUs': 60_000_000})
        self.broker.call('POST', '/_dev/retain', {})
        self.assertEqual(self.one('p')['logStartOffset'], 0)
        self.broker.call('PUT', '/_dev/kv', {'s3:default:orders:committed': {'tEnd': '2100-01-01T00:00:00.000000Z'}})
        self.broker.call('POST', '/_dev/retain', {})
        self.assertEqual(self.one('p', 2)['logStartOffset'], 2)
        self.push('p', '3')
        self.broker.call('POST', '/api/v1/configure', {'queue': 'orders', 'options': {}})
        self.broker.call('POST', '/_dev/clock', {'addUs': 3600_000_000})
        self.broker.call('POST', '/_dev/retain', {})
        self.assertEqual(self.one('p', 2)['logStartOffset'], 2)


class Version2(BrokerCase):
    arguments = ('--broker', '2')

    def test_differences(self):
        for name in 'ba':
            self.push(name, '1')
        self.assertEqual(self.names(), ['b', 'a'])
        self.assertEqual(self.names(since='2020-01-01T00:00:00Z'), ['b', 'a'])
        page = self.changed()
        record = self.one('a')['records'][0]
        self.assertEqual(page['entries'][0]['partitions'][1]['lastWriteAt'], record['ts'])
        self.assertEqual(page['safeTime'], record['ts'])
        self.assertEqual(self.broker.now(), page['safeTime'])
        self.kv({'op': 'put', 'key': 'k', 'value': 1, 'forever': True})
        self.assertGreater(self.broker.now(), page['safeTime'])
        self.assertEqual(self.status(CHANGED, {'entries': [{'queue': 'orders', 'since': None}] * 1024}), 200)

    def test_id_changes_with_a_new_life(self):
        self.push('p', '1')
        before = self.changed()['entries'][0]['partitions'][0]['id']
        self.assertRegex(before, r'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
        self.broker.call('POST', '/_dev/recreate', {'queue': 'orders', 'partition': 'p'})
        after = self.changed()['entries'][0]['partitions'][0]
        self.assertNotEqual(after['id'], before)
        self.assertEqual(after['lastOffset'], -1)


class Faults(BrokerCase):
    def failing(self, path, document):
        """Status and body; status 0 is a connection that broke or a client that gave up."""
        answer = self.broker.request('POST', path, document, timeout=2)
        return answer.status, answer.body

    def test_status_skip_count(self):
        self.broker.fault(route='changed', status=503, retryAfter=2, skip=1, count=1)
        self.assertEqual([self.status(CHANGED, {'entries': []}) for _ in range(3)], [200, 503, 200])

    def test_reset_after_has_the_effect_and_before_has_not(self):
        put = {'operations': [{'ns': 'queen-s3', 'op': 'put', 'key': 's3:d:q:committed', 'value': 1, 'forever': True}]}
        for kind, found in (('reset-before', False), ('reset-after', True)):
            self.broker.fault(route='kv', kind=kind, keyContains=':committed')
            self.assertEqual(self.failing(KV, put)[0], 0)
            self.assertEqual(self.kv({'op': 'get', 'key': 's3:d:q:committed'})['results'][0]['found'], found)

    def test_spoiled_bodies(self):
        self.push('p', '1', '2')
        self.push('o', '3')
        body = {'entries': [{'queue': 'orders', 'partition': n, 'offset': 0} for n in 'po']}
        self.broker.fault(route='fetch', kind='cut')
        self.assertEqual(self.failing(FETCH, body)[0], 0)
        self.broker.fault(route='fetch', kind='garbled')
        with self.assertRaises(ValueError):
            json.loads(self.failing(FETCH, body)[1])
        self.broker.fault(route='fetch', kind='wrong-entry')
        self.assertEqual([e['partition'] for e in self.fetch(*body['entries'])], ['o', 'p'])
        self.broker.fault(route='fetch', kind='empty', partition='p')
        self.assertEqual([len(e['records']) for e in self.fetch(*body['entries'])], [0, 1])
        self.broker.fault(route='fetch', kind='entry-error', partition='o', error='NO')
        self.assertEqual([e.get('error') for e in self.fetch(*body['entries'])], [None, 'NO'])
        self.broker.fault(route='fetch', kind='lag', lagUs=3600_000_000)
        self.assertEqual([e['highWatermark'] for e in self.fetch(*body['entries'])], [0, 0])
        self.assertEqual([len(e['records']) for e in self.fetch(*body['entries'])], [2, 1])

    def test_hang_and_stop_at_once(self):
        self.broker.fault(route='fetch', kind='hang', count=-1)
        self.assertEqual(self.failing(FETCH, {'entries': []})[0], 0)
        self.broker.clear_faults()
        self.assertEqual(self.status(FETCH, {'entries': []}), 200)


class Loads(BrokerCase):
    def setUp(self):
        super().setUp()
        self.broker.stop()

    def reload(self, text, *arguments):
        path = pathlib.Path(self.folder.name) / 'records'
        path.write_text(text, encoding='utf-8')
        self.broker.start(*[path if a == 'FILE' else a for a in map(str, arguments)])

    def test_records_with_a_past(self):
        lines = ''.join('{"page":"%s", "n":%d}\n' % ('ab'[i % 2], i) for i in range(10))
        self.reload(lines, '--load', 'FILE', '--partition-by', 'page', '--segment-records', '2', '--load-repeat', '2',
                    '--base-time', '2026-09-04T10:00:00Z', '--time-step-us', '1000000')
        records = self.one('a')['records']
        self.assertEqual([r['payload']['n'] for r in records], [0, 2, 4, 6, 8] * 2)
        self.assertEqual(records[0]['ts'], '2026-09-04T10:00:00.000000Z')
        self.assertEqual(len({r['transactionId'] for r in records}), 10)

    def test_log_comes_back_as_it_went_in(self):
        line = ('{"partition":"%s","offset":%d,"transactionId":"t\\"%d","ts":"2026-09-04T10:0%d:00.000001Z",'
                '"payload":%s}\n')
        log = [line % ('a', 3, 3, 1, '{"x" : 1}'), line % ('a', 4, 4, 1, 'null'), line % ('a', 9, 9, 2, '1e400'),
               line % ('é', 0, 0, 0, '""')]
        self.reload(''.join(reversed(log)), '--load-log', 'FILE')
        self.assertEqual(self.broker.request('GET', '/_dev/log?queue=orders').text, ''.join(log))
        self.assertEqual([r['offset'] for r in self.one('a', 3)['records']], [3, 4, 9])

    def test_live_load(self):
        self.reload('', '--rate', '1000', '--rate-records', '50', '--rate-partitions', '5')
        deadline = time.monotonic() + 5
        while len(self.broker.log('orders')) < 50 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(len(self.names()), 5)
        self.assertEqual(len(self.broker.log('orders')), 50)


class Stats(BrokerCase):
    def test_counts(self):
        self.broker.call('POST', CHANGED, {'entries': []})
        self.kv({'op': 'get', 'key': 'a'}, {'op': 'get', 'key': 'b'})
        routes = self.broker.call('GET', '/_dev/stats')['routes']
        self.assertEqual((routes['changed']['calls'], routes['kv']['calls'], routes['kv']['entries']), (1, 1, 2))
        self.assertIn('POST   /_dev/hole', re.sub(r'\s+$', '', self.broker.request('GET', '/_dev/').text))


if __name__ == '__main__':
    unittest.main()
