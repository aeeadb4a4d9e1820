// Finds the function at an address of a module.
#ifndef LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP
#define LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/diagnostics.hpp"

namespace lotus::tool {

/// A function, and the function that was inlined at that address.
struct code_place {
  std::string function;  ///< bare_function(); "[no symbols]" if it is unknown
  std::string module;    ///< path
  std::string inlined;  ///< the innermost inlined function; empty if there is none or no debug info
};

/// Reads ELF symbols and debug info with elfutils' libdw: static functions, inlined functions, and
/// separate debug files (by build id, next to the module or below /usr/lib/debug). Looks up every
/// address only once. Not thread-safe.
class symbol_source {
 public:
  /// @param diagnostics  gets one message for each module that is stripped, unreadable or changed;
  ///     must outlive this object.
  explicit symbol_source(diagnostic_log& diagnostics);
  symbol_source(const symbol_source&) = delete;
  symbol_source& operator=(const symbol_source&) = delete;
  ~symbol_source();

  /// @param file_offset  of the instruction in the module's file, in bytes.
  /// @param seen_ns  when the program used the module, since the epoch: a file that has changed
  ///     since then may have other functions at this offset.
  /// @return a reference that is valid as long as this object.
  const code_place& at(const std::string& module_path, std::uint64_t file_offset,
                       std::int64_t seen_ns);

 private:
  class module;

  diagnostic_log& said_;
  std::map<std::string, std::unique_ptr<module>> modules_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP
