"""What bash and zsh offer behind `queen-s3 <TAB>`, asked of the shells themselves at a terminal of their own: commands,
options, engines and files, as `queen-s3 help` lists them."""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from manual import FOLDER, need
from processes import BUILD, DEADLINE, TooLate
from sink import command

PROMPT = 'ready> '
# What zsh would add to the line goes into $HITS instead, and then an END.
ZSH = r'''
PS1='' PS2='' fpath=(%(folder)s $fpath)
autoload -Uz compinit && compinit -D -u
zstyle ':completion:*' completer _complete
zstyle ':completion:*' format ''
function compadd {
    local -a hits
    if (( ! ${@[(I)-[OAD]*]} )); then
        builtin compadd -O hits "$@"
        (( $#hits )) && print -rl -- $hits >>$HITS
    fi
    builtin compadd "$@"
}
function offer { zle list-choices; print END >>$HITS }
zle -N offer
bindkey '^T' offer
PS1='%(prompt)s'
'''


def help_of(*arguments: str) -> str:
    return command({}, 'help', *arguments).stdout.decode()


def commands() -> list[str]:
    return re.findall(r'^  (\w+)  ', help_of(), re.M)


def options(name: str) -> list[str]:
    return re.findall(r'^  (-\S+)', help_of(name), re.M)


def engines() -> list[str]:
    found = re.search(r'^ENGINE is one of ([^.]+)\.', help_of('ddl'), re.M)
    return re.findall(r'\w+', found[1])


class Terminal:
    """A shell at a terminal: what is typed, and what is seen."""

    def __init__(self, arguments: list, environment: dict[str, str]):
        self.seen = ''
        pid, self.descriptor = pty.fork()
        if pid == 0:
            os.execvpe(str(arguments[0]), [str(a) for a in arguments], environment)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack('HHHH', 50, 500, 0, 0))
        self.pid = pid

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def wait_for(self, pattern: str) -> re.Match:
        """The first match in what is new since the last one."""
        end = time.monotonic() + DEADLINE
        while not (found := re.search(pattern, self.seen)):
            if not select.select([self.descriptor], [], [], max(0, end - time.monotonic()))[0]:
                raise TooLate(f'no {pattern!r} in {self.seen!r}')
            self.seen += re.sub(r'\x1b\[[0-9;?]*[A-Za-z]|\x07', '', os.read(self.descriptor, 65536).decode())
        self.seen = self.seen[found.end():]
        return found

    def close(self) -> None:
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)


class Questions:
    """The same for each shell, which answers with offered(line): all that it offers at the line's end."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir=BUILD, prefix='completion-')))
        self.environment = {'PATH': f'{BUILD}:{os.environ["PATH"]}', 'HOME': str(self.folder), 'LC_ALL': 'C.UTF-8',
                            'TERM': 'dumb', 'PS1': PROMPT}
        self.begin()

    def test_commands(self):
        self.assertEqual(set(self.offered('queen-s3 ')) - {'-f'}, set(commands()))
        self.assertEqual(set(self.offered('queen-s3 ve')), {'verify', 'version'})
        self.assertEqual(set(self.offered('queen-s3 -f some.conf win')), {'windows'})
        self.assertEqual(set(self.offered('queen-s3 help ')), set(commands()))

    def test_options(self):
        for name in commands():
            self.assertEqual(set(self.offered(f'queen-s3 {name} -')), set(options(name)), name)
        self.assertEqual(set(self.offered('queen-s3 windows orders --s')), {'--since'})
        self.assertEqual(set(self.offered('queen-s3 -f some.conf verify orders --d')), {'--deep'})

    def test_values(self):
        """Nothing is offered for a time or a number; what comes behind them is known again."""
        self.assertEqual(self.offered('queen-s3 windows --since '), [])
        self.assertEqual(set(self.offered('queen-s3 windows --since 0 --un')), {'--until'})

    def test_engines(self):
        self.assertEqual(set(self.offered('queen-s3 ddl ')) - set(options('ddl')), set(engines()))
        self.assertEqual(set(self.offered('queen-s3 ddl po')), {'polars'})
        self.assertEqual(set(self.offered('queen-s3 ddl -f some.conf po')), {'polars'})
        self.assertEqual(set(self.offered('queen-s3 ddl polars po')), set())

    def test_files(self):
        (self.folder / 'unmistakable.conf').touch()
        for line in f'queen-s3 -f {self.folder}/unm', f'queen-s3 policy -f {self.folder}/unm':
            self.assertEqual(self.file(line), f'{self.folder}/unmistakable.conf')


class BashTest(Questions, unittest.TestCase):
    SCRIPT = FOLDER / 'queen-s3.bash'

    def begin(self):
        need('bash')

    def offered(self, line: str) -> list[str]:
        """By calling what `complete` names, with the line in words as readline cuts it."""
        words = re.findall(r'=|[^ =]+', line) + ([''] if line.endswith((' ', '=')) else [])
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"\n'
                  '[[ $(complete -p queen-s3) =~ -F\\ ([^ ]+) ]] || exit 9\n'
                  '"${BASH_REMATCH[1]}" queen-s3 "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        answer = subprocess.run(['bash', '--norc', '-c', script, 'bash', self.SCRIPT, *words], capture_output=True,
                                text=True, check=True, env=self.environment)
        self.assertEqual(answer.stderr, '', line)
        return answer.stdout.split()

    def terminal(self) -> Terminal:
        terminal = Terminal(['bash', '--norc', '--noprofile', '-i'], {**self.environment, 'INPUTRC': '/dev/null'})
        self.addCleanup(terminal.close)
        self.addCleanup(terminal.type, '\x15exit\r')
        terminal.wait_for(PROMPT)
        terminal.type(f'source {self.SCRIPT}\r')
        terminal.wait_for(PROMPT)
        return terminal

    def file(self, line: str) -> str:
        terminal = self.terminal()
        terminal.type(line + '\t')
        return terminal.wait_for(re.escape(line.rpartition(' ')[2]) + r'\S+(?= )')[0]

    def test_terminal(self):
        terminal = self.terminal()
        terminal.type('queen-s3 wi\t')
        terminal.wait_for('queen-s3 windows ')
        terminal.type('--js\t')
        terminal.wait_for('--json ')

    def test_equals(self):
        self.assertEqual(self.offered('queen-s3 windows --since='), [])
        self.assertEqual(self.offered('queen-s3 windows --since=2'), [])
        self.assertEqual(self.offered('queen-s3 windows --since=2 --un'), ['--until'])


class ZshTest(Questions, unittest.TestCase):
    def begin(self):
        zsh = need('zsh')
        functions = self.folder / 'functions'
        functions.mkdir()
        (functions / '_queen-s3').write_bytes((FOLDER / 'queen-s3.zsh').read_bytes())
        (self.folder / '.zshrc').write_text(ZSH % {'folder': functions, 'prompt': PROMPT})
        hits = self.folder / 'hits'
        os.mkfifo(hits)
        self.hits = os.open(hits, os.O_RDWR)
        self.addCleanup(os.close, self.hits)
        self.terminal = Terminal([zsh, '-d', '-i'], {**self.environment, 'HITS': str(hits),
                                                     'ZDOTDIR': str(self.folder)})
        self.addCleanup(self.terminal.close)
        self.addCleanup(self.terminal.type, '\x15exit\r')
        self.terminal.wait_for(PROMPT)

    def offered(self, line: str) -> list[str]:
        self.terminal.type(f'\x15{line}\x14')
        text = ''
        while not text.endswith('END\n'):
            if not select.select([self.hits], [], [], DEADLINE)[0]:
                raise TooLate(f'{line}: {text!r}; {self.terminal.seen!r}')
            text += os.read(self.hits, 65536).decode()
        return text.split('\n')[:-2]

    def file(self, line: str) -> str:
        self.assertEqual(self.offered(line), ['unmistakable.conf'])
        return f'{self.folder}/unmistakable.conf'

    def test_terminal(self):
        self.terminal.type('queen-s3 wi\t')
        self.terminal.wait_for('queen-s3 windows ')
        self.terminal.type('--js\t')
        self.terminal.wait_for('--json ')


if __name__ == '__main__':
    unittest.main()
