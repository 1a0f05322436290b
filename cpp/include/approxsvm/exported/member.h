/* One model, alone or as a member of an ensemble: the way from a row to decision values, probabilities and labels. */
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
