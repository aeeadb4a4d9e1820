// Finds the function at an address of a module (a program or library).
#ifndef LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP
#define LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"

namespace lotus::tool {

/// The function at an address, and the innermost function inlined at the address.
struct code_place {
  std::string function;  ///< name as from bare_function(); "[no symbols]" if unknown
  std::string module;    ///< path of the module
  std::string inlined;   ///< innermost inlined function; "" if there is none or no debug info
};

/// A frame of a call stack, possibly of an inlined call: a function, and the source line that it
/// was executing.
struct source_frame {
  std::string function;  ///< as code_place::function
  std::string file;      ///< as in the debug info; "" if there is none
  int line = 0;          ///< 0: unknown
  /// Address in the module at which the function begins, only for a function without a name; 0:
  /// unknown.
  std::uint64_t begin = 0;
  // The next members describe the definition of `function`, according to its debug info.
  std::string defined_in;   ///< file that defines the function; "" if unknown
  int defined_at = 0;       ///< first line of the function; 0: unknown
  bool has_object = false;  ///< whether the function is known to have a `this`
};

/// Reads ELF symbols and debug info with elfutils' libdw: static functions, inlined functions, and
/// separate debug files (by build id, next to the module or below /usr/lib/debug). Looks up every
/// address only once. Not thread-safe.
class symbol_source {
 public:
  /// @param diagnostics  receives one message for each module that is stripped, unreadable or
  /// built again; must outlive this object.
  /// @param missing  whether to report modules that are stripped or cannot be read.
  explicit symbol_source(diagnostic_log& diagnostics, bool missing = true);
  symbol_source(const symbol_source&) = delete;
  symbol_source& operator=(const symbol_source&) = delete;
  ~symbol_source();

  /// @param file_offset  position of the instruction in the module's file, in bytes.
  /// @param build  build id of the module that the program used; "": unknown. A file with another
  /// one may contain another function at this offset, so its functions have no names.
  /// @return the function; the reference is valid as long as this object exists.
  const code_place& at(const std::string& module_path, std::uint64_t file_offset,
                       const std::string& build);

  /// Returns the frames at an address: first those of inlined calls, from the innermost to the
  /// outermost, and last that of the function that contains the address. See at().
  std::vector<source_frame> frames_at(const std::string& module_path, std::uint64_t file_offset,
                                      const std::string& build);

 private:
  class module;

  module& find(const std::string& module_path);

  diagnostic_log& diagnostics_;
  bool missing_;
  std::map<std::string, std::unique_ptr<module>> modules_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SYMBOLS_HPP
