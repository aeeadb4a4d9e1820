// Reads the build id of a program or library: a hash of its contents that the linker stores in it,
// so that another build of the file is recognized.
#ifndef LOTUS_BASE_BUILD_ID_HPP
#define LOTUS_BASE_BUILD_ID_HPP

#include <elf.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A build id in hexadecimal digits; "" if a file has none.
struct build_id {
  static constexpr std::size_t max_bytes = 32;
  char digits[2 * max_bytes + 1] = "";
};

/// Reads the build id of a 64-bit ELF file from its notes.
/// @param begin  address at which the file begins.
/// @param read  read(address, to, bytes) copies bytes of the file, and returns whether it could.
template <class Read>
build_id read_build_id(std::uint64_t begin, const Read& read) noexcept {
  build_id id;
  Elf64_Ehdr file{};
  constexpr unsigned max_parts = 64;
  if (!read(begin, &file, sizeof(file)) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
      file.e_ident[EI_CLASS] != ELFCLASS64) {
    return id;
  }
  for (unsigned i = 0; i < file.e_phnum && i < max_parts; ++i) {
    Elf64_Phdr part{};
    if (!read(begin + file.e_phoff + i * sizeof(part), &part, sizeof(part))) return id;
    constexpr std::uint64_t max_notes = 4096;
    if (part.p_type != PT_NOTE || part.p_filesz > max_notes) continue;
    const std::uint64_t aligned = part.p_align == 8 ? 7 : 3;
    const auto rounded = [aligned](std::uint64_t bytes) { return (bytes + aligned) & ~aligned; };
    struct {
      Elf64_Nhdr head;
      char name[4];
    } note{};
    for (std::uint64_t at = 0; at + sizeof(note) <= part.p_filesz;) {
      const std::uint64_t from = begin + part.p_offset + at;
      if (!read(from, &note, sizeof(note))) return id;
      const std::uint64_t data = rounded(sizeof(note.head) + note.head.n_namesz);
      unsigned char bytes[build_id::max_bytes];
      if (note.head.n_type == NT_GNU_BUILD_ID && note.head.n_namesz == sizeof(note.name) &&
          std::memcmp(note.name, "GNU", sizeof(note.name)) == 0 &&
          note.head.n_descsz <= sizeof(bytes) && read(from + data, bytes, note.head.n_descsz)) {
        for (std::size_t j = 0; j < note.head.n_descsz; ++j) {
          id.digits[2 * j] = "0123456789abcdef"[bytes[j] >> 4U];
          id.digits[2 * j + 1] = "0123456789abcdef"[bytes[j] & 15U];
        }
        return id;
      }
      at += data + rounded(note.head.n_descsz);
    }
  }
  return id;
}

/// Returns the build id of a file that this process has mapped. Reads through the kernel, because
/// the file may be unmapped meanwhile.
/// @param begin  address at which the file's first byte is mapped.
inline build_id mapped_build_id(std::uint64_t begin) noexcept {
  return read_build_id(begin, [](std::uint64_t address, void* to, std::size_t bytes) {
    const iovec into{to, bytes};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel reported
    const iovec from{reinterpret_cast<void*>(address), bytes};
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
  });
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_BUILD_ID_HPP
