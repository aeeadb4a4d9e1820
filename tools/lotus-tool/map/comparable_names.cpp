#include "map/comparable_names.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "map/table_text.hpp"

namespace lotus::tool {
namespace {

/// Where "(anonymous namespace)" ends if it stands at `at`, else `at`.
std::size_t behind_anonymous(std::string_view name, std::size_t at) {
  constexpr std::string_view anonymous = "(anonymous namespace)";
  return name.substr(at, anonymous.size()) == anonymous ? at + anonymous.size() : at;
}

/// Where the parameters begin: the first '(' outside of template arguments that opens neither
/// "(anonymous namespace)" nor "operator()". Lambdas ("{lambda(int)#1}") are in braces.
std::size_t parameters_of(std::string_view name) {
  constexpr std::string_view call = "operator()";
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && c == 'o' && name.substr(i, call.size()) == call) {
      i += call.size() - 1;
      continue;
    }
    if (depth == 0 && c == 'o' && name.substr(i, 8) == "operator") {
      // operator<, operator<<, operator->, operator>>: no brackets.
      i += 7;
      while (i + 1 < name.size() && (name[i + 1] == '<' || name[i + 1] == '>')) {
        if (name[i] == '<' && name[i + 1] != '<') break;
        ++i;
      }
      continue;
    }
    if (c == '<' || c == '{' || c == '[') ++depth;
    if ((c == '>' && (i == 0 || name[i - 1] != '-')) || c == '}' || c == ']') --depth;
    if (c == '(' && depth == 0) {
      const std::size_t behind = behind_anonymous(name, i);
      if (behind == i) return i;
      i = behind - 1;
    }
  }
  return name.size();
}

}  // namespace

std::string bare_function(std::string_view function) {
  const std::size_t clone = function.find(" [clone ");
  if (clone != std::string_view::npos) function = function.substr(0, clone);
  function = trimmed(function.substr(0, parameters_of(function)));
  // What a template returns stands before its name.
  int depth = 0;
  for (std::size_t i = function.size(); i-- > 0;) {
    const char c = function[i];
    if (c == '>' || c == ')' || c == '}' || c == ']') ++depth;
    if (c == '<' || c == '(' || c == '{' || c == '[') --depth;
    if (c != ' ' || depth != 0) continue;
    constexpr std::string_view call = "operator";
    const std::string_view before = function.substr(0, i);
    const bool conversion =
        before.size() >= call.size() && before.substr(before.size() - call.size()) == call;
    if (!conversion) return std::string(function.substr(i + 1));
  }
  return std::string(function);
}

std::string comparable_function(std::string_view function) {
  // Where a module is stripped perf tells an address.
  if (function.substr(0, 2) == "0x" &&
      function.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos) {
    return std::string(no_symbols);
  }
  // A name in C or a mangled one may bear ".isra.0", ".constprop.1", ".cold", ".part.2".
  constexpr std::array<std::string_view, 6> suffixes{".isra.", ".constprop.", ".part.",
                                                     ".cold",  ".lto_priv.",  ".llvm."};
  for (const std::string_view suffix : suffixes) {
    const std::size_t at = function.find(suffix);
    if (at != std::string_view::npos && at > 0) function = function.substr(0, at);
  }
  return bare_function(function);
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
  // "libc-2.31.so": the version before the extension.
  const std::size_t dash = module.rfind('-');
  constexpr std::string_view extension = ".so";
  if (dash != std::string_view::npos && dash > 0 && module.size() > dash + 1 + extension.size() &&
      module.substr(module.size() - extension.size()) == extension) {
    const std::string_view version =
        module.substr(dash + 1, module.size() - extension.size() - dash - 1);
    if (version.find_first_not_of("0123456789.") == std::string_view::npos) {
      return std::string(module.substr(0, dash)) + std::string(extension);
    }
  }
  return std::string(module);
}

}  // namespace lotus::tool
