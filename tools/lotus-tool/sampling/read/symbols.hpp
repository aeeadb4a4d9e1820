// Which function an address in a module belongs to.
#ifndef LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP
#define LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/diagnostics.hpp"

namespace lotus::tool {

/// A function, and what was inlined into it there.
struct code_place {
  std::string function;  ///< bare_function(); "[no symbols]" where none is known
  std::string module;    ///< path
  std::string inlined;   ///< the innermost inlined function; empty when none, or without debug info
};

/// Reads ELF symbols and debug info with elfutils' libdw: static functions, separate debug files
/// (by build id, and beside the module or below /usr/lib/debug), inlined functions. Every address
/// is looked up once. Not thread-safe.
class symbol_source {
 public:
  /// @param diagnostics  told once of each module that is stripped, cannot be read or has changed;
  /// must outlive this.
  explicit symbol_source(diagnostic_log& diagnostics);
  symbol_source(const symbol_source&) = delete;
  symbol_source& operator=(const symbol_source&) = delete;
  ~symbol_source();

  /// @param file_offset  of the instruction in the module's file, in bytes.
  /// @param seen_ns  when the program had the module, since the epoch: a file that has changed
  /// since may have other functions there.
  /// Valid as long as this.
  const code_place& at(const std::string& module_path, std::uint64_t file_offset,
                       std::int64_t seen_ns);

 private:
  class module;

  diagnostic_log& said_;
  std::map<std::string, std::unique_ptr<module>> modules_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP
