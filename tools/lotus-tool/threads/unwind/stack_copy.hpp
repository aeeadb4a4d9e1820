// Defines a copy of a thread's registers and of the top of its stack, from which its calls are
// found.
#ifndef LOTUS_TOOL_THREADS_UNWIND_STACK_COPY_HPP
#define LOTUS_TOOL_THREADS_UNWIND_STACK_COPY_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lotus::tool {

struct stack_copy {
  static constexpr std::size_t max_bytes = std::size_t{16} << 10U;
  static constexpr std::size_t max_registers = 32;

  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  /// Bit n: whether `registers` contains register n, in DWARF's numbering.
  std::uint64_t known = 0;
  std::array<std::uint64_t, max_registers> registers{};
  std::string bytes;  ///< the memory from `sp` on

  void set_register(unsigned number, std::uint64_t value) noexcept {
    registers[number] = value;
    known |= std::uint64_t{1} << number;
  }
};

/// A part of a file that a process has mapped as code.
struct mapped_code {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t file_begin = 0;  ///< address at which the beginning of the file is mapped
  std::string path;
  std::string build{};  ///< build id of the file, in hexadecimal digits; "" if unknown
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_UNWIND_STACK_COPY_HPP
