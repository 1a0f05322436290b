// The constraints relating the numbers in the section "router".
#ifndef APPROXSVM_ARTIFACT_SECTIONS_ROUTER_HPP
#define APPROXSVM_ARTIFACT_SECTIONS_ROUTER_HPP

#include "../envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Every list starts at the end of the previous one and has at least one panel; the last list ends with the last panel.
APPROXSVM_COLD inline Status check_router(const RouterView& router, ArtifactFault* fault) {
    Check check(fault, section::router, Status::bad_section);
    const std::size_t n = router.n_groups;
    check(field::router_starts, router.starts[0], equal_to(0), 0);
    check(field::router_starts, router.starts[n], equal_to(router.n_panels), n);
    for (std::size_t g = 0; g < n && check.status() == Status::ok; ++g) {
        const std::uint64_t start = router.starts[g];
        check(field::router_starts, router.starts[g + 1], from_to(start + 1, start + max_group_panels), g + 1);
    }
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
