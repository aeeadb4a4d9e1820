// Makes names of functions and modules comparable between tools that spell them differently.
#ifndef LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP
#define LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// A demangled function without its parameters, return type and "[clone …]", as VTune and perf show
/// it: "double img::scale<int>(int)" becomes "img::scale<int>".
std::string bare_function(std::string_view function);

/// A symbol without its version: "memcpy@@GLIBC_2.14" becomes "memcpy". "read@plt" and VTune's
/// "func@0x3fd7b0" have no version.
std::string_view without_version(std::string_view symbol) noexcept;

/// A function's name for comparisons: bare, without a version and without clone suffixes such as
/// ".isra.0", which not every tool prints.
std::string comparable_function(std::string_view function);

/// The name used for the functions of a stripped module.
inline constexpr std::string_view no_symbols = "[no symbols]";

/// Whether a module (a result of comparable_module()) is a program: neither a library nor part of
/// the kernel.
bool is_program(std::string_view module);

/// A module's name for comparisons: the file's name without the library's version
/// ("libjpeg.so.9.5.0" becomes "libjpeg.so"). Empty for "[Unknown]".
std::string comparable_module(std::string_view module);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP
