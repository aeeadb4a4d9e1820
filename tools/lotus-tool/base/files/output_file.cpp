#include "base/files/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t buffer_bytes = std::size_t{512} << 10U;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw input_error(path + ": cannot be written: " + error_text(error));
}

/// Returns the descriptor that a path such as /dev/stdout or /dev/fd/3 denotes; -1 if the path does
/// not denote a descriptor.
int descriptor_named(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (path.compare(0, folder.size(), folder) != 0) continue;
    int descriptor = -1;
    if (read_number(path.c_str() + folder.size(), descriptor)) return descriptor;
  }
  return -1;
}

/// Opens the output at `path` if it must be written directly because a temporary file cannot
/// replace it: a device, a pipe or a descriptor of this process. Otherwise (a regular file, a new
/// file or a link) returns -1.
/// @param status  the status of `path` itself, even if it is a link.
int open_unreplaced(const std::string& path, const struct stat& status) {
  const int named = descriptor_named(path);
  if (named >= 0) {
    const int copy = ::fcntl(named, F_DUPFD_CLOEXEC, 3);  // NOLINT(*-vararg)
    if (copy < 0) cannot_write(path, errno);
    return copy;
  }
  if (S_ISDIR(status.st_mode)) cannot_write(path, EISDIR);
  if (status.st_mode == 0 || S_ISREG(status.st_mode)) return -1;
  if (S_ISLNK(status.st_mode)) {
    struct stat link_target {};
    if (::stat(path.c_str(), &link_target) == 0 && S_ISDIR(link_target.st_mode))
      cannot_write(path, EISDIR);
    return -1;
  }
  // NOLINTNEXTLINE(*-vararg)
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) cannot_write(path, errno);
  return descriptor;
}

}  // namespace

class gzip_stream {
 public:
  gzip_stream() {
    // In the argument 15 + 16, 15 selects the largest window, and 16 the gzip format instead of
    // zlib's.
    ready_ = deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) ==
             Z_OK;
    if (!ready_) throw input_error("zlib cannot be started");
  }
  gzip_stream(const gzip_stream&) = delete;
  gzip_stream& operator=(const gzip_stream&) = delete;
  ~gzip_stream() {
    if (ready_) deflateEnd(&z_);
  }

  template <class Write>
  void compress(std::string_view data, bool last, Write write) {
    // zlib does not write to its input, although next_in is not a pointer to const.
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // NOLINT
    z_.avail_in = static_cast<uInt>(data.size());
    do {
      z_.next_out = out_.data();
      z_.avail_out = static_cast<uInt>(out_.size());
      deflate(&z_, last ? Z_FINISH : Z_NO_FLUSH);
      write(reinterpret_cast<const char*>(out_.data()), out_.size() - z_.avail_out);  // NOLINT
    } while (z_.avail_out == 0);
  }

 private:
  z_stream z_{};
  bool ready_ = false;
  std::array<Bytef, std::size_t{64} << 10U> out_{};
};

new_output open_new_output(const std::string& path, leftovers left) {
  struct stat old {};
  if (::lstat(path.c_str(), &old) != 0) old = {};
  const int unreplaced = open_unreplaced(path, old);
  if (unreplaced >= 0) return {unreplaced, {}};
  const fs::path folder = folder_of(path);
  new_output made;
  unfinished incomplete =
      make_unfinished_file(folder.string(), fs::path(path).filename().string(), left);
  made.incomplete = std::move(incomplete.path);
  made.descriptor = incomplete.descriptor;
  if (made.descriptor < 0) cannot_write(path, errno);
  // mkstemp() creates a file that only this user can access. Give it the permissions of the file
  // that it will replace or, if no such file exists, the default permissions of a new file.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(made.descriptor, S_ISREG(old.st_mode) ? old.st_mode & 07777U : 0666U & ~mask);
  return made;
}

output_file::output_file(const std::string& path, std::ostream& standard_output, bool gzip,
                         leftovers left)
    : path_(path) {
  if (path.empty()) throw usage_error("the output's name is empty");
  if (gzip) gzip_ = std::make_unique<gzip_stream>();
  buffer_.resize(buffer_bytes);
  if (path == "-") {
    stream_ = &standard_output;
    return;
  }
  std::error_code ignored;
  const fs::path folder = folder_of(path);
  if (!fs::exists(folder, ignored)) {
    throw input_error(path + ": cannot be written: there is no directory " + folder.string());
  }
  new_output made = open_new_output(path, left);
  descriptor_ = made.descriptor;
  incomplete_ = std::move(made.incomplete);
}

output_file::~output_file() {
  stop_writer();
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!incomplete_.empty()) ::unlink(incomplete_.c_str());
}

/// Hands the full buffer to the thread that writes, and continues with an empty one.
void output_file::make_room() {
  if (!writer_.joinable()) {
    writer_ = std::thread(&output_file::write_blocks, this);
  }
  buffer_.resize(used_);
  used_ = 0;
  buffer_ = blocks_.push(std::move(buffer_));
  buffer_.resize(buffer_bytes);
}

void output_file::write_blocks() {
  try {
    while (const block* const full = blocks_.next()) {
      write_block({full->data(), full->size()}, false);
      blocks_.done();
    }
  } catch (...) {
    blocks_.fail(std::current_exception());
  }
}

void output_file::stop_writer() {
  if (!writer_.joinable()) return;
  blocks_.close();
  writer_.join();
}

void output_file::write_block(std::string_view data, bool last) {
  if (gzip_) {
    gzip_->compress(data, last, [this](const char* p, std::size_t n) { write_out(p, n); });
  } else {
    write_out(data.data(), data.size());
  }
}

void output_file::write_out(const char* data, std::size_t n) {
  if (stream_ != nullptr) {
    stream_->write(data, static_cast<std::streamsize>(n));
    if (!*stream_) throw input_error("standard output: cannot be written");
    return;
  }
  while (n > 0) {
    const ssize_t written = ::write(descriptor_, data, n);
    if (written < 0) {
      if (errno == EINTR) continue;
      cannot_write(path_, errno);
    }
    data += written;
    n -= static_cast<std::size_t>(written);
  }
}

void output_file::commit() {
  stop_writer();
  blocks_.rethrow_failure();
  write_block({buffer_.data(), used_}, true);
  used_ = 0;
  if (stream_ != nullptr) {
    stream_->flush();
    if (!*stream_) throw input_error("standard output: cannot be written");
    return;
  }
  // Some file systems report write errors only when a file is closed, so close the file before it
  // is renamed. The file must stay locked until it is renamed. Therefore keep a duplicate of its
  // descriptor, which shares the lock.
  const int lock = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 3);  // NOLINT(*-vararg)
  const int descriptor = std::exchange(descriptor_, -1);
  const int closed = ::close(descriptor) == 0 ? 0 : errno;
  const bool renamed =
      closed == 0 && (incomplete_.empty() || ::rename(incomplete_.c_str(), path_.c_str()) == 0);
  const int error = closed != 0 ? closed : errno;
  if (lock >= 0) ::close(lock);
  if (!renamed) cannot_write(path_, error);
  incomplete_.clear();
}

}  // namespace lotus::tool
