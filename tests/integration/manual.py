"""The manual as a reader sees it: the pages that the build made, rendered by mandoc and taken apart.

    page = Page('queen-s3', 8)
    page.text('EXIT STATUS')     # what stands there, all blanks and line breaks one blank
    page.tags('EXIT STATUS')     # ['0', '1', ...]: what its lists hang their entries on, in order

A heading is a section or a subsection; a section has what its subsections have.
"""
import html.parser
import pathlib
import re
import shutil
import subprocess
import unittest

from processes import BUILD

FOLDER = BUILD / 'man'
HEADINGS = 'h1', 'h2'


def need(tool: str) -> str:
    """The path of a program, or a skip that names it."""
    path = shutil.which(tool)
    if not path:
        raise unittest.SkipTest(f'there is no {tool}')
    return path


def files() -> list[pathlib.Path]:
    return sorted(f for f in FOLDER.iterdir() if re.fullmatch(r'\.[1-9]', f.suffix))


def words(text: str) -> str:
    """Letters and digits alone, so that quotes, dashes and line breaks don't count."""
    return ' '.join(re.findall(r'\w+', text))


class Page(html.parser.HTMLParser):
    def __init__(self, name: str, section: int | str):
        super().__init__()
        self.path = FOLDER / f'{name}.{section}'
        self._inside: dict[str, str] = {}  # h1 and h2: the heading that we are under
        self._open: list[str] | None = None  # pieces of the heading or tag that we are in
        self._texts: dict[str, list[str]] = {'': []}
        self._tags: dict[str, list[str]] = {}
        self.feed(subprocess.run([need('mandoc'), '-T', 'html', '-O', 'fragment', self.path], capture_output=True,
                                 text=True, check=True).stdout)

    def text(self, heading: str = '') -> str:
        """Of the whole page without a heading."""
        return ' '.join(''.join(self._texts[heading]).split())

    def tags(self, heading: str) -> list[str]:
        return self._tags.get(heading, [])

    def handle_starttag(self, tag, attributes):
        if tag in (*HEADINGS, 'dt'):
            self._open = []
        if tag == 'h1':
            self._inside = {}

    def handle_endtag(self, tag):
        if tag in (*HEADINGS, 'dt'):
            text = ' '.join(''.join(self._open).split())
            self._open = None
            if tag == 'dt':
                for heading in self._inside.values():
                    self._tags.setdefault(heading, []).append(text)
            else:
                self._inside[tag] = text
                self._texts.setdefault(text, [])

    def handle_data(self, data):
        if self._open is not None:
            self._open.append(data)
        for heading in ('', *self._inside.values()):
            self._texts[heading].append(data)
