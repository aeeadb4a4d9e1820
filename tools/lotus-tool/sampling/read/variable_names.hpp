// Finds the name of the variable at an address of a module (a program or library).
#ifndef LOTUS_TOOL_SAMPLING_READ_VARIABLE_NAMES_HPP
#define LOTUS_TOOL_SAMPLING_READ_VARIABLE_NAMES_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded_reader.hpp"

namespace lotus::tool {

/// Returns a symbol or type of C++ as it is written in a program; "" if `mangled` is none.
std::string demangled(const std::string& mangled);

/// Finds the names of global variables in the symbol tables of modules (ELF programs and
/// libraries). Reads each module only once. Not thread-safe.
class variable_names {
 public:
  /// Returns the demangled name of the variable that contains the address, without the lambdas
  /// around it. If the variable begins before the address, a text such as " (+0x40)" follows.
  /// Returns "" if no variable is found.
  /// @param distance  distance in bytes between the address and the start of the mapped module.
  std::string find(const std::string& module_path, std::uint64_t distance);
  /// As find(), but returns the module's name and the distance if no variable is found.
  std::string at(const std::string& module_path, std::uint64_t distance);
  /// Returns the module's name and the distance.
  static std::string unknown(const std::string& module_path, std::uint64_t distance);
  /// Whether a name is one that unknown() returns for a place in a shared library.
  static bool is_place_in_library(const std::string& name) {
    return name.find(".so") != std::string::npos && name.find("+0x") != std::string::npos;
  }
  /// Removes what follows a variable's name, unless the names contain several parts of it.
  static void drop_distances(const std::vector<std::string*>& names);

 private:
  struct variable {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::string name;
  };
  static std::vector<variable> read(const std::string& module_path);

  // The key is the path of the module; variables are sorted by address.
  std::map<std::string, std::vector<variable>> modules_;
  std::unique_ptr<guarded_reader> demangler_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_VARIABLE_NAMES_HPP
