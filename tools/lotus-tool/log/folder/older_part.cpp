#include "log/folder/older_part.hpp"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <lotus/folder/log_parts.hpp>
#include <utility>

#include "base/errors.hpp"
#include "base/files/byte_stream.hpp"
#include "base/files/found_file.hpp"
#include "base/terminal/progress.hpp"
#include "base/text.hpp"

namespace lotus::tool {

std::optional<older_part_name> older_part_name_of(std::string_view name, std::string_view prefix) {
  lotus::detail::log_name parsed;
  std::string log(name);
  if (parsed.parse(log.c_str(), std::string(prefix).c_str())) {
    if (parsed.part == 0) return std::nullopt;
    log.erase(parsed.part_at, parsed.part_length);
    // The name of the part contains the time at which the program renamed it. A higher `age` must
    // mean an older part, so the age is the largest number minus this time.
    return older_part_name{std::move(log), UINT64_MAX - parsed.part, false};
  }
  constexpr std::string_view packed_end = ".gz";
  const bool packed =
      name.size() > packed_end.size() && name.substr(name.size() - packed_end.size()) == packed_end;
  if (packed) name.remove_suffix(packed_end.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::uint64_t age = 0;
  if (!read_whole(name.substr(dot + 1), age)) return std::nullopt;
  return older_part_name{std::string(name.substr(0, dot)), age, packed};
}

older_part_reader::older_part_reader(const older_part& part)
    : part_(part), descriptor_(open_found(part.path)) {
  if (!part.packed) return;
  unpacked_ = gzdopen(descriptor_, "rb");
  if (unpacked_ != nullptr) return;
  ::close(descriptor_);
  throw input_error(part.path + ": cannot be read: no memory");
}

older_part_reader::~older_part_reader() {
  if (unpacked_ != nullptr) {
    gzclose(unpacked_);
  } else {
    ::close(descriptor_);
  }
}

std::size_t older_part_reader::read(char* to, std::size_t room) {
  return part_.packed ? read_packed(to, room) : read_plain(to, room);
}

std::size_t older_part_reader::read_plain(char* to, std::size_t room) {
  while (done_ < part_.bytes) {
    const ssize_t got = ::read(descriptor_, to, std::min<std::uint64_t>(room, part_.bytes - done_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw input_error(part_.path + ": cannot be read: " + error_text(errno));
    if (got == 0) break;  // the file was truncated after it was found
    done_ += static_cast<std::uint64_t>(got);
    count_bytes(static_cast<std::uint64_t>(got));
    return static_cast<std::size_t>(got);
  }
  return 0;
}

std::size_t older_part_reader::read_packed(char* to, std::size_t room) {
  constexpr std::size_t max_read = std::size_t{1} << 30U;
  const int got = gzread(unpacked_, to, static_cast<unsigned>(std::min(room, max_read)));
  int error = Z_OK;
  const char* const what = gzerror(unpacked_, &error);
  if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
    throw input_error(part_.path + ": cannot be read to its end: " + what);
  }
  const auto at = static_cast<std::uint64_t>(std::max<z_off_t>(gzoffset(unpacked_), 0));
  if (at > done_) count_bytes(at - done_);
  done_ = std::max(done_, at);
  unpacked_bytes_ += static_cast<std::uint64_t>(got);
  refuse_gzip_bomb(part_.path, unpacked_, unpacked_bytes_);
  return static_cast<std::size_t>(got);
}

}  // namespace lotus::tool
