"""The reader matrix (tests/readers): real readers find the log in lakes of every form, through what `ddl` prints."""
import os
import sys
import unittest

from processes import BUILD, ROOT

sys.path.insert(0, str(ROOT / 'tests/readers'))
import readers  # noqa: E402

TIME_LIMIT = 1500  # the first run installs the readers


class ReadersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if BUILD != ROOT / 'build':
            raise unittest.SkipTest('what a sanitizer finds does not depend on the reader: run with the release alone')
        cls.matrix = readers.run_matrix()

    def test_every_reader_finds_the_log(self):
        self.assertEqual(self.matrix.faults, [])
        self.assertTrue(self.matrix.cells or self.matrix.skipped)

    def test_every_reader_runs(self):
        if self.matrix.skipped:
            why = '; '.join(f'{readers.TITLES[engine]}: {reason}' for engine, reason in self.matrix.skipped.items())
            if os.environ.get('CI') == 'true':
                self.fail(why)
            self.skipTest(why)
        self.assertEqual(len(self.matrix.cells), len(readers.LAKES) * len(readers.ENGINES))

    def test_the_matrix_says_so(self):
        if self.matrix.skipped:
            self.skipTest('not every reader is here')
        self.assertEqual(readers.MATRIX.read_text(), self.matrix.text(), 'make readers writes it anew')


if __name__ == '__main__':
    unittest.main()
