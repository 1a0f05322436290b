#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace approxsvm::text {

/// An allocator whose containers leave new elements uninitialized. The parsers size their arrays first and then write
/// every element once, from several threads; filling the arrays with zeros would touch all the memory on one thread.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
    template <class U>
    struct rebind {
        using other = UninitializedAllocator<U>;
    };

    template <class U>
    void construct(U* place) {
        ::new (static_cast<void*>(place)) U;
    }
    template <class U, class... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
    }
};

template <class T>
using UninitializedVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace approxsvm::text
