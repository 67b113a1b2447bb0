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

def memory():
    return syscall(9, 222, 0, 4096, 3, 34, -1, 0)

def forged(*replies):
    # in place of what serves this template, whose frame has the token of the request
    frame = sys._getframe()
    while "token" not in frame.f_locals:
        frame = frame.f_back
    for reply in replies:
        body = frame.f_locals["token"] + reply.encode("utf-8", "surrogatepass")
        data = memoryview(struct.pack("<I", len(body)) + body)
        while data:
            data = data[os.write(3, data):]
    time.sleep(1000)

def verdict(**said):
    said = {{"result": False, "field_results": {{}}, "field_scores": {{}}, "remarks": [], "stable": True, **said}}
    return json.dumps({{"composition_strategy": None, **said}})

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
SHARED = {
    "shared memory": "key = syscall(29, 194, 0, 4096, 0o1777)\n    syscall(31, 195, key, 0, 0)\n    return True",
    "semaphores": "key = syscall(64, 190, 0, 1, 0o1666)\n    syscall(66, 191, key, 0, 0, 0)\n    return True",
    "messages": "key = syscall(68, 186, 0, 0o1666)\n    syscall(71, 187, key, 0, 0)\n    return True",
    "named shared memory": "return ctypes.CDLL(None).shm_open(b'/karenina-{host}', 66, 0o666) >= 0",
    "named messages": "return syscall(240, 180, b'karenina-{host}', 66, 0o666, 0) >= 0",
    "secret memory": "return syscall(447, 447, 0) >= 0",
    "pages that others have": "return syscall(28, 233, memory(), 4096, 12) == 0",
    "huge pages": "return syscall(9, 222, 0, 1 << 21, 3, 0x40022, -1, 0) > 0",
    "locked memory": "return syscall(149, 228, memory(), 4096) == 0",
    "write the memory of the server": (
        "part = struct.pack('QQ', ctypes.addressof(ctypes.create_string_buffer(8)), 8)\n"
        "    return syscall(311, 271, os.getppid(), part, 1, part, 1, 0) > 0"
    ),
    "compare with the server": "return syscall(312, 272, os.getpid(), os.getppid(), 1, 0, 0) >= 0",
    "pages of the server": "return syscall(279, 239, os.getppid(), 0, 0, 0, 0, 0) >= 0",
    "locks of the server": "return syscall(274, 100, os.getppid(), bytes(8), bytes(8)) == 0",
    "lock with priority": "return syscall(202, 98, ctypes.create_string_buffer(4), 6 | 128, 0, 0, 0, 0) == 0",
}
DESCRIPTORS = {
    "inherited descriptors": (
        "for number in range(4, 5000):\n        try: return bool(os.write(number, b'x'))\n        except OSError: pass"
    ),
    "input": "return os.read(0, 9) != b''",
    "copy a descriptor": "return os.dup(0)",
    "pipe": "return os.pipe()",
    "signals of a descriptor": "return syscall(72, 25, 3, 8, {host}) >= 0",
    "who is at the other end": ("return socket.socket(fileno=3).getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)"),
    "bytes that wait": "return syscall(16, 29, 3, 0x541B, bytes(8)) >= 0",
    "descriptor of a process": "return syscall(438, 438, 3, 0, 0) >= 0",
    "descriptor of events": "return syscall(290, 19, 0, 0) >= 0",
    "descriptor of a timer": "return syscall(283, 85, 1, 0) >= 0",
    "descriptor of signals": "return syscall(289, 74, -1, bytes(8), 8, 0) >= 0",
    "watch files": "return syscall(294, 26, 0) >= 0",
    "watch all files": "return syscall(300, 262, 0, 0) >= 0",
}
RIGHTS = {
    "kill a thread": "return syscall(234, 131, os.getppid(), os.getppid(), 9) == 0",
    "kill the group": "return syscall(62, 129, 0, 9) == 0",
    "outlive the server": "return syscall(157, 167, 1, 0, 0, 0, 0) == 0",
    "limits of the host": "return syscall(302, 261, {host}, 7, 0, ctypes.create_string_buffer(16)) == 0",
    "priority": "return os.nice(-10) < 0",
    "real time": "return syscall(144, 119, 0, 1, struct.pack('i', 1)) == 0",
    "processors": "return os.sched_setaffinity(0, {{0}}) is None",
    "another personality": "return syscall(135, 92, 0x0400000) >= 0",
    "another filter": "return syscall(317, 277, 1, 8, bytes(16)) >= 0",
    "log of the kernel": "return syscall(103, 116, 3, ctypes.create_string_buffer(99), 99) >= 0",
    "add a key": "return syscall(248, 217, b'user', b'karenina', b'x', 1, -3) >= 0",
    "protection key": "return syscall(329, 288, memory(), 4096, 7, -1) == 0",
    "change existing code": (
        "page = ctypes.cast(ctypes.CDLL(None).getenv, ctypes.c_void_p).value & ~4095\n"
        "    syscall(10, 226, page, 4096, 3)\n    return syscall(10, 226, page, 4096, 5) == 0"
    ),
    "code of a callback": (
        "made = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)\n"
        "    ctypes.memmove(ctypes.cast(made, ctypes.c_void_p).value, b'\\xc3', 1)\n    return True"
    ),
    "call of another architecture": (
        "python = ctypes.pythonapi\n"
        "    for function in (python.PyArg_Parse, python.PyObject_Repr, python.PyUnicode_Join, python.Py_AtExit):\n"
        "        start = ctypes.cast(function, ctypes.c_void_p).value\n"
        "        found = ctypes.string_at(start, 1 << 19).find(b'\\xcd\\x80')\n"
        "        if found >= 0:  # two numbers: what the call reads as its own number, that of fork\n"
        "            call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double, ctypes.c_double)(start + found)\n"
        "            return call(0.0, 0.0) >= 0"
    ),
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
    "sleep in pieces": "while True: time.sleep(0.001)",
    "memory of the C library": (
        "libc = ctypes.CDLL(None)\n    libc.malloc.restype = ctypes.c_void_p\n    found = 0\n"
        "    while (part := libc.malloc(1 << 20)):\n        ctypes.memset(part, 1, 1 << 20)\n        found += 1\n"
        "    return found > 400"
    ),
    "mapped memory": "import mmap\n    return mmap.mmap(-1, 4 << 30)",
    "one call that takes long": "return sum(range(10 ** 12)) > 0",
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
    "byte by byte": ("os.write(3, struct.pack('<I', 1 << 20))\n    while True: os.write(3, b'x')"),
    "no truth value": "return forged(verdict(result='yes'))",
    "other fields": "return forged(verdict(field_results={{'secret': True}}))",
    "numbers that are none": "return forged(verdict(field_scores={{'said': float('nan')}}))",
    "infinite score": "return forged(verdict().replace('{{}}', '{{\"said\": 1e999}}'))",
    "large numbers": "return forged(verdict(remarks=[]).replace('[]', '9' * 100000))",
    "deep reply": "return forged('{{\"result\":' + '[' * 500000)",
    "balanced deep reply": "return forged(verdict(remarks=[]).replace('[]', '[' * 900 + ']' * 900))",
    "large reply": "return forged(verdict(remarks=['x' * (1 << 21)]))",
    "the same key twice": "return forged(verdict(result='x')[:-1] + ', \"result\": \"y\"}}')",
    "two replies": "return forged(verdict(), verdict(result=True))",
    "no text": "return forged('\\ud800')",
    "error that is none": "return forged(json.dumps({{'error': ['time'], 'message': {{'a': 1}}}}))",
    "error without end": "return forged(json.dumps({{'error': 'template', 'message': 'x' * 900000}}))",
    "control characters": "return forged(json.dumps({{'error': 'template', 'message': '\\x1b[2J' * 9000}}))",
    "value that lies": (
        "class Yes:\n        __class__ = bool\n        def __bool__(self): os._exit(0)\n"
        "        __eq__ = __repr__ = __bool__\n    return Yes()"
    ),
    "its own encoder": (
        "import karenina_sandbox.frames as frames\n    frames._write = lambda *said: '[' * 90 + ']' * 90\n"
        "    return True"
    ),
    "at the end": (
        "import atexit, weakref\n    class Late:\n        def __del__(self): open('{folder}/late', 'w')\n"
        "    def late(*_): open('{folder}/late', 'w')\n    late.kept = Late()\n"
        "    weakref.finalize(late, late)\n    atexit.register(late)\n    sys.exit(0)"
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
    "file as a module": (
        "import importlib.util\n    open('{folder}/late.py', 'w').write('x = 1')\n"
        "    spec = importlib.util.spec_from_file_location('late', '{folder}/late.py')\n"
        "    return spec.loader.load_module('late').x == 1"
    ),
    "library": "return ctypes.CDLL('libBrokenLocale.so.1')",
    "library for text": (
        "libc = ctypes.CDLL(None)\n    libc.iconv_open.restype = ctypes.c_long\n"
        "    return libc.iconv_open(b'EUC-JP', b'UTF-8') != -1"
    ),
    "pickle of a module": "import pickle\n    return pickle.loads(b'csqlite3\\nconnect\\n(S\\'{folder}/db\\'\\ntR.')",
    "plugin of pydantic": (
        "class Plugin:\n        def new_schema_validator(self, *_, **__):\n"
        "            open('{folder}/plugin', 'w')\n            return None, None, None\n"
        "    from pydantic.plugin import _loader\n    _loader._plugins = {{'x': Plugin()}}\n"
        "    return create_model('Made', x=(int, 1))()"
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


GROUPS = (
    *(FILES, ENVIRONMENT, NETWORK, PROCESSES, KERNEL, SHARED, DESCRIPTORS, RIGHTS),
    *(EXHAUSTION, CRASHES, PROTOCOL, LIBRARIES),
)
ATTACKS: dict[str, str] = {
    **{name: _in_function(code) for group in GROUPS for name, code in group.items()},
    **AT_LOADING,
}
"""Name -> what a template's source has before its class."""
