#include "threads/analysis/named_stacks.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/printable.hpp"
#include "mapping/read/function_report.hpp"
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

/// Returns whether the module is the C library, the C++ library or the dynamic loader.
bool is_runtime_module(std::string_view path) {
  static constexpr std::array<std::string_view, 9> starts{"libc.so",    "libc-",     "ld-",
                                                          "libpthread", "libstdc++", "libc++",
                                                          "libgcc_s",   "libm.so",   "librt.so"};
  return begins_with_any(file_name(path), starts);
}

/// Returns whether a function is one of the C library. Needed for programs that are linked
/// statically, which have no separate C library.
bool is_c_function(std::string_view function) {
  static constexpr std::array<std::string_view, 14> starts{
      "__libc_",    "__pthread_",        "pthread_",    "__lll_",
      "___pthread", "__futex",           "futex_",      "__new_sem",
      "sem_",       "__clock_nanosleep", "__nanosleep", "execute_native_thread",
      "__syscall",  "__internal_syscall"};
  static constexpr std::array<std::string_view, 25> names{
      "_start",   "start_thread", "clone",      "clone3",    "__clone",
      "__clone3", "thread_start", "syscall",    "read",      "__read",
      "write",    "__write",      "pread64",    "poll",      "__poll",
      "select",   "usleep",       "sleep",      "nanosleep", "wait4",
      "__wait4",  "waitpid",      "epoll_wait", "__select",  "clock_nanosleep"};
  return begins_with_any(function, starts) ||
         std::find(names.begin(), names.end(), function) != names.end();
}

/// The position and the name of a lambda in the name of a function.
struct found_lambda {
  std::size_t begin = 0;
  std::string_view name;  ///< "{lambda(int)#1}", or "$_0" of clang
};

/// Returns the length of the name of a lambda at the beginning of a text; 0 if there is none.
std::size_t lambda_length(std::string_view text) {
  if (begins(text, "$_")) return std::min(text.size(), text.find_first_not_of("0123456789", 2));
  if (!begins(text, "{lambda")) return 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  return 0;
}

/// Returns the lambdas in a function's name, the outermost first: those of
/// "main::{lambda(int)#1}::operator()", or of "main::$_0::operator()" of clang. A lambda among
/// template arguments does not count.
std::vector<found_lambda> lambdas_of(std::string_view function) {
  std::vector<found_lambda> found;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    if (function[i] == '<') ++depth;
    if (function[i] == '>') --depth;
    const std::size_t length = depth == 0 ? lambda_length(function.substr(i)) : 0;
    if (length == 0) continue;
    found.push_back({i, function.substr(i, length)});
    i += length - 1;
  }
  return found;
}

/// Returns the name of the function that contains a lambda, such as "main".
std::string owner_of(std::string_view function, const found_lambda& lambda) {
  std::string_view owner = function.substr(0, lambda.begin);
  if (owner.size() >= 2 && owner.substr(owner.size() - 2) == "::") owner.remove_suffix(2);
  return bare_function(owner);
}

/// Returns the name of the function that contains the outermost lambda in a function's name; "" for
/// names without a lambda.
std::string owner_of_lambda(std::string_view function) {
  const std::vector<found_lambda> found = lambdas_of(function);
  return found.empty() ? std::string() : owner_of(function, found.front());
}

/// Returns the innermost lambda in a function's name, described as the function with which a thread
/// began. The symbol of the result is "" if the name contains no lambda, or if the function belongs
/// to the C++ library.
thread_start start_in_lambda(std::string_view function) {
  const std::vector<found_lambda> found = lambdas_of(function);
  if (found.empty() || is_of_cpp_library(function)) return {};
  const found_lambda& last = found.back();
  thread_start start;
  start.symbol = function.substr(0, last.begin + last.name.size());
  start.function = owner_of(function, found.front());
  start.lambda = last.name;
  return start;
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
  // Compilers make variants of functions, such as "read.constprop.0".
  static constexpr std::array<std::string_view, 5> variants{".constprop.", ".isra.", ".part.",
                                                            ".cold", "._omp_fn."};
  for (const std::string_view variant : variants) {
    function = function.substr(0, function.find(variant));
  }
  return std::string(without_version(function));
}

/// Returns the type of the function object that a thread runs, from the name of a function with
/// which std::thread calls it: the first argument of a std::tuple or, with libc++, the argument
/// after the thread's data. Returns "" if there is none.
std::string_view function_object_of(std::string_view function) {
  constexpr std::string_view tuple = "tuple<";
  constexpr std::string_view data = "std::__1::unique_ptr<std::__1::__thread_struct";
  const std::size_t at = function.find(tuple);
  if (at == std::string_view::npos) return {};
  const std::string_view arguments = function.substr(at + tuple.size());
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const char c = arguments[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (depth == 0 && (c == ',' || c == '>')) {
      const std::string_view argument = arguments.substr(begin, i - begin);
      if (c == '>' || !begins(argument, data)) return argument;
      begin = std::min(arguments.find_first_not_of(' ', i + 1), arguments.size());
    }
    if (c == '>' || c == ')' || c == '}') --depth;
  }
  return {};
}

}  // namespace

std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

namespace {

/// Returns a function's name with "..." instead of template arguments that are nested more deeply
/// than `most`. Returns the whole name if it contains an operator such as operator<, because the
/// '<' of that begins no template arguments.
std::string without_nested(const std::string& function, int most) {
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    const bool is_operator = text.size() >= 8 && text.compare(text.size() - 8, 8, "operator") == 0;
    if (depth == 0 && is_operator) return function;
    // The '>' of "->" ends no arguments.
    if (c == '>' && (i == 0 || function[i - 1] != '-') && --depth < 0) return function;
    if (depth <= most) text += c;
    if (c == '<' && depth++ == most) text += "...";
  }
  return depth == 0 ? text : function;
}

/// Returns a name with "X" instead of "std::reference_wrapper<X>", with which programs often start
/// threads.
std::string without_wrappers(std::string name) {
  constexpr std::string_view wrapper = "std::reference_wrapper<";
  for (std::size_t at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper, at)) {
    int depth = 1;
    std::size_t end = at + wrapper.size();
    while (end < name.size() && (depth += name[end] == '<' ? 1 : name[end] == '>' ? -1 : 0) > 0) {
      ++end;
    }
    if (end == name.size()) break;
    name.erase(end, 1).erase(at, wrapper.size());
  }
  return name;
}

}  // namespace

std::string short_function(const std::string& full_name) {
  constexpr std::size_t long_name = 60;
  if (full_name.size() <= long_name) return full_name;
  std::string function = without_wrappers(full_name);
  if (function.size() <= long_name) return function;
  // The innermost arguments say least, and then the class or namespace of the template.
  const std::size_t scope = function.rfind("::", function.find('<'));
  const bool has_scope = scope != std::string::npos && scope < function.find('<');
  const std::string inner = has_scope ? "..." + function.substr(scope) : function;
  for (const std::string& name : {function, inner}) {
    for (const int most : {3, 2, 1}) {
      std::string text = without_nested(name, most);
      if (text.size() <= long_name) return text;
    }
  }
  return without_nested(function, 0);
}

std::string shown_place(const source_place& place) {
  const std::string owner = short_function(owner_of_lambda(place.function));
  std::string text = !owner.empty()                   ? "a lambda in `" + owner + '`'
                     : place.function == "operator()" ? "a lambda"
                                                      : '`' + short_function(place.function) + '`';
  std::string where;
  if (!place.file.empty() && place.line > 0) {
    where = std::string(file_name(place.file)) + ':' + std::to_string(place.line);
  } else if (place.has_name && !is_program(comparable_module(place.module))) {
    where = file_name(place.module);
  }
  if (!place.callee.empty()) {
    where.append(where.empty() ? "in " : ", in ").append(short_function(place.callee));
  }
  return printable_line(where.empty() ? text : text + " (" + where + ')');
}

std::string shown_work(const source_place& place) {
  // The runtime of OpenMP itself runs while it shares out the iterations of a loop, and while its
  // threads wait for work or for each other without sleeping. Samples cannot tell these apart.
  constexpr std::array<std::string_view, 3> runtimes{"libgomp.so", "libomp.so", "libiomp5.so"};
  const std::string library(file_name(place.module));
  if (!begins_with_any(library, runtimes)) return shown_place(place);
  return printable_line("the runtime of OpenMP (" + library +
                        "), which shares out work or spins until there is some");
}

void name_places(thread_samples& samples, diagnostic_log& diagnostics) {
  if (!samples.names.empty()) return;
  // Missing symbols are not reported, because most programs use stripped libraries.
  symbol_source symbols(diagnostics, false);
  samples.builds.resize(samples.modules.size());
  for (const code_offset& place : samples.places) {
    const std::string& module = samples.modules[place.module];
    named_stack calls;
    for (source_frame& frame :
         symbols.frames_at(module, place.offset, samples.builds[place.module])) {
      calls.push_back({shown_function(frame, module), module, std::move(frame.file), frame.line,
                       frame.function != no_symbols, std::move(frame.defined_in), frame.defined_at,
                       frame.has_object, true});
    }
    if (!calls.empty()) calls.back().is_inlined = false;
    samples.names.push_back(std::move(calls));
  }
}

named_stacks::named_stacks(const thread_samples& samples) {
  std::vector<named_stack> found;
  if (samples.names.empty()) {
    thread_samples places;
    places.modules = samples.modules;
    places.places = samples.places;
    places.builds = samples.builds;
    diagnostic_log silent = diagnostic_log::silenced();
    name_places(places, silent);
    found = std::move(places.names);
  }
  const std::vector<named_stack>& names = samples.names.empty() ? found : samples.names;
  for (const sampled_stack& stack : samples.stacks) {
    named_stack named;
    for (const std::uint32_t place : stack) {
      if (place < names.size()) named.insert(named.end(), names[place].begin(), names[place].end());
    }
    stacks_.push_back(std::move(named));
  }
}

bool is_lambda(const source_place& place) {
  return place.function == "operator()" || !owner_of_lambda(place.function).empty();
}

std::string containing_function(const std::string& function) {
  std::string owner = owner_of_lambda(function);
  return owner.empty() ? function : owner;
}

std::string class_of(const std::string& function) {
  const std::string name = containing_function(function);
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 1;) {
    const char c = name[i];
    if (c == '>' || c == ')') ++depth;
    if (c == '<' || c == '(') --depth;
    if (depth == 0 && c == ':' && name[i - 1] == ':') return name.substr(0, i - 1);
  }
  return {};
}

std::string without_arguments(const std::string& function) {
  std::string text;
  int depth = 0;
  for (const char c : function) {
    if (c == '>') --depth;
    if (depth <= 0) text += c;
    if (c == '<') ++depth;
  }
  return text;
}

bool is_in_runtime_module(const source_place& place) {
  return is_runtime_module(place.module);
}

bool is_of_runtime(const source_place& place) {
  return is_runtime_module(place.module) || is_of_cpp_library(place.function) ||
         is_c_function(place.function);
}

namespace {

/// Returns whether the call is of a function that belongs to the program: not to the runtime, to a
/// library of the system, or to a header of the compiler such as emmintrin.h.
bool is_own(const source_place& place, const std::string& program) {
  const bool is_of_system =
      place.module != program && (begins(place.module, "/usr/lib") || begins(place.module, "/lib"));
  const bool is_known = place.has_name || is_program(comparable_module(place.module));
  return is_known && !is_of_system && !begins(place.file, "/usr/") && !is_of_runtime(place);
}

/// Returns the name of a function of the C library without the suffixes of its variants: "memset"
/// for "__memset_avx512_unaligned_erms".
std::string plain_c_name(const std::string& function) {
  constexpr std::array<std::string_view, 6> variants{"_avx",  "_sse",       "_evex",
                                                     "_erms", "_unaligned", "_nocancel"};
  std::size_t end = function.size();
  for (const std::string_view variant : variants) end = std::min(end, function.find(variant));
  const std::size_t begin = end < function.size() ? function.find_first_not_of('_') : 0;
  return function.substr(begin, end - begin);
}

/// Returns the name of the library function that the call with this index calls, or of its library;
/// "" if it calls only functions of the C++ library, or none.
std::string callee_of(const named_stack& stack, std::size_t call) {
  std::string library;
  for (std::size_t i = call; i-- > 0;) {
    if (is_of_cpp_library(stack[i].function) || stack[i].is_inlined) continue;
    if (stack[i].module == stack[call].module && !is_of_runtime(stack[i])) continue;
    if (stack[i].has_name) return plain_c_name(stack[i].function);
    if (library.empty()) library = file_name(stack[i].module);
  }
  return library;
}

}  // namespace

source_place working_place(const named_stack& stack, const std::string& program) {
  std::size_t at = 0;
  while (at < stack.size() && !is_own(stack[at], program)) ++at;
  if (at == stack.size()) {  // no function of the program: one that its library exports, if any
    for (at = 0; at < stack.size() && (!stack[at].has_name || is_of_runtime(stack[at]));) ++at;
    const bool is_exported = at < stack.size();
    if (!is_exported) {
      for (at = 0; at + 1 < stack.size() && is_of_cpp_library(stack[at].function);) ++at;
    }
    source_place place = stack.empty() ? source_place{} : stack[at];
    if (is_exported) place.callee = callee_of(stack, at);
    return place;
  }
  std::size_t outer = at;
  for (std::size_t i = at; i < stack.size(); ++i) {
    if (is_own(stack[i], program)) outer = i;
    if (!stack[i].is_inlined) break;
  }
  // A thread's first function says little, so functions that are inlined into it count themselves.
  const bool is_first =
      std::none_of(stack.begin() + static_cast<std::ptrdiff_t>(outer) + 1, stack.end(),
                   [&](const source_place& call) { return is_own(call, program); });
  if (is_first && outer > at) {
    for (std::size_t i = outer; i-- > at;) {
      if (!is_own(stack[i], program)) continue;
      outer = i;
      break;
    }
  }
  // The caller of a function without a name says more, if it has a name.
  const auto named = std::find_if(
      stack.begin() + static_cast<std::ptrdiff_t>(outer), stack.end(),
      [&](const source_place& call) { return call.has_name && is_own(call, program); });
  source_place place = named == stack.end() ? stack[outer] : *named;
  place.callee = stack[outer].has_name ? callee_of(stack, outer) : stack[outer].function;
  if (named == stack.end() && !stack[outer].has_name) place.callee = callee_of(stack, outer);
  // An own function that is inlined into it may do most of its work.
  for (std::size_t i = outer; place.callee.empty() && i-- > at;) {
    if (is_own(stack[i], program)) place.callee = short_function(stack[i].function);
  }
  return place;
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

bool waits_for_future(const named_stack& stack) {
  static constexpr std::array<std::string_view, 6> starts{
      "std::__future_base", "std::__basic_future",         "std::__atomic_futex_unsigned",
      "std::future",        "std::__1::__assoc_sub_state", "std::__1::future"};
  return std::any_of(
      stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(waiting_call(stack)),
      [](const source_place& call) { return begins_with_any(call.function, starts); });
}

std::vector<const source_place*> calls_from_start(const named_stack& stack) {
  std::vector<const source_place*> calls;
  if (start_of_thread(stack).symbol.empty()) return calls;
  bool reached = false;
  for (auto call = stack.rbegin(); call != stack.rend(); ++call) {
    if (is_of_runtime(*call)) continue;
    if (reached && is_own(*call, "")) calls.push_back(&*call);
    reached = true;
  }
  return calls;
}

thread_start start_of_thread(const named_stack& stack) {
  bool reached = false;
  thread_start start;
  for (auto call = stack.rbegin(); call != stack.rend(); ++call) {
    if (is_of_runtime(*call)) {
      reached = true;
      if (start.symbol.empty()) start = start_in_lambda(function_object_of(call->function));
      continue;
    }
    if (!reached) return {};
    thread_start called = start_in_lambda(call->function);
    const bool is_same = start.symbol.empty() || call->function == "operator()" ||
                         (!called.symbol.empty() && called.function == start.function);
    if (start.symbol.empty()) start = std::move(called);
    if (start.symbol.empty()) {
      start.symbol = start.function = call->function;
      start.in_unnamed_library = !call->has_name && !is_program(comparable_module(call->module));
    } else if (is_same) {
      start.file = call->defined_in;
      start.line = call->defined_at;
    }
    return start;
  }
  return start;
}

}  // namespace lotus::tool
