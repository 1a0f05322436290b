"""Macros from third-party headers: our headers must compile after them, whatever their definitions."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

OBJECTS = {
    "windows.h": "near far small hyper interface IN OUT OPTIONAL ERROR STRICT VOID CONST TRUE FALSE DELETE DIFFERENCE "
    "NO_ERROR DOMAIN_ERROR OVERFLOW UNDERFLOW TRANSPARENT OPAQUE ABSOLUTE RELATIVE IGNORE INFINITE pascal",
    "Qt": "slots signals emit foreach forever",
    "X11": "Status None Bool True False Success Always Never Above Below Complex Unsorted Font Cursor KeyPress Convex",
    "math.h": "DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS HUGE M_PI",
    "complex.h": "I complex imaginary",
    "GCC": "unix linux",
    "Arduino": "B0 B1 B01 B10 PI HALF_PI TWO_PI EULER HIGH LOW INPUT OUTPUT DEFAULT EXTERNAL INTERNAL LSBFIRST DEC "
    "HEX OCT BIN OK SP",
    "termios.h": "B50 B110 ECHO CR0 NL0 FF0",
    "Unreal": "PI INDEX_NONE",
    "Objective-C": "nil Nil YES NO",
}
FUNCTIONS = {
    "windows.h": "min max TEXT GetObject",
    "macOS": "check verify require",
    "Unreal": "check verify ensure TEXT UE_LOG",
    "Arduino": "abs round radians degrees sq bit word constrain F interrupts lowByte highByte bitRead bitSet",
    "sockets of lwIP": "send recv read write close bind select",
    "C of old": "finite major minor",
    "glib": "MIN MAX ABS CLAMP",
    "Qt": "Q_UNUSED SIGNAL SLOT",
}


def macros() -> list[str]:
    """Return each macro name once; function names are followed by (x)."""
    names = {name: name for text in OBJECTS.values() for name in text.split()}
    names |= {name: f"{name}(x)" for text in FUNCTIONS.values() for name in text.split()}
    return list(names.values())


def check_behind_macros(command: list[str], header: str, behind: str = "") -> None:
    """Compile the header after the macros, each of which is a syntax error if used and must remain defined to the end.

    The standard headers come first, because they have their own protection.
    """
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    is_cpp = any("++" in word for word in command)
    standard = (
        "algorithm charconv cmath cstddef cstdint cstdio cstdlib cstring limits new string string_view type_traits "
        "utility"
    )
    includes = standard.split() if is_cpp else ["float.h", "stddef.h", "stdint.h"]
    text = "".join(f"#include <{name}>\n" for name in includes)
    text += "#if defined(__x86_64__) && defined(__cplusplus)\n#include <immintrin.h>\n#endif\n"
    defined = {macro.partition("(")[0]: macro for macro in macros()}
    text += "".join(f"#undef {name}\n#define {macro} <{name}>\n" for name, macro in defined.items())
    text += f'#include "{header}"\n'
    text += "".join(f"#ifndef {name}\n#error {name} is gone\n#endif\n#undef {name}\n" for name in defined) + behind
    done = subprocess.run([*command, "-fsyntax-only", "-"], input=text, capture_output=True, text=True)
    named = sorted(set(re.findall(r"in expansion of macro .(\w+)|expanded from macro '(\w+)'", done.stderr)))
    assert done.returncode == 0, (named, done.stderr[:2000])
