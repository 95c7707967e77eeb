"""Long texts give their memory back, also after the first of them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from routecodex.addons import allocator

ROOT = Path(allocator.__file__).parents[1]
COUNTED = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import tests
from routecodex.addons import allocator

class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keep"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
if sys.argv[2] == "settled":
    assert allocator.settle()
for _ in range(3):
    bytes(4 << 20)  # made and given back
before = libc.mallinfo2().hblks
kept = bytes(2 << 20)
print(libc.mallinfo2().hblks - before)
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have no such habit")


def own_pieces(how: str) -> int:
    """How many pieces of memory of its own a long text is given after longer ones have gone."""
    environment = {name: value for name, value in os.environ.items() if name not in allocator.SET_BY_HAND}
    command = [sys.executable, "-c", COUNTED, str(ROOT), how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    if "mallinfo2" in done.stderr:
        pytest.skip("an older glibc, which does not tell")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@glibc
def test_a_long_text_has_memory_of_its_own() -> None:
    assert own_pieces("settled") == 1


@glibc
def test_left_alone_it_would_not() -> None:
    assert own_pieces("left alone") == 0


GIVEN_BACK = """
import sys
sys.path.insert(0, sys.argv[1])
import tests
from routecodex.addons import allocator

def resident() -> int:
    return int(open("/proc/self/statm").read().split()[1])

pieces = [b"x" * 100_000 for _ in range(400)]
del pieces[:-1]  # what is made last lies above all the others
before = resident()
allocator.give_back()
print(before - resident())
"""


@glibc
def test_what_lies_between_goes_back() -> None:
    done = subprocess.run([sys.executable, "-c", GIVEN_BACK, str(ROOT)], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) * 4096 > 200 * 100_000


READ = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import tests
from routecodex.addons import allocator
from routecodex.routing import jsonbytes

def asked() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

assert allocator.settle()
raw = jsonbytes.dumps({"messages": [{"role": "user", "content": f"{number} " * 1500} for number in range(50)]})

def read() -> None:
    assert len(jsonbytes.loads(raw)["messages"]) == 50

def often(times: int) -> int:
    before = asked()
    for _ in range(times):
        allocator.reading(len(raw), read) if sys.argv[2] == "reading" else read()
    return asked() - before

often(20)
print(len(raw), often(50) // 50)
"""


@glibc
def test_a_usual_large_call_is_read_where_the_last_one_was() -> None:
    """Pages that the system gives anew for each: none in the heap, all that it touches otherwise."""
    environment = {name: value for name, value in os.environ.items() if name not in allocator.SET_BY_HAND}
    pages = {}
    for how in ("reading", "otherwise"):
        command = [sys.executable, "-c", READ, str(ROOT), how]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        size, pages[how] = map(int, done.stdout.split())
        assert 200_000 < size < 400_000
    assert pages["reading"] < 5
    assert pages["otherwise"] >= 200_000 // 4096


@pytest.mark.parametrize("size", [0, 40_000, 400_000, 10 << 20])
def test_what_is_read_is_answered_and_texts_have_their_own_memory_again(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(allocator, "_mallopt", lambda *what: told.append(what))
    assert allocator.reading(size, lambda: len(told)) == len(told) // 2
    with pytest.raises(ZeroDivisionError):
        allocator.reading(size, lambda: 1 // 0)
    assert len(told) == (4 if size == 400_000 else 0)
    assert {value for _, value in told[1::2]} <= {allocator.OWN_PIECE_BYTES}


@pytest.mark.parametrize("name", allocator.SET_BY_HAND)
def test_what_a_person_has_set_stands(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    assert not allocator.settle()


def test_other_systems_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not allocator.settle()
    allocator.give_back()
