// Finds the names of the functions in sampled stacks, and chooses the functions that explain what a
// thread was doing.
#ifndef LOTUS_TOOL_THREADS_ANALYSIS_NAMED_STACKS_HPP
#define LOTUS_TOOL_THREADS_ANALYSIS_NAMED_STACKS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

/// Shortens a long name of a function: leaves out std::reference_wrapper, then template arguments,
/// from the innermost on, and the scope of a template. "..." stands for what is left out.
std::string short_function(const std::string& full_name);

/// Returns a text such as "`Loader::next` (loader.h:61)" or "`inflate` (libz.so.1)".
std::string shown_place(const source_place& place);
/// Returns the name of a function in which a thread runs; for a runtime of OpenMP, what it does.
std::string shown_work(const source_place& place);

/// A stack with names, the innermost call first. Contains inlined calls too.
using named_stack = std::vector<source_place>;

/// Looks up the calls at each place, and stores them in samples.names. Then they stay right if the
/// program is rebuilt, moved or removed. Does nothing if this was done before.
/// @param diagnostics  receives a message for each module that was built again.
void name_places(thread_samples& samples, diagnostic_log& diagnostics);

class named_stacks {
 public:
  /// @param samples  looks up the calls if this was not done before.
  explicit named_stacks(const thread_samples& samples);

  const named_stack& of(std::uint32_t stack) const { return stacks_[stack]; }

 private:
  std::vector<named_stack> stacks_;
};

/// Returns whether a call is in the module of the C library, the C++ library or the dynamic loader.
bool is_in_runtime_module(const source_place& place);

/// Returns whether a call belongs to the C or C++ library, or starts a program or thread.
bool is_of_runtime(const source_place& place);

/// Returns the call in which a running thread works: the innermost one of a function that belongs
/// to the program. The functions of libraries that it calls are named in source_place::callee, and
/// inlined functions count for the function that contains them.
/// @param program  path of the thread's program; libraries of the system do not belong to it.
source_place working_place(const named_stack& stack, const std::string& program);

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
  std::string file;                 ///< file that contains the lambda; "" if unknown
  int line = 0;                     ///< first line of the lambda; 0: unknown
  bool in_unnamed_library = false;  ///< whether it is a function of a library without symbols
};

thread_start start_of_thread(const named_stack& stack);

/// Returns the functions of the program that are active in a thread, the outermost first, without
/// the one with which it began; empty if the stack does not reach the beginning of the thread.
std::vector<const source_place*> calls_from_start(const named_stack& stack);

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
