#include "lost_records.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "diagnostics.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "lotus/recover.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;
using detail::dead_ring_file;
using detail::log_role;
using detail::ring_block;

/// An open directory.
class directory {
 public:
  explicit directory(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~directory() {
    if (fd_ >= 0) close(fd_);
  }
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Takes the lines of a ring instead of its logs.
class tail_sink {
 public:
  explicit tail_sink(ring_block& ring) : ring_(ring) {}

  static int begin(log_role) { return 0; }
  int append(log_role role, const char* lines, std::size_t bytes) {
    tails[static_cast<std::size_t>(role)].append(lines, bytes);
    return 0;
  }
  static void undo(log_role) {}
  void commit(std::size_t lane, std::uint64_t tail) {
    detail::commit_point c = ring_.committed();
    c.tail[lane] = tail;
    ring_.commit(c);
  }

  std::string tails[detail::log_roles];

 private:
  ring_block& ring_;
};

log_file& file_of(std::vector<log_file>& files, const std::string& dir, const char* prefix,
                  log_role role, std::uint32_t tid) {
  char name[detail::max_prefix_bytes + 48];
  detail::put_log_name(name, sizeof(name), prefix, role, tid);
  const std::string path = (fs::path(dir) / name).string();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const log_file& file) { return file.path == path; });
  if (found != files.end()) return *found;
  const file_role kind = role == log_role::main ? file_role::main : file_role::worker;
  files.push_back({path, kind, tid, 0, {}});
  return files.back();
}

/// Adds one ring's records; returns how many.
std::uint64_t add_ring(dead_ring_file& ring_file, ring_block& ring, const std::string& dir,
                       std::vector<log_file>& files, detail::drain_buffer& buffer) {
  const detail::commit_point committed = ring.committed();
  const detail::lane_heads heads(ring);
  const std::uint64_t records = heads.beyond(committed);
  tail_sink sink(ring);
  const auto names = [&](std::uint64_t id) { return ring_file.line_start(id); };
  detail::drain_ring(ring, heads, ring_file.clock(), names, sink, buffer);
  for (std::size_t i = 0; i < detail::log_roles; ++i) {
    const detail::log_position& at = committed.logs[i];
    if (sink.tails[i].empty() && !at.appending) continue;
    log_file& file = file_of(files, dir, ring_file.header().prefix, static_cast<log_role>(i),
                             ring.tid.load(std::memory_order_relaxed));
    struct stat status {};
    const bool same = stat(file.path.c_str(), &status) == 0 && status.st_ino == at.inode;
    if (at.appending && same && file.bytes > at.length) file.bytes = at.length;
    file.tail += sink.tails[i];
  }
  return records;
}

}  // namespace

bool is_ring_file_name(std::string_view name) {
  const std::string_view start = detail::ring_file_start;
  return name.substr(0, start.size()) == start;
}

void count_in_lost_records(const std::string& dir, std::string_view prefix,
                           std::vector<log_file>& files, diagnostics& said) {
  const directory opened(dir);
  if (opened.fd() < 0) return;
  const auto buffer = std::make_unique<detail::drain_buffer>();
  std::uint64_t records = 0;
  detail::for_each_entry(opened.fd(), [&](const char* name) {
    if (!is_ring_file_name(name)) return;
    dead_ring_file ring_file;
    const auto state = ring_file.open(opened.fd(), name, false);
    if (state == dead_ring_file::state::damaged) {
      said.note((fs::path(dir) / name).string() + ": damaged or of another version, left out");
    }
    if (state != dead_ring_file::state::opened || prefix != ring_file.header().prefix) return;
    ring_file.for_each_ring(
        [&](ring_block& ring) { records += add_ring(ring_file, ring, dir, files, *buffer); });
  });
  if (records > 0) {
    said.note(dir + ": " + std::to_string(records) +
              " records of killed processes are counted in; `lotus-tool recover` puts them into "
              "the logs");
  }
}

int run_recover(const recover_options& options, std::ostream& out, std::ostream& err) {
  std::error_code error;
  if (!fs::is_directory(options.dir, error)) {
    throw input_error(options.dir + ": no such directory; give the folder that holds the logs");
  }
  std::vector<std::string> dirs = {options.dir};
  fs::recursive_directory_iterator at(options.dir, fs::directory_options::skip_permission_denied,
                                      error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->is_directory(error)) dirs.push_back(at->path().string());
  }
  std::sort(dirs.begin(), dirs.end(), natural_less);
  detail::recovery sum;
  int status = 0;
  for (const std::string& dir : dirs) {
    const directory opened(dir);
    if (opened.fd() < 0) continue;
    const detail::recovery r = detail::recover_directory(opened.fd(), nullptr);
    if (r.error != 0) {
      err << dir << ": cannot append to the logs: " << std::strerror(r.error)
          << "; what is left can be recovered later\n";
      status = 1;
    }
    if (r.damaged > 0) {
      err << dir << ": " << r.damaged << " ring files are damaged or of another version, left\n";
    }
    if (r.records > 0) out << dir << ": " << r.records << " records put into the logs\n";
    sum.files += r.files;
    sum.records += r.records;
    sum.living += r.living;
  }
  out << "recovered " << sum.records << " records of " << sum.files << " processes";
  if (sum.living > 0) out << "; " << sum.living << " processes are still recording";
  out << '\n';
  return status;
}

}  // namespace lotus::tool
