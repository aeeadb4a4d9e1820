// Makes names of functions and modules comparable, because profilers spell them differently.
#ifndef LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP
#define LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP

#include <string>
#include <string_view>

namespace lotus::tool {

/// Removes parameters, return type and "[clone …]" from a demangled name of VTune or perf: "double
/// img::scale<int>(int)" becomes "img::scale<int>".
std::string bare_function(std::string_view function);

/// Removes the version from a symbol: "memcpy@@GLIBC_2.14" becomes "memcpy". Does not change
/// "read@plt" and VTune's "func@0x3fd7b0", which have no version.
std::string_view without_version(std::string_view symbol) noexcept;

/// Returns the form of a function's name that is used for comparisons: like bare_function(), but
/// also without version and without suffixes such as ".isra.0", which not all profilers print.
std::string comparable_function(std::string_view function);

/// The name for all functions in a module without symbols.
inline constexpr std::string_view no_symbols = "[no symbols]";

/// Whether a module, given as a result of comparable_module(), is a program and neither a library
/// nor a part of the kernel.
bool is_program(std::string_view module);

/// Returns the form of a module's name that is used for comparisons: the file name without the
/// version ("libjpeg.so.9.5.0" becomes "libjpeg.so"). Empty for "[Unknown]".
std::string comparable_module(std::string_view module);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_COMPARABLE_NAMES_HPP
