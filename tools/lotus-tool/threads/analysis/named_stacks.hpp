// Finds the names of the functions in sampled stacks, and chooses the functions that explain what a
// thread was doing.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_NAMED_STACKS_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_NAMED_STACKS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/diagnostics.hpp"
#include "sampling/read/symbols.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// A position in the source code of a program.
struct source_place {
  /// Name of the function, such as "Loader::next"; "libz.so.1+0x5a20" if the function at this
  /// address has no name.
  std::string function;
  std::string module;    ///< path of the program or library
  std::string file;      ///< "" without debug information
  int line = 0;          ///< 0: unknown
  bool has_name = true;  ///< whether the function has a name
  // The next members come from the debug information, and are equal for all lines of the function.
  std::string defined_in{};  ///< file that defines the function; "" if unknown
  int defined_at = 0;        ///< first line of the function; 0: unknown
  bool has_object = false;   ///< whether the function is known to be called on an object

  friend bool operator<(const source_place& a, const source_place& b) {
    return std::tie(a.function, a.module, a.file, a.line) <
           std::tie(b.function, b.module, b.file, b.line);
  }
  friend bool operator==(const source_place& a, const source_place& b) {
    return !(a < b) && !(b < a);
  }
};

/// Returns a function's name in which long template arguments are replaced by "...".
std::string short_function(const std::string& function);

/// Returns a text such as "`Loader::next` (loader.h:61)" or "`inflate` (libz.so.1)".
std::string shown_place(const source_place& place);

/// A stack with names, the innermost call first. Contains inlined calls too.
using named_stack = std::vector<source_place>;

class named_stacks {
 public:
  explicit named_stacks(const thread_samples& samples);

  const named_stack& of(std::uint32_t stack) const { return stacks_[stack]; }

 private:
  std::vector<named_stack> stacks_;
};

/// Returns whether a call belongs to the C or C++ library, or starts a program or thread.
bool is_of_runtime(const source_place& place);

/// Returns the index of the call in which a running thread works: the innermost one that is not in
/// the C++ library.
std::size_t working_call(const named_stack& stack);

/// Returns the index of the call in which a waiting thread waits: the innermost one outside of the
/// C and C++ libraries.
std::size_t waiting_call(const named_stack& stack);

/// Returns whether a waiting thread waits in the C++ library for a std::future.
bool waits_for_future(const named_stack& stack);

/// The function with which a thread began.
struct thread_start {
  /// Name of the function in a form that no other function has; "" if the stack does not reach the
  /// beginning of the thread.
  std::string symbol;
  std::string function;  ///< name of the function; for a lambda, of the function that contains it
  /// Name of the lambda, such as "{lambda()#1}" or "$_0"; "" if the function is no lambda.
  std::string lambda;
  std::string file;  ///< file that contains the lambda; "" if unknown
  int line = 0;      ///< first line of the lambda; 0: unknown
};

thread_start start_of_thread(const named_stack& stack);

/// Returns whether the function is a lambda.
bool is_lambda(const source_place& place);

/// Returns the name of the function; for a lambda, of the function that contains it.
std::string containing_function(const std::string& function);

/// Returns the class or namespace of a function or of the lambdas in it, such as "a::Queue<int>"
/// for "a::Queue<int>::next"; "" if the function has none.
std::string class_of(const std::string& function);

/// Returns the name that all instances of a template have in common, such as "a::Queue<>::next" for
/// "a::Queue<int>::next".
std::string without_arguments(const std::string& function);

/// Returns the file's name without folders.
std::string_view file_name(std::string_view path) noexcept;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_ANALYSIS_NAMED_STACKS_HPP
