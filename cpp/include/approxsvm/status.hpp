// What can go wrong in the native core, and how to say it. Nothing here prints, throws or allocates.
#pragma once

namespace approxsvm {

enum class Status {
    ok,                   // done
    misaligned,           // the artifact's first byte does not lie on an 8-byte boundary
    truncated,            // fewer bytes than the header or the section table needs
    bad_magic,            // the first eight bytes are not those of an artifact
    unsupported_version,  // written by another version of the format
    size_mismatch,        // file_bytes is not the number of bytes given
    checksum_mismatch,    // the bytes were changed after they were written
    bad_header,           // a header field has a value that the format does not allow
    bad_section,          // a section is missing, misplaced, of the wrong size or badly padded
    bad_coefficient,      // a coefficient, center or check value is NaN or infinite
    bad_labels,           // the labels are unreadable or not distinct
    bad_support_vectors,  // the packed support vectors contradict themselves or their coefficients
    check_row_mismatch,   // a check row replayed on this machine gives another decision value
    not_finite,           // an input row holds NaN or an infinity in a column that is used
    unsorted_indices,     // the column indices of a sparse row do not ascend strictly
    needs_input_map,      // decision_function() does not map rows: evaluate() does
    map_overflow,         // scaling a row goes beyond the range of float64 (Fault: the row, its largest number)
    outside_domain,       // a row has a number that a step does not take (Fault: row, number, what is needed, kind)
    beyond_float64,       // a row's decision value, or a term of it, exceeds the range of float64 (Fault: the row)
    beyond_tolerance,     // a row's value is not certain to the tolerance asked for (Fault: row, bound,
                          // tolerance)
    unknown_feature,      // a sparse row has a feature that the input map does not know
    buffer_too_small,     // memory lent for results, for a model or for work is smaller than what goes there
    wrong_row_size,       // the numbers given are not a whole number of rows
    bad_row_starts,       // where sparse rows start does not ascend, or leads beyond the numbers given
    no_labels,            // labels of a regression were asked for
    no_values,            // decision values of an ensemble, which averages probabilities, were asked for
    no_probabilities,     // probabilities of a model that has none were asked for
    no_exact_values,      // exact values of an approximate model were asked for
    no_expansion,         // the expansion of a model that has none was asked for
    not_open,             // a model was asked before an artifact was opened
    not_prepared,         // or before it was prepared
};

constexpr const char* message(Status status) {
    switch (status) {
        case Status::ok:
            return "no error";
        case Status::misaligned:
            return "the artifact must start at an address that is a multiple of 8";
        case Status::truncated:
            return "the file ends inside the header or the section table";
        case Status::bad_magic:
            return "not an approxsvm artifact: wrong magic bytes";
        case Status::unsupported_version:
            return "the format version is not the one that this library reads";
        case Status::size_mismatch:
            return "file_bytes in the header is not the size of the file";
        case Status::checksum_mismatch:
            return "the checksum does not match: the bytes have been changed";
        case Status::bad_header:
            return "a header field has a value that the format does not allow";
        case Status::bad_section:
            return "a section is missing, misplaced, of the wrong size or badly padded";
        case Status::bad_coefficient:
            return "a coefficient is not finite or not in its allowed range";
        case Status::bad_labels:
            return "the labels are unreadable or not distinct";
        case Status::bad_support_vectors:
            return "the packed support vectors contradict themselves or their coefficients";
        case Status::check_row_mismatch:
            return "a check row does not reproduce its stored decision value";
        case Status::not_finite:
            return "a row contains NaN or infinity";
        case Status::unsorted_indices:
            return "the column indices of a sparse row must ascend strictly";
        case Status::needs_input_map:
            return "the artifact scales or projects its rows first: prepare() and evaluate() are for it";
        case Status::map_overflow:
            return "scaling a row exceeds the range of float64";
        case Status::outside_domain:
            return "a row has a number that a step of the pipeline does not take";
        case Status::beyond_float64:
            return "the decision value of a row, or a term of it, exceeds the range of float64";
        case Status::beyond_tolerance:
            return "the value of a row is not certain to the tolerance that was asked for";
        case Status::unknown_feature:
            return "a sparse row has a feature that the model was not trained with";
        case Status::buffer_too_small:
            return "a buffer is smaller than what goes into it";
        case Status::wrong_row_size:
            return "the numbers given are not whole rows of as many features as the model has";
        case Status::bad_row_starts:
            return "the starts of sparse rows do not ascend, or lead beyond the numbers given";
        case Status::no_labels:
            return "a regression has values but no labels";
        case Status::no_values:
            return "an ensemble averages probabilities or counts votes and has no decision values";
        case Status::no_probabilities:
            return "the model was trained without probabilities";
        case Status::no_exact_values:
            return "an approximate artifact has no exact values: it holds no support vectors";
        case Status::no_expansion:
            return "the artifact holds no expansion, but an exact model or form: prepare() and evaluate() are for it";
        case Status::not_open:
            return "no artifact has been opened";
        case Status::not_prepared:
            return "the model has not been prepared";
    }
    return "unknown status";
}

}  // namespace approxsvm
