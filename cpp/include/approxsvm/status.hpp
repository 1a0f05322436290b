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
    not_finite,           // an input row holds NaN or an infinity
    beyond_float64,       // a row's decision value, or a term of it, exceeds the range of float64
    beyond_tolerance,     // done, but a row's value is not certain to the tolerance that was asked for
    unsorted_indices,     // the column indices of a sparse row do not ascend strictly
    ensemble_artifact,    // an artifact of another kind, for Python: several models
    needs_input_map,      // rows would have to be scaled or projected first (Extras)
    needs_label_rule,     // labels would not be by votes (Extras)
    buffer_too_small,     // memory lent for results, for a model or for work is smaller than what goes there
    wrong_row_size,       // the numbers given are not a whole number of rows
    no_labels,            // labels of a regression were asked for
    no_exact_values,      // exact values of an approximate model were asked for
    no_expansion,         // the expansion of a model that has none was asked for
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
        case Status::beyond_float64:
            return "the decision value of a row, or a term of it, exceeds the range of float64";
        case Status::beyond_tolerance:
            return "the value of a row is not certain to the tolerance that was asked for";
        case Status::unsorted_indices:
            return "the column indices of a sparse row must ascend strictly";
        case Status::ensemble_artifact:
            return "an ensemble artifact (several classifiers), which only Python reads";
        case Status::needs_input_map:
            return "the artifact scales or projects its rows first, which only Python does";
        case Status::needs_label_rule:
            return "the artifact labels by scores or probabilities rather than votes, which only Python does";
        case Status::buffer_too_small:
            return "a buffer is smaller than what goes into it";
        case Status::wrong_row_size:
            return "the numbers given are not whole rows of as many features as the model has";
        case Status::no_labels:
            return "a regression has values but no labels";
        case Status::no_exact_values:
            return "an approximate artifact has no exact values: it holds no support vectors";
        case Status::no_expansion:
            return "the artifact holds no expansion, but an exact model or form: prepare() and evaluate() are for it";
    }
    return "unknown status";
}

}  // namespace approxsvm
