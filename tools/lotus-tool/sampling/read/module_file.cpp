#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "mapping/read/function_report.hpp"
#include "sampling/read/module_questions.hpp"
#include "sampling/read/symbols.hpp"
#include "sampling/read/unnamed_functions.hpp"
#include "sampling/read/variable_names.hpp"

namespace lotus::tool {
namespace {

std::string function_named(const char* name) {
  const std::string symbol(without_version(name));
  // Otherwise a function of C with the name d would be called double.
  if (symbol.rfind("_Z", 0) != 0) return name;
  const std::string text = demangled(symbol);
  if (text.empty()) return name;
  std::string bare = bare_function(text);
  // The compiler adds this tag to the names of functions that return std::string.
  constexpr std::string_view tag = "[abi:cxx11]";
  for (std::size_t at = bare.find(tag); at != std::string::npos; at = bare.find(tag, at)) {
    bare.erase(at, tag.size());
  }
  return bare;
}

std::string name_of(Dwarf_Die& die);

/// Returns "a::Loader::" for a member function of the class a::Loader; "" for a function outside of
/// classes and namespaces.
std::string scope_of(const Dwarf_Die& die) {
  Dwarf_Die declared = die;
  Dwarf_Attribute reference;
  while (dwarf_attr(&declared, DW_AT_abstract_origin, &reference) != nullptr ||
         dwarf_attr(&declared, DW_AT_specification, &reference) != nullptr) {
    if (dwarf_formref_die(&reference, &declared) == nullptr) return {};
  }
  Dwarf_Die* all = nullptr;
  const int count = dwarf_getscopes_die(&declared, &all);
  const std::unique_ptr<Dwarf_Die, void (*)(void*)> owner(all, std::free);
  std::string scope;
  for (int i = 1; i < count; ++i) {  // from the function outwards
    const int tag = dwarf_tag(&all[i]);
    if (tag == DW_TAG_subprogram) return name_of(all[i]) + "::" + scope;
    const bool is_named = tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
                          tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
    if (!is_named) continue;
    const char* const name = dwarf_diename(&all[i]);
    std::string text = name != nullptr           ? name
                       : tag == DW_TAG_namespace ? "(anonymous namespace)"
                                                 : "{lambda}";
    // The debug info of g++ contains "<lambda(int)>"; demangled names contain "{lambda(int)}".
    if (text.rfind("<lambda", 0) == 0) text = '{' + text.substr(1, text.size() - 2) + '}';
    scope.insert(0, text + "::");
  }
  return scope;
}

/// Returns a function's name from its debug info entry (DIE), demangled if the entry has a linkage
/// name. Functions that can only be called in their own source file have no linkage name.
std::string name_of(Dwarf_Die& die) {  // NOLINT(misc-no-recursion): a lambda in a function
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(&die, DW_AT_linkage_name, &attribute) != nullptr) {
    if (const char* linkage = dwarf_formstring(&attribute)) return function_named(linkage);
  }
  const char* plain = dwarf_diename(&die);
  return plain != nullptr ? scope_of(die) + plain : "";
}

/// Finds the inlined calls below `outer` that contain the code at `pc`, the outermost first, and
/// the function that contains them.
/// dwarf_getscopes cannot do this: it does not look into namespaces, where clang puts functions.
bool find_inlined(Dwarf_Die& outer, Dwarf_Addr pc, std::vector<Dwarf_Die>& found,
                  std::optional<Dwarf_Die>& function) {
  Dwarf_Die die;
  if (dwarf_child(&outer, &die) != 0) return false;
  do {
    const int tag = dwarf_tag(&die);
    const bool without_code = tag == DW_TAG_namespace || tag == DW_TAG_module;
    const bool with_code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
                           tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
                           tag == DW_TAG_catch_block;
    if (without_code && find_inlined(die, pc, found, function)) return true;
    if (!with_code || dwarf_haspc(&die, pc) <= 0) continue;
    const bool is_inlined = tag == DW_TAG_inlined_subroutine;
    if (is_inlined) found.push_back(die);
    if (tag == DW_TAG_subprogram) function = die;
    return find_inlined(die, pc, found, function) || is_inlined;
  } while (dwarf_siblingof(&die, &die) == 0);
  return false;
}

/// Returns the source file that contains the call of an inlined function, from DW_AT_call_file.
std::string file_of_call(Dwarf_Die& inlined, Dwarf_Die& unit) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  Dwarf_Files* files = nullptr;
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_file, &attribute), &number) != 0 ||
      dwarf_getsrcfiles(&unit, &files, nullptr) != 0) {
    return {};
  }
  const char* const path = dwarf_filesrc(files, number, nullptr, nullptr);
  return path != nullptr ? path : "";
}

int line_of_call(Dwarf_Die& inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word line = 0;
  const bool known = dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &line) == 0;
  return known ? static_cast<int>(line) : 0;
}

/// Returns the class of `this` in a function; nullopt if the function has no `this`.
std::optional<Dwarf_Die> class_of_object(Dwarf_Die& function) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (dwarf_attr_integrate(&function, DW_AT_object_pointer, &attribute) == nullptr ||
      dwarf_formref_die(&attribute, &type) == nullptr) {
    return std::nullopt;
  }
  // Go from the parameter `this` to its pointer type, and from there to the class.
  for (int i = 0; i < 2; ++i) {
    if (dwarf_attr_integrate(&type, DW_AT_type, &attribute) == nullptr ||
        dwarf_formref_die(&attribute, &type) == nullptr || dwarf_peel_type(&type, &type) != 0) {
      return std::nullopt;
    }
  }
  return type;
}

/// Sets the members of `of` about the definition of a function, from the debug info.
void set_definition(Dwarf_Die& function, source_frame& of) {
  std::optional<Dwarf_Die> object = class_of_object(function);
  of.has_object = object.has_value();
  of.defined_in.clear();
  of.defined_at = 0;
  // g++ does not state the line of a lambda's function, but that of the lambda's class, so try
  // both.
  for (Dwarf_Die* die : {&function, object ? &*object : nullptr}) {
    const char* const file = die != nullptr ? dwarf_decl_file(die) : nullptr;
    if (file == nullptr || dwarf_decl_line(die, &of.defined_at) != 0) continue;
    of.defined_in = file;
    return;
  }
}

/// Looks up functions in one ELF file and its debug info.
class module_file {
 public:
  explicit module_file(const std::string& path) : path_(path) {
    static constexpr Dwfl_Callbacks callbacks{dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                              dwfl_offline_section_address, nullptr};
    dwfl_ = dwfl_begin(&callbacks);
    std::error_code error;
    // Open the file only if it is a regular file, because opening a pipe would block.
    if (dwfl_ != nullptr && std::filesystem::is_regular_file(path, error)) {
      dwfl_report_begin(dwfl_);
      module_ = dwfl_report_offline(dwfl_, path.c_str(), path.c_str(), -1);
      dwfl_report_end(dwfl_, nullptr, nullptr);
    }
    if (module_ != nullptr) elf_ = dwfl_module_getelf(module_, &bias_);
    unnamed_ = unnamed_functions(elf_);
  }
  module_file(const module_file&) = delete;
  module_file& operator=(const module_file&) = delete;
  ~module_file() {
    if (dwfl_ != nullptr) dwfl_end(dwfl_);
  }

  std::string_view state() {
    if (elf_ == nullptr) return unreadable;
    return dwfl_module_getsymtab(module_) <= 1 || !has_symbol_table() ? stripped : "";
  }

  std::vector<source_frame> frames(std::uint64_t file_offset) {
    source_frame function;
    function.function = at(file_offset).function;
    const auto address = elf_ != nullptr ? address_of(file_offset) : std::nullopt;
    if (address && symbol_at(*address) == nullptr) {
      function.begin = unnamed_.begin_of(*address - bias_);
      function.has_object = function.function != no_symbols;  // it is a virtual function
    }
    const unit_range* const unit = address ? unit_at(*address) : nullptr;
    if (unit == nullptr) return {function};
    source_frame frame;
    if (Dwarf_Line* const line = dwarf_getsrc_die(unit->die, *address - unit->bias)) {
      const char* const path = dwarf_linesrc(line, nullptr, nullptr);
      if (path != nullptr && dwarf_lineno(line, &frame.line) == 0) frame.file = path;
    }
    std::vector<Dwarf_Die> calls;
    std::optional<Dwarf_Die> outermost;
    find_calls(*unit, *address, calls, outermost);
    std::vector<source_frame> all;
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      frame.function = name_of(*call);
      set_definition(*call, frame);
      all.push_back(frame);
      frame.file = file_of_call(*call, *unit->die);
      frame.line = line_of_call(*call);
    }
    frame.function = function.function;
    frame.begin = function.begin;
    frame.defined_in.clear();
    frame.defined_at = 0;
    frame.has_object = function.has_object;
    if (outermost) set_definition(*outermost, frame);
    all.push_back(frame);
    return all;
  }

  code_place at(std::uint64_t file_offset) {
    code_place place{std::string(no_symbols), path_, {}};
    const auto address = elf_ != nullptr ? address_of(file_offset) : std::nullopt;
    if (!address) return place;
    if (const char* const name = symbol_at(*address)) {
      place.function = function_named(name);
    } else {
      std::string found = unnamed_.virtual_name(unnamed_.begin_of(*address - bias_));
      if (!found.empty()) place.function = std::move(found);
    }
    place.inlined = inlined_at(*address);
    return place;
  }

 private:
  /// Returns the symbol of the function at an address; null if there is none.
  const char* symbol_at(GElf_Addr address) {
    GElf_Off distance = 0;
    GElf_Sym symbol{};
    const char* const name =
        dwfl_module_addrinfo(module_, address, &distance, &symbol, nullptr, nullptr, nullptr);
    // If the nearest symbol ends before this address, the function at the address is unknown.
    const bool is_inside = symbol.st_size == 0 || distance < symbol.st_size;
    return is_inside ? name : nullptr;
  }

  /// Whether the file or its separate debug file has a full symbol table.
  bool has_symbol_table() {
    GElf_Addr bias = 0;
    Dwarf* debug = dwfl_module_getdwarf(module_, &bias);
    const std::array<Elf*, 2> files{elf_, debug != nullptr ? dwarf_getelf(debug) : nullptr};
    for (Elf* file : files) {
      Elf_Scn* section = nullptr;
      while (file != nullptr && (section = elf_nextscn(file, section)) != nullptr) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_SYMTAB) return true;
      }
    }
    return false;
  }

  std::optional<GElf_Addr> address_of(std::uint64_t file_offset) const {
    std::size_t count = 0;
    if (elf_getphdrnum(elf_, &count) != 0) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr part;
      if (gelf_getphdr(elf_, static_cast<int>(i), &part) == nullptr || part.p_type != PT_LOAD) {
        continue;
      }
      if (file_offset >= part.p_offset && file_offset - part.p_offset < part.p_filesz) {
        return part.p_vaddr + (file_offset - part.p_offset) + bias_;
      }
    }
    return std::nullopt;
  }

  struct unit_range {
    GElf_Addr begin;
    GElf_Addr end;
    Dwarf_Addr bias;
    Dwarf_Die* die;
  };

  /// Returns the compilation unit that contains an address; null if there is no debug info.
  const unit_range* unit_at(GElf_Addr address) {
    if (!units_read_) read_units();
    auto unit = std::upper_bound(
        units_.begin(), units_.end(), address,
        [](GElf_Addr wanted, const unit_range& range) { return wanted < range.begin; });
    if (unit == units_.begin() || address >= (--unit)->end) return nullptr;
    return &*unit;
  }

  /// Code of a function in a compilation unit, with the function's debug info entry.
  struct function_range {
    Dwarf_Addr begin;
    Dwarf_Addr end;
    Dwarf_Die die;
  };

  /// Adds the functions that are below `outer` at any depth. g++ puts the function of a lambda into
  /// the lambda's class, which is in the function that contains the lambda.
  static void add_functions(Dwarf_Die& outer,
                            std::vector<function_range>& to) {  // NOLINT(misc-no-recursion)
    Dwarf_Die die;
    if (dwarf_child(&outer, &die) != 0) return;
    do {
      Dwarf_Addr base = 0;
      Dwarf_Addr begin = 0;
      Dwarf_Addr end = 0;
      // A function may have several ranges: compilers put rarely used code elsewhere.
      std::ptrdiff_t at = dwarf_tag(&die) == DW_TAG_subprogram ? 0 : -1;
      while (at >= 0 && (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0) {
        to.push_back({begin, end, die});
      }
      add_functions(die, to);
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  /// Finds the inlined calls at an address, the outermost first, and the function around them.
  void find_calls(const unit_range& unit, GElf_Addr address, std::vector<Dwarf_Die>& calls,
                  std::optional<Dwarf_Die>& function) {
    const Dwarf_Addr pc = address - unit.bias;
    find_inlined(*unit.die, pc, calls, function);
    if (function) return;
    const auto [known, is_new] = functions_.try_emplace(dwarf_dieoffset(unit.die));
    if (is_new) add_functions(*unit.die, known->second);
    for (function_range& one : known->second) {
      if (pc < one.begin || pc >= one.end) continue;
      function = one.die;
      find_inlined(one.die, pc, calls, function);
      return;
    }
  }

  std::string inlined_at(GElf_Addr address) {
    const unit_range* const unit = unit_at(address);
    std::vector<Dwarf_Die> calls;
    std::optional<Dwarf_Die> function;
    if (unit != nullptr) find_calls(*unit, address, calls, function);
    return calls.empty() ? "" : name_of(calls.back());
  }

  /// Reads the address ranges of all compilation units from the units themselves.
  /// dwfl_module_addrdie cannot be used, because it needs a table (.debug_aranges) that clang
  /// omits.
  void read_units() {
    units_read_ = true;
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* die = nullptr; (die = dwfl_module_nextcu(module_, die, &bias)) != nullptr;) {
      Dwarf_Addr base = 0;
      Dwarf_Addr begin = 0;
      Dwarf_Addr end = 0;
      for (std::ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0;) {
        units_.push_back({begin + bias, end + bias, bias, die});
      }
    }
    std::sort(units_.begin(), units_.end(),
              [](const unit_range& a, const unit_range& b) { return a.begin < b.begin; });
  }

  std::string path_;
  std::vector<unit_range> units_;
  bool units_read_ = false;
  // All functions of a compilation unit, only for units in which find_inlined() failed to find one.
  std::map<Dwarf_Off, std::vector<function_range>> functions_;
  unnamed_functions unnamed_{nullptr};
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  Elf* elf_ = nullptr;
  GElf_Addr bias_ = 0;
};

/// Answers a question about a module, which is opened with the first question.
std::string answer_of(std::unique_ptr<module_file>& file, const std::string& path,
                      const std::string& question) {
  if (!file) file = std::make_unique<module_file>(path);
  module_fields asked(question);
  const std::string what = asked.next();
  const std::uint64_t offset = asked.next_number();
  module_fields answer;
  if (what == ask_state) {
    answer.add(file->state());
  } else if (what == ask_place) {
    const code_place place = file->at(offset);
    answer.add(place.function);
    answer.add(place.inlined);
  } else {
    for (const source_frame& frame : file->frames(offset)) {
      answer.add(frame.function);
      answer.add(frame.file);
      answer.add(static_cast<std::uint64_t>(frame.line));
      answer.add(frame.begin);
      answer.add(frame.defined_in);
      answer.add(static_cast<std::uint64_t>(frame.defined_at));
      answer.add(std::uint64_t{frame.has_object ? 1U : 0U});
    }
  }
  return answer.take();
}

}  // namespace

std::function<std::string(const std::string&)> module_reader(const std::string& path) {
  return [file = std::make_shared<std::unique_ptr<module_file>>(),
          path](const std::string& question) { return answer_of(*file, path, question); };
}

}  // namespace lotus::tool
