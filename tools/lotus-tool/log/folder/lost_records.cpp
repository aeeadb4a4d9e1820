#include "log/folder/lost_records.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "log/folder/older_part.hpp"
#include "log/record_tails.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/recovery/recovery.hpp"

namespace lotus::tool {
namespace {

/// Collects the files of one directory that could not be read. For each reason, reports the first
/// file and how many other files have the same reason.
class left_files {
 public:
  void add(const std::string& path, const std::string& why) {
    const auto [at, first] = by_kind_.try_emplace(why, kind{path, 0});
    if (!first) ++at->second.more;
  }
  bool empty() const noexcept { return by_kind_.empty(); }

  /// Calls `say(text)` once for each reason, with the text to print.
  template <class Say>
  void tell(Say&& say) const {
    for (const auto& [why, k] : by_kind_) {
      say(k.path + (k.more == 0 ? "" : " and " + std::to_string(k.more) + " more") + ": " + why);
    }
  }

 private:
  struct kind {
    std::string path;
    std::uint64_t more;
  };
  std::map<std::string, kind> by_kind_;
};

namespace fs = std::filesystem;
using detail::dead_ring_file;
using detail::log_role;
using detail::ring_block;
using detail::ring_copy;

/// An open directory. Closes its descriptor when destroyed.
class directory {
 public:
  explicit directory(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), error_(errno) {}
  /// Opens the directory `name` in `parent`. Does not follow a link.
  directory(const directory& parent, const std::string& name)
      : fd_(::openat(parent.fd_, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
        error_(errno) {}
  ~directory() {
    if (fd_ >= 0) close(fd_);
  }
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;
  int fd() const noexcept { return fd_; }
  int error() const noexcept { return error_; }

 private:
  int fd_;
  int error_;
};

/// If a process died while it appended to its log, reduces `bytes` to the length of the log before
/// it appended, so that unfinished lines are not read. The process has stored this length,
/// `at.length`, in its ring.
void cut_torn(const std::string& path, std::uint64_t& bytes, const detail::log_position& at) {
  struct stat status {};
  const bool same = lstat(path.c_str(), &status) == 0 && status.st_ino == at.inode;
  const bool torn = bytes > at.length && bytes - at.length <= detail::max_append_bytes;
  if (same && torn) bytes = at.length;
}

/// Returns the folder for the logs of a loader of the run in `dir`.
std::string folder_of(const dead_ring_file& ring_file, const std::string& dir,
                      std::uint32_t loader) {
  if (loader == 0) return dir;
  char name[detail::max_folder_name_bytes + 1];
  detail::put_loader_folder_name(name, ring_file.line_start(loader));
  return (fs::path(dir) / name).string();
}

/// Adds the statistics of aggregated operations in a dead process's ring file to the tails
/// (log_file::tail) of the files that store such statistics. Returns 0 or ENOMEM.
int add_aggregates(const dead_ring_file& ring_file, tailed_logs& logs) {
  const detail::ring_file_header& header = ring_file.header();
  return detail::read_aggregates(ring_file, detail::aggregate_state::whole)
      .for_each_section([&](std::uint32_t loader, std::string_view section) {
        char name[detail::log_name_bytes];
        detail::put_aggregates_file_name(name, header.prefix, header.pid);
        logs.file_named(folder_of(ring_file, logs.dir(), loader), name, file_role::aggregated,
                        header.pid)
            .tail += section;
        return 0;
      });
}

/// Adds the records in one ring of a dead process to the tails (log_file::tail) of its logs.
/// Returns the number of added records.
std::uint64_t add_ring(dead_ring_file& ring_file, ring_copy& copy, tailed_logs& logs,
                       detail::drain_buffer& buffer) {
  ring_block& ring = copy.ring();
  const detail::commit_point committed = ring.committed();
  std::uint64_t records = 0;
  tail_sink sink(ring);
  const auto names = [&](std::uint64_t id) { return ring_file.line_start(id); };
  const detail::tick_converter clock = ring_file.clock();
  detail::line_filler fill(clock, names, buffer);
  while (logs.has_room(sink.bytes()) && copy.fetch()) {
    const detail::lane_heads heads(ring);
    records += heads.beyond(ring.committed());
    detail::drain_ring(ring, heads, fill, sink);
  }
  const auto file_in = [&](std::uint32_t loader, std::size_t role, bool compact) -> log_file& {
    return logs.file_of(folder_of(ring_file, logs.dir(), loader), ring_file.header().prefix,
                        static_cast<log_role>(role), compact,
                        detail::log_number(ring, committed.logs[role]));
  };
  for (std::size_t i = 0; i < detail::log_roles; ++i) {
    const detail::log_position& at = committed.logs[i];
    if (!at.appending) continue;
    log_file& file = file_in(at.loader, i, ring_file.compact());
    cut_torn(file.path, file.bytes, at);
    for (older_part& part : file.older) {
      if (!part.packed) cut_torn(part.path, part.bytes, at);
    }
  }
  for (const auto& [loader, tails] : sink.tails) {
    for (std::size_t i = 0; i < detail::log_roles; ++i) {
      if (!tails[i].empty()) file_in(loader, i, false).tail += tails[i];
    }
  }
  logs.take_room(sink.bytes());
  return records;
}

/// Returns a text for users that explains why some or all records in the ring file of a dead
/// process cannot be read.
std::string why_left(dead_ring_file::state state, int error) {
  switch (state) {
    case dead_ring_file::state::other_version:
      return "written by another version of the library: read it with the lotus-tool of that "
             "version";
    case dead_ring_file::state::doubted:
      return "damaged: its invalid records are not in the logs";
    case dead_ring_file::state::refused:
      return (detail::is_refusal(error) ? "" : "cannot be opened: ") +
             std::string(detail::file_error_text(error));
    default:
      return "not a ring file, or damaged: it cannot be read and may be deleted";
  }
}

/// Recovers the records of dead processes in a directory and all directories below it.
class recoverer {
 public:
  recoverer(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  void visit(const directory& dir, const std::string& path, unsigned depth) {
    if (dir.fd() < 0) {
      complain(path + ": cannot be read: " + error_text(dir.error()));
      return;
    }
    recover(dir, path);
    std::vector<std::string> below;
    detail::for_each_entry(dir.fd(), [&](const char* name) {
      struct stat status {};
      const bool is_folder =
          fstatat(dir.fd(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
      if (is_folder && std::string_view(name) != "." && std::string_view(name) != "..") {
        below.emplace_back(name);
      }
    });
    std::sort(below.begin(), below.end(), natural_less);
    for (const std::string& name : below) {
      const std::string deeper = (fs::path(path) / name).string();
      // Limit the depth, because all directories on the path stay open.
      constexpr unsigned max_folders = 200;
      if (depth == max_folders) {
        complain(deeper + ": nested too deeply, not read");
        continue;
      }
      visit(directory(dir, name), deeper, depth + 1);
    }
  }

  int finish() {
    const auto processes = [](std::uint64_t n) { return counted(n, "process", "processes"); };
    const bool nothing = sum_.files == 0 && sum_.running == 0 && sum_.busy == 0;
    out_ << "recovered " << sum_.records << " records";
    if (sum_.files > 0) out_ << " of " << processes(sum_.files);
    if (nothing && status_ == exit_fine) out_ << ": all records are in the logs already";
    if (sum_.running > 0) out_ << "; still recording: " << processes(sum_.running);
    if (sum_.busy > 0) out_ << "; being recovered by another command: " << processes(sum_.busy);
    out_ << '\n';
    return status_;
  }

 private:
  void recover(const directory& dir, const std::string& path) {
    left_files left;
    const detail::recovery r = detail::recover_directory(
        dir.fd(), detail::recovery_limits{},
        [&](const char* name, dead_ring_file::state state, int error) {
          left.add((fs::path(path) / name).string(), why_left(state, error) + "; left as it is");
        });
    if (r.error != 0) {
      complain((fs::path(path) / r.failed_log).string() +
               ": cannot be appended to: " + (detail::is_refusal(r.error) ? "it " : "") +
               detail::file_error_text(r.error) + "; what is left can be recovered later");
    }
    left.tell([this](const std::string& text) { complain(text); });
    if (r.lost > 0) {
      err_ << printable_line(path) << ": " << lost_text(r.lost) << '\n';
    }
    if (r.records > 0) {
      out_ << printable_line(path) << ": " << r.records << " records put into the logs\n";
    }
    sum_.files += r.files;
    sum_.records += r.records;
    sum_.running += r.running;
    sum_.busy += r.busy;
  }

  void complain(const std::string& text) {
    err_ << printable_line(text) << '\n';
    status_ = exit_bad_input;
  }

  std::ostream& out_;
  std::ostream& err_;
  detail::recovery sum_;
  int status_ = exit_fine;
};

}  // namespace

bool is_ring_file_name(std::string_view name) {
  const std::string_view start = detail::ring_file_start;
  return name.substr(0, start.size()) == start;
}

std::map<std::string, std::uint64_t> count_in_lost_records(const std::string& dir,
                                                           std::string_view prefix,
                                                           logs_by_folder& files,
                                                           diagnostic_log& diagnostics,
                                                           std::uint64_t max_bytes) {
  std::map<std::string, std::uint64_t> lost;
  const directory opened(dir);
  if (opened.fd() < 0) return lost;
  const auto buffer = std::make_unique<detail::drain_buffer>();
  tailed_logs logs(dir, files, max_bytes);
  std::uint64_t records = 0;
  left_files left;
  detail::for_each_entry(opened.fd(), [&](const char* name) {
    if (!is_ring_file_name(name)) return;
    const std::string path = (fs::path(dir) / name).string();
    dead_ring_file ring_file;
    const auto state = ring_file.open(opened.fd(), name, false, detail::file_owners{});
    switch (state) {
      case dead_ring_file::state::damaged:
      case dead_ring_file::state::other_version:
      case dead_ring_file::state::refused:
        return left.add(path, why_left(state, ring_file.error()) + "; ignored");
      case dead_ring_file::state::busy:
        return left.add(path, "is being recovered right now; run the command again later");
      case dead_ring_file::state::gone:
      case dead_ring_file::state::running:
        return;
      case dead_ring_file::state::doubted:
      case dead_ring_file::state::opened:
        break;
    }
    if (prefix != ring_file.header().prefix) return;
    if (ring_file.read_blocks() != 0) return left.add(path, "needs more memory");
    const std::uint64_t doubted = ring_file.for_each_ring([&](ring_copy& copy) {
      const std::uint64_t in_memory = copy.ring().committed().in_memory;
      if (in_memory > 0) lost[name + std::strlen(detail::ring_file_start)] += in_memory;
      records += add_ring(ring_file, copy, logs, *buffer);
    });
    if (add_aggregates(ring_file, logs) != 0) left.add(path, "needs more memory");
    if (!logs.has_room(0)) {
      left.add(path,
               "has more records than are counted; `lotus-tool recover` puts it into the logs");
    }
    if (doubted > 0) left.add(path, "damaged; invalid records are ignored");
    if (ring_file.being_recovered()) {
      left.add(path, "another process is recovering it; run the command again for exact numbers");
    }
  });
  left.tell([&](const std::string& text) { diagnostics.warning(text); });
  if (records > 0) {
    diagnostics.note(
        dir + ": " + std::to_string(records) +
        " records of killed processes are counted in; `lotus-tool recover` puts them into "
        "the logs");
  }
  return lost;
}

int run_recover(const recover_options& options, std::ostream& out, std::ostream& err) {
  std::error_code error;
  if (!fs::is_directory(options.dir, error)) {
    throw input_error(options.dir + ": no such directory; give the folder that holds the logs");
  }
  recoverer all(out, err);
  all.visit(directory(options.dir), options.dir, 0);
  return all.finish();
}

namespace {

/// Calls `each(ending, records)` for each ring file whose lost records no information file counts.
/// A damaged ring file is kept after its recovery, which has counted its lost records.
template <class Each>
void for_each_uncounted(const run_files& run, const run_processes& processes, Each each) {
  for (const auto& [ending, records] : run.lost_in_rings) {
    const process_info* const process = processes.process_named(ending);
    if (process == nullptr || process->records.lost == 0) each(ending, records);
  }
}

}  // namespace

record_counts counted_records(const run_files& run, const run_processes& processes) {
  record_counts all = processes.records();
  for_each_uncounted(run, processes,
                     [&](const std::string&, std::uint64_t records) { all.lost += records; });
  return all;
}

void report_losses(const run_files& run, diagnostic_log& diagnostics) {
  const run_processes processes = run_processes::read(run.info_dir, run.earlier_info);
  if (const std::string left = processes.left(run.info_dir); !left.empty()) {
    diagnostics.warning(left);
  }
  const record_counts records = counted_records(run, processes);
  if (records.dropped > 0) diagnostics.warning(run.info_dir + ": " + dropped_text(records));
  if (records.lost > 0) diagnostics.warning(run.info_dir + ": " + lost_text(records.lost));
  if (records.whole_from_ns != 0) diagnostics.note(run.info_dir + ": " + deleted_text(records));
}

void add_lost_to_copies(const run_files& run, const std::string& to) {
  const run_processes processes = run_processes::read(run.info_dir, run.earlier_info);
  for_each_uncounted(run, processes, [&](const std::string& ending, std::uint64_t records) {
    const std::string path =
        (std::filesystem::path(to) / (lotus::detail::run_info_start + ending)).string();
    std::ofstream copy(path, std::ios::binary | std::ios::app);
    copy << "lost " << records << '\n';
    if (!copy.flush()) throw input_error(path + ": cannot be written");
  });
}

}  // namespace lotus::tool
