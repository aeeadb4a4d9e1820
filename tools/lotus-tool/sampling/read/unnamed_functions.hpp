// Finds out about functions without a symbol, as most are in a stripped program or library.
#ifndef LOTUS_TOOL_SAMPLING_READ_UNNAMED_FUNCTIONS_HPP
#define LOTUS_TOOL_SAMPLING_READ_UNNAMED_FUNCTIONS_HPP

#include <gelf.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lotus::tool {

/// The functions of an ELF file, from what stays in it when it is stripped: its unwind table says
/// where functions begin, and the virtual tables of C++ classes point to virtual functions and, by
/// way of the type information, to the names of classes. All addresses are those of the file. Not
/// thread-safe.
class unnamed_functions {
 public:
  /// @param elf  the file; must outlive this object. null: nothing is known.
  explicit unnamed_functions(Elf* elf) : elf_(elf) {}

  /// Returns where the function at an address begins; 0 if unknown.
  std::uint64_t begin_of(std::uint64_t address);

  /// Returns the name of the virtual function that begins at an address, such as
  /// "Decoder::(virtual function 2)", with the class that first defines it; "" if it is in no
  /// virtual table, or in those of several classes that do not inherit it from one of them. The
  /// function with which a std::thread of libstdc++ begins is virtual, and has the name that its
  /// symbol would have.
  std::string virtual_name(std::uint64_t begin);

 private:
  struct data_section {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    const char* data = nullptr;
    bool may_point = false;  ///< whether it may contain addresses that no relocation changes
  };
  struct class_info {
    std::string name;        ///< mangled
    std::uint64_t base = 0;  ///< address of the type information of its first base; 0: unknown
  };
  struct table_entry {
    std::uint64_t type = 0;  ///< address of the type information
    std::size_t index = 0;   ///< index in the virtual table
  };

  void read_begins();
  void read_sections();
  void read_relocations();
  void read_pointers();
  void read_virtual_tables();
  bool is_begin(std::uint64_t address) const;
  std::optional<std::uint64_t> word_at(std::uint64_t address) const;
  std::string text_at(std::uint64_t address) const;
  bool describes_type(std::uint64_t table) const;
  void add_table(std::uint64_t first, std::uint64_t type);
  bool is_derived(std::uint64_t type, std::uint64_t from) const;

  Elf* elf_;
  bool begins_read_ = false;
  bool tables_read_ = false;
  std::vector<std::uint64_t> begins_;                 // of all functions, sorted
  std::vector<data_section> sections_;                // with data, sorted by address
  std::map<std::uint64_t, std::uint64_t> relocated_;  // words that are addresses, by their address
  std::vector<std::uint64_t> type_tables_;     // what the first word of type information may be
  std::map<std::uint64_t, class_info> types_;  // by address
  std::multimap<std::uint64_t, table_entry> entries_;  // of all virtual tables, by function
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_UNNAMED_FUNCTIONS_HPP
