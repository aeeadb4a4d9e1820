// Locks inside functions of the C library, which all threads of a program share.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_LIBRARY_LOCKS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_LIBRARY_LOCKS_HPP

#include <string_view>

#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

struct run_facts;

/// Whether threads wait in a function of the C library for its own lock.
bool is_of_library(const blocked_on& one);

/// Returns the lock of the C library for which the calls of an operation wait; nullptr if there is
/// none that matters. Most of these locks are held for so short that few samples show them. Every
/// program waits for the lock of an allocator now and then, so that must have more of the run.
/// @param name  of the operation, without S.
const blocked_on* library_lock_of(const run_facts& f, std::string_view name);

/// Returns such a lock of any operation; nullptr if there is none.
const blocked_on* library_lock(const run_facts& f);

/// Returns for how much of the critical path (0..1) an operation waits for one of its locks.
double share_of_path(const run_facts& f, std::string_view name, const blocked_on& lock);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_LIBRARY_LOCKS_HPP
