#include "mapping/read/function_report.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "mapping/read/table_text.hpp"

namespace lotus::tool {
namespace {

/// Removes modifiers: "cpu-clock:u" becomes "cpu-clock", "cpu_core/cycles/u" becomes "cycles".
std::string_view without_modifiers(std::string_view event) noexcept {
  const std::size_t slash = event.find('/');
  if (slash != std::string_view::npos) event.remove_prefix(slash + 1);
  return event.substr(0, event.find_first_of(":/"));
}

bool is_cycles(std::string_view event) noexcept {
  event = without_modifiers(event);
  return event == "cycles" || event == "cpu-cycles";
}

}  // namespace

bool is_cpu_time(std::string_view event) noexcept {
  event = without_modifiers(event);
  return event == "cpu-clock" || event == "task-clock";
}

std::size_t index_of_time_event(const std::vector<std::string>& events) noexcept {
  for (const auto is_time : {is_cpu_time, is_cycles}) {
    const auto at = std::find_if(events.begin(), events.end(), is_time);
    if (at != events.end()) return static_cast<std::size_t>(at - events.begin());
  }
  return 0;
}

namespace {

constexpr std::string_view anonymous = "(anonymous namespace)";

bool stands_at(std::string_view text, std::size_t at, std::string_view what) noexcept {
  return text.substr(at, what.size()) == what;
}

bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Returns the position after the operator's name, such as "operator<<", that begins at `at`;
/// returns `at` if there is none. The caller skips such names, because characters such as '<' in
/// them are not brackets.
std::size_t behind_operator(std::string_view name, std::size_t at) noexcept {
  constexpr std::string_view word = "operator";
  // The search takes the first match, so longer operators must come before their own prefixes.
  constexpr std::array<std::string_view, 19> with_brackets{
      "()", "[]",  "<=>", "<<=",    "<<",   "<=",        "<",       ">>=",       ">>",   ">=",
      ">",  "->*", "->",  " new[]", " new", " delete[]", " delete", " co_await", "\"\" "};
  if (!stands_at(name, at, word) || (at > 0 && is_word(name[at - 1]))) return at;
  const std::size_t signs = at + word.size();
  if (signs < name.size() && is_word(name[signs])) return at;
  for (const std::string_view known : with_brackets) {
    const std::size_t behind = signs + known.size();
    const bool longer_word = is_word(known.back()) && behind < name.size() && is_word(name[behind]);
    if (!stands_at(name, signs, known) || longer_word) continue;
    // In "operator< <int>", a blank separates the operator from its template arguments.
    return stands_at(name, behind, " <") ? behind + 1 : behind;
  }
  return signs;
}

/// Returns the position after the bracket that closes the one at `open`, or the end of `name`.
std::size_t behind_brackets(std::string_view name, std::size_t open) {
  constexpr std::string_view opening = "(<[{";
  constexpr std::string_view closing = ")>]}";
  std::string expected;
  for (std::size_t i = open; i < name.size();) {
    if (const std::size_t behind = behind_operator(name, i); behind != i) {
      i = behind;
      continue;
    }
    const char c = name[i++];
    // In "((1)<(2))", '<' compares two numbers and is no bracket. The same holds for '>' if no '<'
    // is open.
    const bool in_expression = !expected.empty() && expected.back() == ')';
    const bool compares = c == '<' && in_expression && name[i - 2] == ')';
    const std::size_t kind = opening.find(c);
    if (kind != std::string_view::npos && !compares) {
      expected += closing[kind];
    } else if (!expected.empty() && c == expected.back()) {
      expected.pop_back();
      if (expected.empty()) return i;
    }
  }
  return name.size();
}

/// Returns the position of the parameters of a conversion operator such as "operator unsigned
/// long()", whose type may contain blanks.
std::size_t behind_conversion(std::string_view name, std::size_t at) {
  while (at < name.size() && (name[at] != '(' || stands_at(name, at, anonymous))) {
    const bool group = name[at] == '<' || name[at] == '(';
    at = group ? behind_brackets(name, at) : at + 1;
  }
  return at;
}

/// Returns the position after qualifiers that may follow parameters, such as " const &".
std::size_t behind_qualifiers(std::string_view name, std::size_t at) noexcept {
  for (const std::string_view one : {" const", " volatile", " &&", " &", "&&", "&"}) {
    if (stands_at(name, at, one)) at += one.size();
  }
  return at;
}

/// Whether the '(' at `at` does not begin parameters but belongs to a name or a type, as in
/// "(anonymous namespace)", "decltype(auto)", and callgrind's "(below main)".
bool is_no_parameters(std::string_view name, std::size_t at, std::size_t name_begin) noexcept {
  const bool type = ends_with(trimmed(name.substr(0, at)), "decltype");
  return type || stands_at(name, at, anonymous) || at == name_begin;
}

/// Whether the '(' at `at` encloses a function's name because the function returns a pointer or
/// reference to a function, as in "void (*f(int))(char)".
bool is_declarator(std::string_view name, std::size_t at) noexcept {
  return at > 0 && name[at - 1] == ' ' && (stands_at(name, at, "(*") || stands_at(name, at, "(&"));
}

}  // namespace

std::string bare_function(std::string_view function) {
  function = trimmed(function.substr(0, function.find(" [clone ")));
  // Position at which the name begins; a template's return type comes before it.
  std::size_t begin = 0;
  for (std::size_t i = 0; i < function.size();) {
    if (const std::size_t behind = behind_operator(function, i); behind != i) {
      i = stands_at(function, behind, " ") ? behind_conversion(function, behind) : behind;
      continue;
    }
    const char c = function[i];
    if (c == '(' && is_declarator(function, i)) {
      const std::size_t end = behind_brackets(function, i);
      return bare_function(function.substr(i + 2, end - i - 3));
    }
    if (c == '(' && !is_no_parameters(function, i, begin)) {
      // The name of a lambda or local class contains the parameters of the enclosing function, so
      // continue if "::" follows them.
      const std::size_t end = behind_qualifiers(function, behind_brackets(function, i));
      if (!stands_at(function, end, "::")) return std::string(function.substr(begin, i - begin));
      i = end;
    } else if (c == '(' || c == '<' || c == '[' || c == '{') {
      i = behind_brackets(function, i);
    } else {
      ++i;
      if (c == ' ') begin = i;
    }
  }
  return std::string(function.substr(begin));
}

std::string_view without_version(std::string_view symbol) noexcept {
  const std::size_t at = symbol.find('@');
  if (at == std::string_view::npos || at == 0) return symbol;
  const std::size_t version = symbol.find_first_not_of('@', at);
  // In a symbol such as memcpy@@GLIBC_2.14, the text after the '@' is a version. Versions begin
  // with a letter, as in GLIBC_2.14, LIBJPEG_9.0 and Base.
  const bool begins =
      version != std::string_view::npos && is_word(symbol[version]) && symbol[version] > '9';
  return begins && symbol.substr(version) != "plt" ? symbol.substr(0, at) : symbol;
}

std::string comparable_function(std::string_view function) {
  // For a function in a module without symbols, perf prints an address instead of a name.
  if (function.substr(0, 2) == "0x" &&
      function.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos) {
    return std::string(no_symbols);
  }
  // The name of a C function and a mangled name may end in ".isra.0", ".constprop.1", ".cold", or
  // ".part.2".
  constexpr std::array<std::string_view, 6> suffixes{".isra.", ".constprop.", ".part.",
                                                     ".cold",  ".lto_priv.",  ".llvm."};
  for (const std::string_view suffix : suffixes) {
    const std::size_t at = function.find(suffix);
    if (at != std::string_view::npos && at > 0) function = function.substr(0, at);
  }
  return bare_function(without_version(function));
}

bool is_program(std::string_view module) {
  return !module.empty() && module.front() != '[' && module.find(".so") == std::string_view::npos;
}

std::string comparable_module(std::string_view module) {
  const std::size_t slash = module.rfind('/');
  if (slash != std::string_view::npos) module.remove_prefix(slash + 1);
  if (module == "[Unknown]" || module == "[unknown]") return {};
  const std::size_t so = module.find(".so.");
  if (so != std::string_view::npos) module = module.substr(0, so + 3);
  // In "libc-2.31.so", the version comes before the extension.
  const std::size_t dash = module.rfind('-');
  constexpr std::string_view extension = ".so";
  if (dash != std::string_view::npos && dash > 0 && module.size() > dash + 1 + extension.size() &&
      ends_with(module, extension)) {
    const std::string_view version =
        module.substr(dash + 1, module.size() - extension.size() - dash - 1);
    if (version.find_first_not_of("0123456789.") == std::string_view::npos) {
      return std::string(module.substr(0, dash)) + std::string(extension);
    }
  }
  return std::string(module);
}

std::string function_key(std::string_view function, std::string_view module) {
  const std::size_t slash = module.rfind('/');
  if (slash != std::string_view::npos) module.remove_prefix(slash + 1);
  return std::string(function) + '|' + std::string(module);
}

bool is_own_function(std::string_view function) {
  // The functions of Lotus are in the namespace lotus::v<major>_<minor>. bare_function() removes a
  // return type, which may precede this namespace.
  constexpr std::string_view start = "lotus::v";
  const std::string name = bare_function(function);
  return name.compare(0, start.size(), start) == 0 && name.size() > start.size() &&
         name[start.size()] >= '0' && name[start.size()] <= '9';
}

}  // namespace lotus::tool
