// Writes forged ring files byte by byte, as record/ring_layout.hpp defines them, and runs code that
// reads these files.
#ifndef LOTUS_TESTS_FORGED_RING_HPP
#define LOTUS_TESTS_FORGED_RING_HPP

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "lotus/lotus.hpp"
#include "lotus/recovery/recovery.hpp"
#include "messages.hpp"
#include "support.hpp"

namespace support {

namespace layout = lotus::detail;

/// Describes the ring file of one process, with one ring and the names of its records.
struct forged_ring {
  std::string prefix = "lotustrace_log";
  std::uint32_t tid = 77;
  std::uint32_t capacity = 8192;
  std::uint64_t records = 1;
  layout::event_kind kind = layout::event_kind::operation;
  std::string name = "SForged,";
  layout::log_position logs[2] = {};
  /// Whether the file also contains three calls of an aggregated operation: two in its sums, and
  /// the last call, which is stored separately.
  bool aggregates = false;

  static constexpr std::size_t header_bytes =
      (sizeof(layout::ring_file_header) + 4095) / 4096 * 4096;

  std::size_t ring_bytes() const {
    return (layout::ring_block::bytes_for(capacity) + 4095) / 4096 * 4096;
  }

  std::string bytes() const {
    constexpr std::size_t names_bytes = 65536;
    std::string file(header_bytes + names_bytes + ring_bytes(), '\0');
    auto& header = *reinterpret_cast<layout::ring_file_header*>(file.data());
    std::memcpy(header.magic, layout::ring_file_magic, sizeof(header.magic));
    header.layout = layout::ring_file_layout;
    header.header_bytes = header_bytes;
    header.pid = 1;
    std::memcpy(header.prefix, prefix.data(), prefix.size());
    header.clocks[0].begin({1, 1, 1'000'000'000'000'000'000}, {2, 2, 1'000'000'000'000'000'001});

    auto& names = *reinterpret_cast<layout::names_block*>(file.data() + header_bytes);
    names.header.bytes = names_bytes;
    const layout::stored_name head{1, static_cast<std::uint32_t>(name.size())};
    std::memcpy(names.entries(), &head, sizeof(head));
    std::memcpy(names.entries() + sizeof(head), name.data(), name.size());
    names.used_bytes = layout::padded_name_bytes(name.size());
    names.header.kind = layout::block_kind::names;

    auto& ring = *reinterpret_cast<layout::ring_block*>(file.data() + header_bytes + names_bytes);
    ring.header.bytes = ring_bytes();
    ring.tid = tid;
    ring.capacity = capacity;
    ring.published[0] = records;
    for (std::size_t i = 0; i < 2; ++i) ring.commits[0].logs[i] = logs[i];
    for (std::uint64_t i = 0; i < records; ++i) {
      ring.slot(0, i) = {10 + i, 20 + i, layout::record_tag{kind, 1}};
    }
    ring.header.kind = layout::block_kind::ring;
    if (aggregates) file += aggregates_bytes();
    return file;
  }

  std::string aggregates_bytes() const {
    std::string text(4096, '\0');
    auto& block = *reinterpret_cast<layout::aggregates_block*>(text.data());
    block.header.bytes = text.size();
    block.header.kind = layout::block_kind::aggregates;
    block.chain = 1;
    block.threads = 1;
    block.tid = tid;
    auto& one = *reinterpret_cast<layout::stored_aggregate*>(block.chunks());
    one.header = {layout::chunk_kind::aggregate, 1};
    one.key = 1;
    one.count = 2;
    one.sums[0].total_ticks = one.sums[0].self_ticks = 14;
    one.sums[0].in_bucket = layout::bucket_content(7, 2);
    one.sums[0].call = 2;
    auto& octave = *reinterpret_cast<layout::stored_octave*>(&one + 1);
    octave.header = {layout::chunk_kind::octave, 1};
    octave.counts[7] = 2;
    block.used_bytes = sizeof(one) + sizeof(octave);
    block.append({1, 9, 9}, 3);
    return text;
  }

  void write(const fs::path& path) const { std::ofstream{path, std::ios::binary} << bytes(); }
};

inline std::string read_file(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

inline lotus::detail::recovery recover(const fs::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto result = lotus::detail::recover_directory(fd, nullptr);
  close(fd);
  return result;
}

/// Runs `what` in a child process and kills the child after 20 s. Returns the child's exit status;
/// -1 if it was killed.
template <class What>
int in_child(What&& what, uid_t user = 0) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(250);
    if (user != 0 && (setgid(user) != 0 || setuid(user) != 0)) _exit(126);
    _exit(what());
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline bool heard(const std::string& text) {
  return support::collected_messages::count(text) > 0;
}

inline lotus::options noting(const fs::path& directory) {
  support::collected_messages::clear();
  lotus::options o;
  o.log_file = (directory / "lotustrace_log").string();
  o.on_message = &support::collected_messages::add;
  return o;
}

/// Starts a recording, records one scope and stops. Returns 0, or 1 if the recording did not start.
inline int record_one(const fs::path& directory) {
  if (!lotus::start(noting(directory))) return 1;
  { LOTUS_SCOPE("One"); }
  lotus::stop();
  return 0;
}

inline std::string worker_log(std::uint32_t tid) {
  return "lotustrace_log_worker_pid_" + std::to_string(tid);
}

}  // namespace support

#endif  // LOTUS_TESTS_FORGED_RING_HPP
