"""Templates that try to get out: each is a function `attack()` that returns True where it succeeded.

`{secret}`, `{folder}`, `{tcp}`, `{udp}`, `{unix}`, `{host}` are a readable file with a secret, a folder that anyone may
write to, ports and a name that something of the host listens at, and the host's process number.
"""

from __future__ import annotations

TEMPLATE = """
import ctypes, json, os, signal, socket, struct, subprocess, sys, threading, time
from typing import Any
from pydantic import BaseModel, Field, ImportString, TypeAdapter, create_model

def syscall(number_x86, number_arm, *arguments):
    number = number_x86 if os.sys.platform == "linux" and sys.maxsize > 2**32 and MACHINE == "x86_64" else number_arm
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    result = function(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return result

MACHINE = "{machine}"
{code}

class Answer(BaseAnswer):
    said: str = Field(description="what is said")

    def model_post_init(self, context):
        self.correct = {{"said": "x"}}

    def verify(self) -> bool:
        try:
            return bool(attack())
        except Exception as error:
            return False
"""
FILES = {
    "read passwords": "return b'root' in open('/etc/passwd', 'rb').read()",
    "read a secret": "return open('{secret}').read()",
    "read a secret by os": "return os.read(os.open('{secret}', os.O_RDONLY), 9)",
    "read a secret by the C library": (
        "fd = ctypes.CDLL(None).open(b'{secret}', 0)\n    if fd < 0: return False\n    return os.read(fd, 9)"
    ),
    "read a secret by openat2": (
        "how = struct.pack('QQQ', 0, 0, 0)\n    return syscall(437, 437, -100, b'{secret}', how, 24) >= 0"
    ),
    "map a secret": "import mmap\n    return mmap.mmap(os.open('{secret}', os.O_RDONLY), 0, prot=mmap.PROT_READ)[:9]",
    "handle of a secret": "return syscall(303, 264, -100, b'{secret}', bytes(200), bytes(8), 0) == 0",
    "environment of the first process": "return open('/proc/1/environ', 'rb').read()",
    "own environment in /proc": "return open('/proc/self/environ', 'rb').read() or True",
    "own memory in /proc": "return open('/proc/self/mem', 'r+b')",
    "map of the host": "return open('/proc/{host}/maps').read()",
    "list the root": "return os.listdir('/')",
    "list a folder": "return os.listdir('{folder}')",
    "ask whether a file is there": "return os.stat('{secret}')",
    "look for a file by access": "return os.access('{secret}', os.F_OK)",
    "write a file": "open('{folder}/written', 'w').write('x')\n    return True",
    "make a folder": "os.mkdir('{folder}/made')\n    return True",
    "make a link": "os.symlink('/etc', '{folder}/link')\n    return True",
    "remove a secret": "os.unlink('{secret}')\n    return True",
    "change the rights of a secret": "os.chmod('{secret}', 0o777)\n    return True",
    "make a device": "os.mknod('{folder}/device', 0o600 | 0o020000, os.makedev(1, 3))\n    return True",
    "leave the root": "os.chroot('/')\n    return True",
    "file in memory": "return os.memfd_create('x') >= 0",
}
ENVIRONMENT = {
    "environment": "return any('CANARY' in key for key in os.environ) or len(os.environ) > 2",
    "environment of the C library": (
        "table, i = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), 'environ'), 0\n"
        "    while table and table[i]:\n        if b'CANARY' in table[i]: return True\n        i += 1"
    ),
    "arguments": "return any('secret' in part for part in sys.orig_argv)",
}
NETWORK = {
    "TCP": "socket.create_connection(('127.0.0.1', {tcp}), 1)\n    return True",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'out', ('127.0.0.1', {udp}))\n    return True",
    "DNS": "return socket.getaddrinfo('localhost', 80)",
    "listen": "socket.create_server(('127.0.0.1', 0))\n    return True",
    "abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0{unix}')\n    return True",
    "pair of sockets": "return socket.socketpair()",
    "raw socket": "return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "netlink": "return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "hand out a descriptor": (
        "here = socket.socket(fileno=3)\n    socket.send_fds(here, [b'x'], [0])\n    return True"
    ),
}
PROCESSES = {
    "shell": "return os.system('touch {folder}/shell') == 0",
    "subprocess": "return subprocess.run(['/bin/true'])",
    "fork": "os.fork()\n    return True",
    "exec": "os.execv('/bin/touch', ['touch', '{folder}/exec'])",
    "spawn": "return os.posix_spawn('/bin/true', ['true'], {{}})",
    "clone": "return syscall(56, 220, 17, 0, 0, 0, 0) >= 0",
    "clone3": "return syscall(435, 435, bytes(88), 88) >= 0",
    "thread": "threading.Thread(target=print).start()\n    return True",
    "kill the server": "os.kill(os.getppid(), signal.SIGKILL)\n    return True",
    "kill the host": "os.kill({host}, signal.SIGKILL)\n    return True",
    "kill everything": "os.kill(-1, signal.SIGKILL)\n    return True",
    "queue a signal": "return syscall(129, 138, os.getppid(), 9, bytes(128)) == 0",
    "trace the server": "return syscall(101, 117, 16, os.getppid(), 0, 0) == 0",
    "read the memory of the server": (
        "part = struct.pack('QQ', ctypes.addressof(ctypes.create_string_buffer(8)), 8)\n"
        "    return syscall(310, 270, os.getppid(), part, 1, part, 1, 0) > 0"
    ),
    "descriptor of the server": "return os.pidfd_open(os.getppid())",
}
KERNEL = {
    "new user namespace": "syscall(272, 97, 0x10000000)\n    return True",
    "mount": "syscall(165, 40, b'none', b'/', b'tmpfs', 0, 0)\n    return True",
    "open a tree": "return syscall(428, 428, -100, b'/', 0) >= 0",
    "io_uring": "return syscall(425, 425, 8, bytes(120)) >= 0",
    "bpf": "return syscall(321, 280, 0, bytes(128), 128) >= 0",
    "perf": "return syscall(298, 241, bytes(128), 0, -1, -1, 0) >= 0",
    "user faults": "return syscall(323, 282, 0) >= 0",
    "keys": "return syscall(250, 219, 0, -3, 1) >= 0",
    "module": "return syscall(313, 273, 0, b'', 0) == 0",
    "x32": "return syscall(0x40000000 + 2, 56, b'{secret}', 0) >= 0",
    "become root": "os.setuid(0)\n    return True",
    "more memory": ("import resource\n    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))\n    return True"),
    "own machine code": "import mmap\n    return mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "memory that becomes code": (
        "address = syscall(9, 222, 0, 4096, 3, 34, -1, 0)\n    return syscall(10, 226, address, 4096, 7) == 0"
    ),
    "be traceable": "return ctypes.CDLL(None).prctl(4, 1, 0, 0, 0) == 0",
    "tell the clock": "time.clock_settime(time.CLOCK_REALTIME, 0)\n    return True",
    "host name": "return socket.gethostname()",
}
EXHAUSTION = {
    "four gigabytes": "return len(bytearray(4 << 30))",
    "doubling list": "parts = [0]\n    while True: parts += parts",
    "doubling text": "text = 'x'\n    while True: text += text",
    "endless loop": "while True: pass",
    "large number": "return 10 ** (10 ** 9)",
    "pattern": "import re\n    return re.match('(a+)+$', 'a' * 60 + 'b')",
    "sleep": "time.sleep(1000)",
    "swallow everything": (
        "def spin():\n        while True: len('')\n"
        "    while True:\n        try: spin()\n        except BaseException: pass"
    ),
    "no interrupt": ("signal.signal(signal.SIGPROF, signal.SIG_IGN)\n    while True: pass"),
    "work when not asked": "signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)\n    return True",
    "wait for a lock": "lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()",
}
CRASHES = {
    "segmentation fault": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "leave": "os._exit(0)",
    "exit": "sys.exit(0)",
    "interrupt": "raise KeyboardInterrupt",
    "deep recursion": (
        "text = '[' * 100000\n    deep = lambda: deep()\n    try: deep()\n    except RecursionError: pass\n"
        "    return json.loads(text)"
    ),
    "endless C recursion": "sys.setrecursionlimit(1 << 30)\n    deep = lambda: deep()\n    deep()",
}
PROTOCOL = {
    "garbage": "for fd in range(16):\n        try: os.write(fd, b'\\xff' * 5000)\n        except OSError: pass",
    "large header": "os.write(3, struct.pack('<I', 0xffffffff))\n    time.sleep(9)",
    "endless reply": "os.write(3, struct.pack('<I', 100000))\n    time.sleep(9)",
    "a reply of its own": (
        "body = bytes(8) + json.dumps({{'result': True}}).encode()\n"
        "    os.write(3, struct.pack('<I', len(body)) + body)\n    return True"
    ),
    "close everything": "os.closerange(0, 100)\n    return True",
    "long error": "raise BaseException('x' * 100_000_000)",
    "hostile error": ("class Error(BaseException):\n        def __str__(self): os._exit(3)\n    raise Error()"),
    "broken modules": (
        "for module in list(sys.modules.values()):\n        getattr(module, '__dict__', {{}}).clear()\n    return True"
    ),
    "flood": "for _ in range(200): print('x' * 1_000_000)\n    return False",
}
LIBRARIES = {
    "import string": ("return TypeAdapter(ImportString).validate_python('os.system')('touch {folder}/imported') == 0"),
    "forward reference": (
        "Made = create_model('Made', x=(\"__import__('os').system('touch {folder}/forward') or int\", 1))\n"
        "    Made.model_rebuild(_types_namespace=globals())\n    Made()\n    return os.path.exists('{folder}/forward')"
    ),
    "type hints": (
        "import typing\n    def f(x: \"open('{folder}/hint', 'w') and int\"): pass\n    return typing.get_type_hints(f)"
    ),
    "pickle": (
        "import pickle\n    class Out:\n        def __reduce__(self): return os.system, ('touch {folder}/pickled',)\n"
        "    return pickle.loads(pickle.dumps(Out())) == 0"
    ),
    "subclasses": (
        "found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen']\n"
        "    return found[0](['/bin/touch', '{folder}/popen'])"
    ),
    "other modules": "import importlib\n    return importlib.import_module('sqlite3').connect('{folder}/db')",
}
AT_LOADING = {
    "loading: read": "X = open('{secret}').read()\ndef attack(): return True",
    "loading: endless": "while True: pass\ndef attack(): pass",
    "loading: leave": "os._exit(0)\ndef attack(): pass",
    "loading: swallow": (
        "def spin():\n    while True: len('')\nwhile True:\n    try: spin()\n    except BaseException: pass\n"
        "def attack(): 0"
    ),
    "loading: memory": "X = bytearray(4 << 30)\ndef attack(): return True",
    "loading: annotation": (
        "class Part(BaseModel):\n    x: \"open('{secret}').read()\" = 1\ndef attack(): return Part()"
    ),
    "loading: decompression": "X = 'x' * (1 << 33)\ndef attack(): return True",
}


def _in_function(code: str) -> str:
    return f"def attack():\n    {code}"


ATTACKS: dict[str, str] = {
    **{
        name: _in_function(code)
        for group in (FILES, ENVIRONMENT, NETWORK, PROCESSES, KERNEL, EXHAUSTION, CRASHES, PROTOCOL, LIBRARIES)
        for name, code in group.items()
    },
    **AT_LOADING,
}
"""Name -> what a template's source has before its class."""
