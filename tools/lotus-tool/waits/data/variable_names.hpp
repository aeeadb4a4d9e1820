// Finds the names of global variables by their addresses.
#ifndef LOTUS_TOOL_WAITS_DATA_VARIABLE_NAMES_HPP
#define LOTUS_TOOL_WAITS_DATA_VARIABLE_NAMES_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lotus::tool {

/// Reads the ELF symbols of modules (programs and libraries), of each module once. Not thread-safe.
class variable_names {
 public:
  /// @param distance  distance in bytes of an address from where the module's file is mapped.
  /// @return the demangled name of the variable at the address, followed by a text such as "+0x40"
  /// unless the address is the variable's first; or the module's name and the distance if unknown.
  std::string at(const std::string& module_path, std::uint64_t distance);

 private:
  struct variable {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::string name;
  };
  static std::vector<variable> read(const std::string& module_path);

  // By path of the module, sorted by address.
  std::map<std::string, std::vector<variable>> modules_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_DATA_VARIABLE_NAMES_HPP
