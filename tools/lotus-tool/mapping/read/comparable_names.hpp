// Functions and modules as two tools spell them.
#ifndef LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP
#define LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// A demangled function without its parameters, return type and "[clone …]", as VTune and perf
/// show it: "double img::scale<int>(int)" is "img::scale<int>".
std::string bare_function(std::string_view function);

/// A symbol without its version: "memcpy" of "memcpy@@GLIBC_2.14". "read@plt" and VTune's
/// "func@0x3fd7b0" have none.
std::string_view without_version(std::string_view symbol) noexcept;

/// A function as it is compared: bare, and without a version and clone suffixes such as ".isra.0"
/// that not every tool prints.
std::string comparable_function(std::string_view function);

/// Stands for the functions of a stripped module.
inline constexpr std::string_view no_symbols = "[no symbols]";

/// Whether a module, as it is compared, is a program: no library, and nothing of the kernel's.
bool is_program(std::string_view module);

/// A module as it is compared: the file's name, so-version left out ("libjpeg.so.9.5.0" is
/// "libjpeg.so"). Empty for "[Unknown]".
std::string comparable_module(std::string_view module);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP
