"""Check of the names of exported models, which become prefixes in C and namespaces in C++."""

import re
from typing import Final

from approxsvm.errors import InputError

_FORM: Final = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*_?")
_KEYWORDS: Final = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch char
char16_t char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit
continue contract_assert decltype default delete do double dynamic_cast else enum explicit export extern false float for
friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
public reflexpr register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
struct switch synchronized template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
unsigned using virtual void volatile wchar_t while xor xor_eq
"""
# Namespaces and macros reserved by compilers or standards, this library's namespace, and the function `main`.
_RESERVED: Final = (
    "approxsvm main posix std linux unix assert errno offsetof setjmp stdin stdout stderr EOF INFINITY NAN NULL"
)
# Functions that C and C++ headers declare in the global namespace. Those in the first list also exist with the suffixes
# f and l.
_OF_NUMBERS: Final = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim finite
floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2
logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalb scalbln scalbn
significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
"""
_FUNCTIONS: Final = """
abort abs aligned_alloc alloca at_quick_exit atexit atof atoi atol atoll basename bcmp bcopy bsearch bzero calloc
clearerr clearenv clock close ctime difftime div dprintf drand48 ecvt erand48 exit fclose fcvt fdopen feof ferror fflush
ffs fgetc fgetpos fgets fileno fopen fork fprintf fputc fputs fread free freopen fscanf fseek fseeko fsetpos ftell
ftello fwrite gcvt getc getchar getdelim getenv getline gets getw gmtime index isalnum isalpha isblank iscntrl isdigit
isgraph islower isprint ispunct isspace isupper isxdigit jrand48 kill labs ldiv link llabs lldiv localtime longjmp
lrand48 malloc mblen mbstowcs mbtowc memccpy memchr memcmp memcpy memmem memmove memset mktemp mktime mrand48 nrand48
open pause pclose perror pipe popen printf putc putchar putenv puts putw qsort quick_exit raise rand random read realloc
realpath remove rename rewind rindex scanf select setbuf setenv setvbuf signal sleep snprintf sprintf srand srand48
srandom sscanf stime stpcpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror strftime strlen
strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strspn strstr strtod strtof strtok strtol strtold strtoll
strtoul strtoull strxfrm system tempnam time tmpfile tmpnam tolower toupper ungetc unlink unsetenv usleep valloc
vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wait wcstombs wctomb write
"""
_TAKEN: Final = {
    *f"{_KEYWORDS} {_RESERVED} {_FUNCTIONS}".split(),
    *(name + end for name in _OF_NUMBERS.split() for end in ("", "f", "l")),
}


def check_name(name: str) -> str:
    """Return the name if it is valid in C and C++; raise InputError if it is reserved or invalid."""
    if not isinstance(name, str) or not _FORM.fullmatch(name):
        raise InputError(f"name must be letters, digits and single _, beginning with a letter, got {name!r}")
    if name in _TAKEN or name.endswith("_t"):
        raise InputError(f"the name {name!r} belongs to C or C++, choose another, such as {name.rstrip('_')}_model")
    return name
