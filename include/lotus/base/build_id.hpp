// Reads the build id of a program or library: a hash of its contents that the linker stores in it,
// so that another build of the file is recognized. Some linkers store none; then a hash of the
// file's headers, which contain the sizes of its code and data, takes its place.
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

/// A build id in hexadecimal digits; "" if it could not be read.
struct build_id {
  static constexpr std::size_t max_bytes = 32;
  char digits[2 * max_bytes + 1] = "";

  void set(const unsigned char* bytes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      digits[2 * i] = "0123456789abcdef"[bytes[i] >> 4U];
      digits[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15U];
    }
  }
};

/// Reads the build id of a 64-bit ELF file from its notes. Without one, returns a hash of its
/// headers.
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
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  const auto add = [&hash](const auto& header) {
    unsigned char bytes[sizeof(header)];
    std::memcpy(bytes, &header, sizeof(header));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211U;
  };
  add(file);
  for (unsigned i = 0; i < file.e_phnum && i < max_parts; ++i) {
    Elf64_Phdr part{};
    if (!read(begin + file.e_phoff + i * sizeof(part), &part, sizeof(part))) return id;
    add(part);
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
        id.set(bytes, note.head.n_descsz);
        return id;
      }
      at += data + rounded(note.head.n_descsz);
    }
  }
  unsigned char bytes[sizeof(hash)];
  std::memcpy(bytes, &hash, sizeof(hash));
  id.set(bytes, sizeof(bytes));
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
