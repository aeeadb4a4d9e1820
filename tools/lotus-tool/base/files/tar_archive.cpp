#include "base/files/tar_archive.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>

#include "base/errors.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t block_bytes = 512;
constexpr std::size_t name_bytes = 100;
using header = std::array<char, block_bytes>;

/// Writes a number into a header field as octal digits, with a NUL at the end of the field.
void put_octal(header& to, std::size_t at, std::size_t bytes, std::size_t value) {
  for (std::size_t i = bytes - 1; i-- > 0; value /= 8) {
    to[at + i] = static_cast<char>('0' + value % 8);
  }
}

void put_text(header& to, std::size_t at, std::string_view text) {
  std::memcpy(to.data() + at, text.data(), text.size());
}

}  // namespace

tar_archive::tar_archive(const std::string& path, std::ostream& standard_output)
    : file_(path, standard_output, /*gzip=*/true) {}

// Writes a header with the fields of the format ustar, then the content. The format is described
// with the utility pax in POSIX: https://pubs.opengroup.org/onlinepubs/9699919799.
void tar_archive::add(std::string_view name, std::string_view content) {
  if (name.size() >= name_bytes) throw input_error(std::string(name) + ": too long for an archive");
  header of{};
  put_text(of, 0, name);
  put_octal(of, 100, 8, 0644);
  put_octal(of, 108, 8, 0);
  put_octal(of, 116, 8, 0);
  put_octal(of, 124, 12, content.size());
  put_octal(of, 136, 12, 0);
  put_text(of, 148, "        ");
  of[156] = '0';
  put_text(of, 257, std::string_view("ustar\00000", 8));
  std::size_t sum = 0;
  for (const char c : of) sum += static_cast<unsigned char>(c);
  put_octal(of, 148, 7, sum);
  of[154] = '\0';
  file_.write({of.data(), of.size()});
  file_.write(content);
  constexpr char zeros[block_bytes] = {};
  const std::size_t rest = content.size() % block_bytes;
  if (rest != 0) file_.write({zeros, block_bytes - rest});
}

void tar_archive::commit() {
  constexpr char end[2 * block_bytes] = {};
  file_.write({end, sizeof(end)});
  file_.commit();
}

}  // namespace lotus::tool
