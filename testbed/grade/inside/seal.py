"""The wall around a cell: limits of the kernel, and a list of the system calls that it may still make.

After ``seal`` a process can compute, use memory up to its limit, and read and write what is open
already, which is its pipe to the grader. It cannot open a file, make a socket, another process or a
thread, send a signal, or sleep. seccomp needs no privilege and no namespace, so that this holds in a
container too. Landlock, where there is any, refuses all files and TCP once more."""

import ctypes
import errno
import platform
import resource
import struct
from typing import NamedTuple

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_DUMPABLE = 38, 22, 4
MODE_FILTER = 2
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
NUMBER_AT, ARCHITECTURE_AT = 0, 4  # in struct seccomp_data
CREATE_RULESET, RESTRICT_SELF, WHICH_VERSION = 444, 446, 1
NO_FILES, NO_TCP = (1 << 13) - 1, 3
MB = 1 << 20

# By machine: the number of its architecture, and those of the calls that are let through, which are
# read write close fstat lseek mmap mprotect munmap brk mremap madvise rt_sigaction rt_sigprocmask
# rt_sigreturn sigaltstack futex sched_yield getpid gettid clock_gettime gettimeofday getrusage
# setitimer exit exit_group restart_syscall.
CALLS = {
    "x86_64": (
        0xC000003E,
        "0 1 3 5 8 9 10 11 12 25 28 13 14 15 131 202 24 39 186 228 96 98 38 60 231 219",
    ),
    "aarch64": (
        0xC00000B7,
        "63 64 57 80 62 222 226 215 214 216 233 134 135 139 132 98 124 172 178 113 169 165 103 93 94 "
        "128",
    ),
}


class Limits(NamedTuple):
    """What a cell may use."""

    memory_mb: int
    processor_s: int


class SealError(Exception):
    """The wall cannot be raised here."""


def seal(limits: Limits) -> None:
    """Raise the wall around this process, for good."""
    for what, most, hard in (
        (resource.RLIMIT_AS, limits.memory_mb * MB, limits.memory_mb * MB),
        (resource.RLIMIT_CPU, limits.processor_s, limits.processor_s + 1),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
    ):
        resource.setrlimit(what, (most, hard))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise SealError("this kernel has no PR_SET_NO_NEW_PRIVS")
    _close_files(libc)
    program = _program()
    buffer = ctypes.create_string_buffer(program)
    fprog = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, fprog, 0, 0):
        raise SealError(
            f"this kernel has no seccomp filters: {errno.errorcode[ctypes.get_errno()]}"
        )


def _close_files(libc: ctypes.CDLL) -> None:
    """By Landlock, if the kernel has it; seccomp alone would do."""
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), WHICH_VERSION)
    if version < 1:
        return
    rules = struct.pack("QQ", NO_FILES, NO_TCP) if version >= 4 else struct.pack("Q", NO_FILES)
    ruleset = libc.syscall(CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0)
    if ruleset < 0 or libc.syscall(RESTRICT_SELF, ruleset, 0):
        raise SealError(f"Landlock refuses: {errno.errorcode[ctypes.get_errno()]}")
    libc.close(ruleset)


def _program() -> bytes:
    """The filter: another architecture is killed, a call that is not on the list fails with EPERM."""
    try:
        architecture, numbers = CALLS[platform.machine()]
    except KeyError:
        raise SealError(f"no list of system calls for {platform.machine()}") from None
    calls = [int(number) for number in numbers.split()]
    allow = len(calls) + 1  # instructions to skip from the first comparison
    lines = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
        *((EQUAL, allow - 1 - index, 0, call) for index, call in enumerate(calls)),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
