/* A row's decision values, probabilities and labels, for a single model or an ensemble member. */
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
