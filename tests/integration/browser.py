"""Chromium without a screen, driven over WebDriver: plain JSON over HTTP to Debian's chromedriver.

    with Browser(folder, width=390, height=844) as browser:
        browser.open(url)
        browser.run('return document.title')
"""
import base64
import json
import pathlib
import shutil

from http_client import request
from processes import Program, free_port

MISSING = [name for name in ('chromium', 'chromedriver') if not shutil.which(name)]
ARGUMENTS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--hide-scrollbars',
             '--disable-background-networking', '--disable-component-update', '--disable-sync',
             '--disable-dev-shm-usage']


class Browser:
    """A profile of its own in `folder`, and a window of that size whatever the least of a desktop's is."""

    def __init__(self, folder: pathlib.Path, width: int, height: int):
        folder = folder.resolve()  # a profile's path with a .. in it never opens
        self.url = f'http://127.0.0.1:{free_port()}'
        self.driver = Program(['chromedriver', f'--port={self.url.rpartition(":")[2]}'], folder / 'chromedriver.log',
                              {'PATH': '/usr/bin:/bin', 'HOME': str(folder)})
        try:
            self.driver.wait_for(lambda: request('GET', self.url + '/status').status == 200, 'chromedriver')
            options = {'args': [*ARGUMENTS, f'--user-data-dir={folder / "profile"}', '--window-size=1280,900']}
            self.session = ''
            self.session = '/session/' + self.call('POST', '/session', {
                'capabilities': {'alwaysMatch': {'goog:chromeOptions': options}}})['sessionId']
            self.size(width, height)
        except BaseException:
            self.driver.kill()
            raise

    def call(self, method: str, path: str, document: dict | None = None):
        body = None if document is None else json.dumps(document).encode()
        answer = request(method, self.url + self.session + path, body, {'Content-Type': 'application/json'}, 60)
        if answer.status != 200:
            raise AssertionError(f'{method} {path}: {answer.status} {answer.text[:500]}')
        return json.loads(answer.body)['value']

    def tool(self, name: str, **parameters) -> None:
        """A command of the developer tools."""
        self.call('POST', '/goog/cdp/execute', {'cmd': name, 'params': parameters})

    def size(self, width: int, height: int) -> None:
        self.tool('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def scheme(self, name: str) -> None:
        """`light` or `dark`."""
        self.tool('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': name}])

    def open(self, url: str) -> None:
        self.call('POST', '/url', {'url': url})

    def run(self, script: str):
        """What a function with this body returns, run in the page (a page's own policy doesn't count for it)."""
        return self.call('POST', '/execute/sync', {'script': script, 'args': []})

    def screenshot(self) -> bytes:
        """As PNG."""
        return base64.b64decode(self.call('GET', '/screenshot'))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call('DELETE', '')
        finally:
            self.driver.kill()
