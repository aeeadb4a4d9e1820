// Finds the active calls of a thread from a copy of its stack, with the unwind tables of the
// program and its libraries. Programs need neither frame pointers nor debug information.
#ifndef LOTUS_TOOL_THREADS_UNWIND_STACK_UNWINDER_HPP
#define LOTUS_TOOL_THREADS_UNWIND_STACK_UNWINDER_HPP

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "threads/unwind/stack_copy.hpp"

namespace lotus::tool {

/// Unwinds the stacks of one process. Not thread-safe.
class stack_unwinder {
 public:
  /// @param code  the code that the process had mapped, sorted by address.
  explicit stack_unwinder(std::vector<mapped_code> code);
  stack_unwinder(const stack_unwinder&) = delete;
  stack_unwinder& operator=(const stack_unwinder&) = delete;
  ~stack_unwinder();

  /// Returns the addresses of the active calls, the innermost first: the thread's program counter,
  /// then for each caller an address within its call instruction.
  std::vector<std::uint64_t> unwind(const stack_copy& copy);

  /// Returns the code mapped at an address; null if there is none.
  const mapped_code* find(std::uint64_t address) const;

 private:
  struct state;

  /// Unwinds a stack once. Returns the addresses as unwind() does.
  /// @param complete  set to true if the stack was unwound to its end, otherwise to false.
  std::vector<std::uint64_t> attempt(const stack_copy& copy, bool& complete);
  std::uint64_t called_before(std::uint64_t back);
  std::vector<std::uint64_t> likely_frame_pointers(const stack_copy& copy, std::uint64_t address,
                                                   std::uint64_t from);

  std::vector<mapped_code> code_;
  std::map<std::string, std::ifstream> files_;  // the files in `code_` that were read, by path
  std::unique_ptr<state> state_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_UNWIND_STACK_UNWINDER_HPP
