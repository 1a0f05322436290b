/* Decision values, probabilities and labels of a row, for a single model or a member of an ensemble. */
#include "preamble.h"
#include "rows.h"
#if model_n_words_
#include "few_values.h"
#elif model_is_expanded_
#include "expansions.h"
#else
#include "sums.h"
#endif
#include "outputs.h"
