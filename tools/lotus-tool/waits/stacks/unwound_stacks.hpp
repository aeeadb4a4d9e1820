// Unwinds the stacks that processes recorded of their waiting threads, and names the calls.
#ifndef LOTUS_TOOL_WAITS_STACKS_UNWOUND_STACKS_HPP
#define LOTUS_TOOL_WAITS_STACKS_UNWOUND_STACKS_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/unwind/stack_unwinder.hpp"
#include "waits/data/stack_files.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// Finds the calls in recorded stacks. Call add() for all stacks, then name_all(), then of().
class unwound_stacks {
 public:
  unwound_stacks(const run_files& run, diagnostic_log& diagnostics)
      : run_(run), diagnostics_(diagnostics) {}

  /// Unwinds the stack with the number wait_sample::stack of a process. Throws input_error.
  /// @param ending  identifies the process; see process_waits::ending.
  void add(const std::string& ending, std::uint64_t number);

  /// Returns the stacks and the states of threads that a process recorded. Throws input_error.
  const process_stacks& read(const std::string& ending) { return find(ending).stacks; }

  void name_all();

  /// Returns lines for a process's file of stacks, which contain the calls of the stacks whose
  /// names were not stored before; "" if there are none. add() must have been called for stacks of
  /// this process only.
  std::string names_text(const std::string& ending);

  /// Returns the calls of a stack, the innermost first: from the function of the C or C++ library
  /// that the program called, to the thread's first function. Empty if the stack is unknown.
  std::vector<std::string> of(const std::string& ending, std::uint64_t number) const;

  /// Returns the function of the C or C++ library that the program called, as the dynamic linker
  /// sees it: inlined functions and those of templates are parts of the program. "" if there is
  /// none, or if the stack is unknown.
  std::string library_call(const std::string& ending, std::uint64_t number) const;

  /// Returns the function of the C library that allocates or frees memory, such as "malloc", if the
  /// thread waits inside of it, whoever called it; "" otherwise.
  std::string allocation(const std::string& ending, std::uint64_t number) const;

  /// Returns the program's function that waits, without the functions of the C and C++ libraries
  /// that it called; "" if the stack is unknown.
  std::string function_of(const std::string& ending, std::uint64_t number) const;

 private:
  struct process {
    process_stacks stacks;
    std::vector<std::unique_ptr<stack_unwinder>> unwinders;  // by index in stacks.code
    std::map<std::uint64_t, std::uint32_t> unwound;          // number to index in samples_.stacks
  };

  process& find(const std::string& ending);
  const named_stack* stack_of(const std::string& ending, std::uint64_t number) const;

  const run_files& run_;
  diagnostic_log& diagnostics_;
  std::map<std::string, process> processes_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> modules_;  // by path and build id
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> places_;
  thread_samples samples_;
  std::optional<named_stacks> named_;
};

/// Sets blocked_on::calls and blocked_on::held_in of all entries for which the process recorded
/// stacks. Reads the programs and libraries that the process had mapped. Throws input_error.
void name_stacks(const run_files& run, run_blocked_on& joined, diagnostic_log& diagnostics);

/// Sets blocked_on::taken_in of the locks without a symbol that at least 5 samples show. Without
/// such locks, reads nothing. Throws input_error.
void name_locks(const run_files& run, run_blocked_on& joined, diagnostic_log& diagnostics);

/// Returns a text such as "std::mutex::lock, called by Decoder::get, called by main".
std::string calls_text(const std::vector<std::string>& calls);

/// Returns a text such as "Decode waits for a lock in std::mutex::lock, called by Decoder::get,
/// called by main"; "" if the calls are unknown. Call name_stacks() before.
/// @param name  name of the operation that waits, without the S that logs put before it.
/// @param of  the wait to describe; null: the most frequent wait of the operation.
std::string calls_of_wait(const run_blocked_on& joined, const std::string& name,
                          const blocked_on* of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_STACKS_UNWOUND_STACKS_HPP
