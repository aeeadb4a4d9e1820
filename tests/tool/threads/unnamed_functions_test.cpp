// Tests what the tool finds out about functions without a symbol, with this program's own virtual
// functions, whose symbols it does not read; and that short names of C stay as they are.
#include "sampling/read/unnamed_functions.hpp"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <link.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "sampling/read/symbols.hpp"
#include "sampling/read/variable_names.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

// The mangled names of double and unsigned long.
extern "C" {
__attribute__((noinline, used)) int d(int value) {
  return value + 1;
}
int m = 1;
}

namespace {

struct decoder {
  virtual ~decoder() = default;
  virtual int decode(int value) = 0;
  virtual int skip(int value) { return value + calls; }
  int calls = 0;
};

/// Inherits skip() and overrides decode().
struct fast_decoder : decoder {
  int decode(int value) override { return 2 * value + ++calls; }
};
/// Inherits all functions.
struct faster_decoder : fast_decoder {};

struct named {
  virtual ~named() = default;
  virtual int name() { return id; }
  int id = 7;
};
/// Its second base has a virtual table of its own.
struct named_decoder : fast_decoder, named {
  int name() override { return id + calls; }
};

/// The file of this program, and where it is mapped.
class own_file {
 public:
  own_file() : fd_(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) {
    elf_version(EV_CURRENT);
    elf_ = elf_begin(fd_, ELF_C_READ, nullptr);
    const auto first = [](dl_phdr_info* info, std::size_t, void* to) {
      *static_cast<std::uint64_t*>(to) = info->dlpi_addr;
      return 1;
    };
    dl_iterate_phdr(first, &bias_);
  }
  own_file(const own_file&) = delete;
  own_file& operator=(const own_file&) = delete;
  ~own_file() {
    elf_end(elf_);
    close(fd_);
  }

  Elf* elf() const { return elf_; }

  /// Returns the distance of something of this program from where its file is mapped.
  template <class Something>
  std::uint64_t distance(Something* of) const {
    return reinterpret_cast<std::uint64_t>(of) - bias_;  // NOLINT(*-reinterpret-cast)
  }

  /// Returns where the file contains what is mapped at a distance; 0 if it does not contain it.
  std::uint64_t position(std::uint64_t distance) const {
    std::size_t count = 0;
    elf_getphdrnum(elf_, &count);
    for (int i = 0; i < static_cast<int>(count); ++i) {
      GElf_Phdr part;
      if (gelf_getphdr(elf_, i, &part) == nullptr || part.p_type != PT_LOAD) continue;
      if (distance >= part.p_vaddr && distance - part.p_vaddr < part.p_filesz) {
        return part.p_offset + (distance - part.p_vaddr);
      }
    }
    return 0;
  }

  /// Returns the address in the file of a virtual function of an object.
  template <class Object>
  std::uint64_t function(const Object& object, std::size_t index) const {
    const std::uint64_t* table = nullptr;
    const void* const begin = &object;
    std::memcpy(&table, begin, sizeof table);
    return table[index] - bias_;
  }

 private:
  int fd_;
  Elf* elf_ = nullptr;
  std::uint64_t bias_ = 0;
};

constexpr std::size_t decode = 2;  // after two destructors
constexpr std::size_t skip = 3;

}  // namespace

TEST_CASE("a virtual function is named by the class that defines it") {
  const own_file own;
  lotus::tool::unnamed_functions functions(own.elf());
  const fast_decoder fast;
  const faster_decoder faster;
  const named_decoder both;
  REQUIRE(own.function(fast, decode) == own.function(faster, decode));
  const std::string space = "(anonymous namespace)::";
  CHECK(functions.virtual_name(own.function(faster, decode)) ==
        space + "fast_decoder::(virtual function 2)");
  CHECK(functions.virtual_name(own.function(faster, skip)) ==
        space + "decoder::(virtual function 3)");
  const named& second = both;
  CHECK(functions.virtual_name(own.function(named(), 2)) == space + "named::(virtual function 2)");
  CHECK(functions.virtual_name(own.function(both, 4)) ==
        space + "named_decoder::(virtual function 4)");
  // The table of the second base has a function that only corrects `this`.
  CHECK(functions.virtual_name(own.function(second, 2)).empty());
}

TEST_CASE("other addresses are no virtual functions, and functions begin where they begin") {
  const own_file own;
  lotus::tool::unnamed_functions functions(own.elf());
  const fast_decoder fast;
  const std::uint64_t begin = own.function(fast, decode);
  CHECK(functions.begin_of(begin) == begin);
  CHECK(functions.begin_of(begin + 1) == begin);
  CHECK(functions.virtual_name(begin + 1).empty());
  CHECK(functions.virtual_name(0).empty());
  CHECK(functions.begin_of(0) == 0);
  lotus::tool::unnamed_functions nothing(nullptr);
  CHECK(nothing.begin_of(begin) == 0);
  CHECK(nothing.virtual_name(begin).empty());
}

TEST_CASE("a function and a variable of C are not named by the type that their names mean in C++") {
  const own_file own;
  auto diagnostics = lotus::tool::diagnostic_log::silenced();
  lotus::tool::symbol_source symbols(diagnostics);
  CHECK(symbols.at("/proc/self/exe", own.position(own.distance(&d)), "").function == "d");
  CHECK(lotus::tool::variable_names().find("/proc/self/exe", own.distance(&m)) == "m");
}
