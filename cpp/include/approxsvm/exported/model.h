/* A compiled model in C99, without heap or libc. The including file defines the model's numbers: macros and constant
   arrays whose names begin with `model_`. Names that end with _ are internal. Macros that a model does not need are
   undefined, so they count as 0 in conditions. `approxsvm export --c` writes an artifact's numbers, followed by this
   code with the model's name instead of `model` and without the parts whose conditions are false
   (backends/c99/text.py). */
#include "../program/bits.h"
#include "preamble.h"

typedef char model_int_has_32_bits_[sizeof(int) >= 4 ? 1 : -1];
typedef char model_literals_are_double_[sizeof(1.0) == sizeof(double) ? 1 : -1];

#if model_n_text_columns_
#include "texts.h"
#endif
#if model_n_members_
#include "ensembles.h"
#else
#include "member.h"
#endif
#include "answers.h"
