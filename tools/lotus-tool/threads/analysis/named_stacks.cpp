#include "threads/analysis/named_stacks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/printable.hpp"
#include "mapping/read/comparable_names.hpp"
#include "sampling/read/symbols.hpp"

namespace lotus::tool {
namespace {

bool begins(std::string_view text, std::string_view start) noexcept {
  return text.substr(0, start.size()) == start;
}

template <class Starts>
bool begins_with_any(std::string_view text, const Starts& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [text](std::string_view start) { return begins(text, start); });
}

bool is_of_cpp_library(std::string_view function) {
  static constexpr std::array<std::string_view, 7> starts{
      "std::",      "__gnu_cxx::",  "__gthread_",     "void std::",
      "bool std::", "operator new", "operator delete"};
  return begins_with_any(function, starts);
}

/// Whether the module is the C or C++ library, or the loader.
bool is_runtime_module(std::string_view path) {
  static constexpr std::array<std::string_view, 9> starts{"libc.so",    "libc-",     "ld-",
                                                          "libpthread", "libstdc++", "libc++",
                                                          "libgcc_s",   "libm.so",   "librt.so"};
  return begins_with_any(file_name(path), starts);
}

/// Functions of the C library in programs that are linked statically.
bool is_c_function(std::string_view function) {
  static constexpr std::array<std::string_view, 12> starts{
      "__libc_",    "__pthread_",        "pthread_",    "__lll_",
      "___pthread", "__futex",           "futex_",      "__new_sem",
      "sem_",       "__clock_nanosleep", "__nanosleep", "execute_native_thread"};
  static constexpr std::array<std::string_view, 25> names{
      "_start",   "start_thread", "clone",      "clone3",    "__clone",
      "__clone3", "thread_start", "syscall",    "read",      "__read",
      "write",    "__write",      "pread64",    "poll",      "__poll",
      "select",   "usleep",       "sleep",      "nanosleep", "wait4",
      "__wait4",  "waitpid",      "epoll_wait", "__select",  "clock_nanosleep"};
  return begins_with_any(function, starts) ||
         std::find(names.begin(), names.end(), function) != names.end();
}

/// Returns "main" of "main::{lambda(int)#1}::operator()", or of "main::$_0::operator()" of clang;
/// "" of names without a lambda. A lambda among template arguments does not count.
std::string owner_of_lambda(std::string_view function) {
  const auto is_lambda_at = [function](std::size_t at) {
    return begins(function.substr(at), "{lambda") || begins(function.substr(at), "$_");
  };
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    if (function[i] == '<') ++depth;
    if (function[i] == '>') --depth;
    if (depth != 0 || !is_lambda_at(i)) continue;
    std::string_view owner = function.substr(0, i);
    if (owner.size() >= 2 && owner.substr(owner.size() - 2) == "::") owner.remove_suffix(2);
    return bare_function(owner);
  }
  return {};
}

/// Returns a function's name without the version and prefix of glibc's internal names.
std::string shown_function(const source_frame& frame, const std::string& module) {
  std::string_view function = frame.function;
  if (function == no_symbols) {
    std::array<char, 32> begin{};
    std::snprintf(begin.data(), begin.size(), "+0x%llx",  // NOLINT(*-vararg)
                  static_cast<unsigned long long>(frame.begin));
    return std::string(file_name(module)) + (frame.begin != 0 ? begin.data() : "");
  }
  constexpr std::string_view internal = "__GI_";
  if (begins(function, internal)) function.remove_prefix(internal.size());
  return std::string(without_version(function));
}

/// Returns the first argument of the std::tuple in the name of a function of std::thread, which is
/// the type of the function object that the thread calls; "" if there is none.
std::string_view function_object_of(std::string_view function) {
  constexpr std::string_view tuple = "std::tuple<";
  const std::size_t at = function.find(tuple);
  if (at == std::string_view::npos) return {};
  const std::string_view arguments = function.substr(at + tuple.size());
  int depth = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const char c = arguments[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    const bool ends = depth == 0 && (c == ',' || c == '>');
    if (ends) return arguments.substr(0, i);
    if (c == '>' || c == ')' || c == '}') --depth;
  }
  return {};
}

}  // namespace

std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

std::string short_function(const std::string& function) {
  constexpr std::size_t long_name = 60;
  if (function.size() <= long_name) return function;
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    // "->" and the operators with < or > in their names open and close nothing.
    const bool is_operator = text.size() >= 8 && text.compare(text.size() - 8, 8, "operator") == 0;
    if (depth == 0 && is_operator) return function;
    if (c == '>' && (i == 0 || function[i - 1] != '-') && --depth < 0) return function;
    if (depth == 0) text += c;
    if (c == '<' && depth++ == 0) text += "...";
  }
  return depth == 0 ? text : function;
}

std::string shown_place(const source_place& place) {
  const std::string owner = short_function(owner_of_lambda(place.function));
  std::string text = !owner.empty()                   ? "a lambda in `" + owner + '`'
                     : place.function == "operator()" ? "a lambda"
                                                      : '`' + short_function(place.function) + '`';
  if (!place.file.empty() && place.line > 0) {
    text.append(" (").append(file_name(place.file)).append(1, ':');
    text += std::to_string(place.line) + ')';
  } else if (place.has_name && !is_program(comparable_module(place.module))) {
    text.append(" (").append(file_name(place.module)).append(1, ')');
  }
  return printable_line(text);
}

named_stacks::named_stacks(const thread_samples& samples) {
  // Missing symbols are not reported, because most programs use stripped libraries.
  diagnostic_log silent = diagnostic_log::silenced();
  symbol_source symbols(silent);
  std::vector<named_stack> places;
  for (const code_offset& place : samples.places) {
    const std::string& module = samples.modules[place.module];
    named_stack calls;
    for (source_frame& frame : symbols.frames_at(module, place.offset, samples.time_ns)) {
      calls.push_back({shown_function(frame, module), module, std::move(frame.file), frame.line,
                       frame.function != no_symbols});
    }
    places.push_back(std::move(calls));
  }
  for (const sampled_stack& stack : samples.stacks) {
    named_stack named;
    for (const std::uint32_t place : stack) {
      named.insert(named.end(), places[place].begin(), places[place].end());
    }
    stacks_.push_back(std::move(named));
  }
}

bool is_lambda(const source_place& place) {
  return place.function == "operator()" || !owner_of_lambda(place.function).empty();
}

std::string class_of(const std::string& function) {
  int depth = 0;
  for (std::size_t i = function.size(); i-- > 1;) {
    const char c = function[i];
    if (c == '>' || c == ')') ++depth;
    if (c == '<' || c == '(') --depth;
    if (depth == 0 && c == ':' && function[i - 1] == ':') return function.substr(0, i - 1);
  }
  return {};
}

bool is_of_runtime(const source_place& place) {
  return is_runtime_module(place.module) || is_of_cpp_library(place.function) ||
         is_c_function(place.function);
}

std::size_t working_call(const named_stack& stack) {
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (!is_of_cpp_library(stack[i].function)) return i;
  }
  return 0;
}

std::size_t waiting_call(const named_stack& stack) {
  std::size_t unnamed = stack.size();
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (is_of_runtime(stack[i])) continue;
    if (stack[i].has_name) return i;
    if (unnamed == stack.size()) unnamed = i;
  }
  return unnamed < stack.size() ? unnamed : 0;
}

std::string start_of_thread(const named_stack& stack) {
  bool reached = false;
  for (auto call = stack.rbegin(); call != stack.rend(); ++call) {
    if (begins(call->function, "std::thread::_State_impl")) {
      const std::string owner = owner_of_lambda(function_object_of(call->function));
      if (!owner.empty()) return "a lambda in " + owner;
    }
    if (is_of_runtime(*call)) {
      reached = true;
      continue;
    }
    if (!reached) return {};
    const std::string owner = owner_of_lambda(call->function);
    if (!owner.empty()) return "a lambda in " + owner;
    return call->function;
  }
  return {};
}

}  // namespace lotus::tool
