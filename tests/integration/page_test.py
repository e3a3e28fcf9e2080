"""The status page in a real browser: what it shows, at the width of a desk and of a hand, by day and by night, and that
names of strangers stay names."""
import os
import pathlib
import signal
import unittest

import browser
import kafka
import mirror
from http_client import request

ODD = ['<script>document.title="owned"</script>', '<img src=x onerror=alert(1)> & "quoted"', 'long-' * 24 + 'name']
WIDTHS = [(1280, 900), (820, 1180), (390, 844), (320, 568)]

# All text that can be seen with the colours that it has; and what sticks out of the window.
SEEN = '''
    const seen = [];
    for (const e of document.body.querySelectorAll('*')) {
        const own = [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim());
        if (!own || !e.getClientRects().length) continue;
        let ground = e;
        while (ground && getComputedStyle(ground).backgroundColor == 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
        const colour = getComputedStyle(ground || document.body).backgroundColor;
        seen.push([e.textContent, getComputedStyle(e).color, colour]);
    }
    return seen;'''
# Short words that are broken over two lines.
BROKEN = '''
    const broken = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode.textContent.trim();
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        if (text && text.length < 12 && range.getClientRects().length > 1) broken.push(text);
    }
    return broken;'''
STICKING_OUT = '''
    const wide = document.documentElement.clientWidth;
    const out = [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > wide + 0.5);
    return {page: document.documentElement.scrollWidth - wide, elements: out.map(e => e.outerHTML.slice(0, 80))};'''


def luminance(colour: str) -> float:
    """Of an rgb(…), as WCAG 2 has it."""
    parts = [int(part) / 255 for part in colour[colour.index('(') + 1:-1].split(',')[:3]]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


class PageTest(mirror.MirrorTest):
    def connectors(self) -> pathlib.Path:
        """One that runs, and two that are down: one names itself oddly, one not at all."""
        self.kafka = kafka.Mock()
        self.addCleanup(self.kafka.stop)
        self.kafka.create('clicks', 2)
        folder = self.folder / 'connectors'
        kafka.define(folder / 'clicks.toml', 'clicks', 'clicks', self.folder)
        kafka.define(folder / 'odd.toml', '<b>odd</b>', 'clicks', self.folder)
        (folder / 'nameless.toml').write_text('no toml')
        return folder

    def pool(self):
        broker = self.broker()
        for queue in ('orders', 'waits', *ODD):
            broker.push(mirror.records(20, queue=queue))
        broker.fault(route='fetch', kind='entry-error', queue='waits', count=-1)
        sink = self.sink(broker, QUEEN_S3_QUEUES=','.join(['orders', 'waits', *ODD]), QUEEN_S3_WORKERS='2',
                         QUEEN_S3_INSTANCE='<i>here</i>', QUEEN_S3_CONNECTORS=str(self.connectors()),
                         PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS=self.kafka.servers)
        sink.wait_records(20 * (1 + len(ODD)))
        sink.wait_metric('picomq_connectors_sinks_running', 1)
        sink.program.wait_for(lambda: 'offset 0 ' in sink.get('/').text, 'a page that says why a queue waits')
        return sink

    def test_over_http(self):
        sink = self.pool()
        answer = sink.get('/')
        self.assertEqual((answer.status, answer.headers['content-type']), (200, 'text/html; charset=utf-8'))
        self.assertRegex(answer.headers['content-security-policy'],
                         r"^default-src 'none'; style-src 'sha256-[^']{44}';")
        self.assertEqual(answer.headers['x-content-type-options'], 'nosniff')
        self.assertNotIn(b'<script', answer.body)
        head = request('HEAD', sink.url + '/')
        self.assertEqual((head.status, head.body), (200, b''))
        self.assertGreater(int(head.headers['content-length']), 1000)
        self.assertEqual([sink.get(path).status for path in ('/index.html', '//', '/favicon.ico')], [404] * 3)
        self.assertEqual(request('POST', sink.url + '/', b'x').status, 405)

    @unittest.skipIf(browser.MISSING, f'{browser.MISSING} not installed')
    def test_in_a_browser(self):
        sink = self.pool()
        chromium = self.enterContext(browser.Browser(self.folder, *WIDTHS[0]))
        chromium.open(sink.url + '/')
        text = chromium.run('return document.body.innerText')
        for queue in ('orders', 'waits', *ODD, '<i>here</i>'):
            self.assertIn(queue, text)
        self.assertIn('2 of 3 connectors down', text)
        self.assertIn('<b>odd</b>', text)
        self.assertRegex(text, r'partition p-\d: offset 0 ')
        self.assertEqual(chromium.run('return document.title'), 'default · queen-s3')
        self.assertEqual(chromium.run('return document.scripts.length + document.images.length'), 0)
        # The policy lets the page's style in: its hash is right.
        self.assertEqual(chromium.run('return getComputedStyle(document.querySelector("header")).display'), 'flex')
        for scheme in ('light', 'dark'):
            chromium.scheme(scheme)
            for width, height in WIDTHS:
                with self.subTest(scheme=scheme, width=width):
                    chromium.size(width, height)
                    self.assertEqual(chromium.run(STICKING_OUT), {'page': 0, 'elements': []})
                    self.assertEqual(chromium.run(BROKEN), [])
                    seen = chromium.run(SEEN)
                    self.assertTrue([s for s in seen if s[0] == 'orders'])
                    self.assertEqual([s for s in seen if contrast(s[1], s[2]) < 4.5], [])
                    self.assertGreater(len(chromium.screenshot()), 5000)
        ground = chromium.run('return getComputedStyle(document.body).backgroundColor')
        self.assertGreater(contrast(ground, 'rgb(255,255,255)'), 10, 'dark is dark')
        # It asks for itself again, and then tells of what has happened.
        os.kill(sink.workers()[0], signal.SIGKILL)
        sink.program.wait_for(lambda: 'signal 9' in chromium.run('return document.body.innerText'), 'a newer page')


if __name__ == '__main__':
    unittest.main()
