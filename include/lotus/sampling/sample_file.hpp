// Writes the sample file of a process, which contains the samples of the built-in profiler, next to
// the logs of the process.
#ifndef LOTUS_SAMPLING_SAMPLE_FILE_HPP
#define LOTUS_SAMPLING_SAMPLE_FILE_HPP

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/build_id.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/environment.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/mappings.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/record/environment_report.hpp"
#include "lotus/record/message.hpp"
#include "lotus/sampling/sample_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The sample file, which begin() creates. The first error is reported; after it nothing more is
/// written. Not thread-safe: class sampler locks a mutex where two threads could call a function at
/// the same time. Trivially destructible.
class sample_file {
 public:
  /// Creates the file. Its folder is the one that LOTUS_MAP_FOLDER names (lotus-tool sets the
  /// variable), or else that of the session's logs, or else, without a session, the current
  /// directory. Later calls do nothing.
  LOTUS_DETAIL_COLD void begin(std::uint64_t interval_ns) noexcept {
    if (tried_) return;
    tried_ = true;
    if (*directory_ == '\0') find_directory();
    char path[sizeof(directory_) + 64];
    std::snprintf(path, sizeof(path), "%s%s%u_%llx", directory_, samples_file_start,
                  static_cast<unsigned>(getpid()),
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    file_ = owned_descriptor{open_at_high_fd(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0666)};
    if (file_.number() < 0) {
      say("cannot write samples to %s: %s", path, std::strerror(errno));
      return;
    }
    samples_file_header h{};
    std::memcpy(h.magic, samples_file_magic, sizeof(h.magic));
    h.layout = samples_file_layout;
    h.header_bytes = sizeof(h);
    h.pid = static_cast<std::uint32_t>(getpid());
    h.interval_ns = interval_ns;
    append(&h, sizeof(h));
    clock();
  }

  void append(const void* data, std::size_t bytes) noexcept {
    if (file_.number() < 0) return;
    // If the program has closed the descriptor, its number may already belong to another file.
    const int error = file_.holds() ? write_all(file_.number(), data, bytes) : EBADF;
    if (error == 0) return;
    say("cannot write samples: %s; the rest is lost", std::strerror(error));
    forget();
  }

  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    region_record r{};
    r.begin_ns = begin_ns;
    r.end_ns = end_ns;
    r.pid = static_cast<std::uint32_t>(getpid());
    r.tid = static_cast<std::uint32_t>(gettid());
    append_with_text(own_record::region, r, name);
  }

  /// Records at which addresses the code of the program and of its shared objects is mapped now.
  void modules() noexcept {
    if (file_.number() < 0) return;
    std::uint64_t first = 0;  // where the beginning of a file is mapped, and the file's inode
    unsigned long long first_inode = 0;
    for_each_mapping([&](std::string_view line) {
      // A line of /proc/self/maps looks like "5566-7788 r-xp 00001000 08:01 1234 /path".
      module_record m{};
      unsigned long long begin = 0, end = 0, offset = 0, inode = 0;
      char mode[8] = {};
      char head[96] = {};
      std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
      // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
      if (std::sscanf(head, "%llx-%llx %7s %llx %*s %llu", &begin, &end, mode, &offset, &inode) !=
          5) {
        return false;
      }
      if (offset == 0 && inode != 0) {
        first = begin;
        first_inode = inode;
      }
      std::string_view path = mapped_path(line);
      if (path.empty()) path = line.substr(line.find('[') < line.size() ? line.find('[') : 0);
      if (mode[2] != 'x' || (path[0] != '/' && path != "[vdso]")) return false;
      m.begin = begin;
      m.end = end;
      m.file_offset = offset;
      m.time_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
      m.pid = static_cast<std::uint32_t>(getpid());
      append_with_text(own_record::module, m, path);
      if (inode == 0 || inode != first_inode) return false;
      build_record b{};
      b.pid = m.pid;
      const build_id id = mapped_build_id(first);
      if (*id.digits != '\0') append_with_text(own_record::build, b, id.digits);
      return false;
    });
  }

  void own_thread(std::uint32_t tid) noexcept {
    own_thread_record r{};
    r.header = {static_cast<std::uint32_t>(own_record::own_thread), 0, sizeof(r)};
    r.pid = static_cast<std::uint32_t>(getpid());
    r.tid = tid;
    append(&r, sizeof(r));
  }

  void clock() noexcept {
    clock_record c{};
    c.header = {static_cast<std::uint32_t>(own_record::clock), 0, sizeof(c)};
    c.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    c.realtime_ns = clock_ns(CLOCK_REALTIME);
    append(&c, sizeof(c));
  }

  /// Appends a second clock_record, which relates the clock of samples to that of logs, and closes
  /// the file.
  void finish() noexcept {
    if (file_.number() >= 0) clock();
    forget();
  }

  /// Forgets the parent's file in a forked child, so that begin() creates a file for the child. The
  /// folder stays the same, because the child may not have written logs yet.
  void forget_parent() noexcept {
    forget();
    tried_ = false;
  }

  void forget() noexcept { file_.close(); }

 private:
  template <class Record>
  void append_with_text(own_record type, Record& r, std::string_view text) noexcept {
    if (file_.number() < 0) return;
    char bytes[sizeof(Record) + 4096 + 8] = {};
    text = text.substr(0, 4096);
    const std::size_t size = (sizeof(Record) + text.size() + 8) & ~std::size_t{7};
    r.header = {static_cast<std::uint32_t>(type), 0, static_cast<std::uint16_t>(size)};
    std::memcpy(bytes, &r, sizeof(r));
    std::memcpy(bytes + sizeof(r), text.data(), text.size());
    append(bytes, size);
  }

  /// Writes the folder that LOTUS_MAP_FOLDER names, and a final '/', to `path`. Returns the length;
  /// 0 if the variable is unset.
  static std::size_t asked_directory(char* path, std::size_t room) noexcept {
    const char* const folder = environment_text(variable::map_folder);
    if (folder == nullptr) return 0;
    const auto length = static_cast<std::size_t>(std::snprintf(path, room, "%s/", folder));
    if (length < room) return length;
    report_once(variable::map_folder, folder, say_of_variable);
    return 0;
  }

  /// Writes the folder of the logs, and a final '/', to `path`. The folder is found by the ring
  /// file in it, which is mapped while a session records. Returns the length; 0 if no session
  /// records.
  static std::size_t log_directory(char* path, std::size_t room) noexcept {
    std::size_t length = 0;
    char wanted[64];
    std::snprintf(wanted, sizeof(wanted), "/%s%u_", ring_file_start,
                  static_cast<unsigned>(getpid()));
    for_each_mapping([&](std::string_view line) {
      const std::string_view mapped = mapped_path(line);
      const std::size_t at = mapped.find(wanted);
      if (at == std::string_view::npos || at + 1 >= room) return false;
      std::memcpy(path, mapped.data(), at + 1);
      length = at + 1;
      return true;
    });
    return length;
  }

  void find_directory() noexcept {
    std::size_t length = asked_directory(directory_, sizeof(directory_));
    if (length == 0) length = log_directory(directory_, sizeof(directory_));
    directory_[length] = '\0';
  }

  owned_descriptor file_;
  bool tried_ = false;
  /// The file's directory, including the final '/'; empty: the current directory.
  char directory_[4096] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLE_FILE_HPP
