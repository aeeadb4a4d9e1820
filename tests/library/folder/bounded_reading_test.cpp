// Tests that memory and time are bounded if files next to the logs are larger or more numerous than
// any process would create, and that a process adds only a bounded amount to these files.

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "forged_ring.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using namespace support;

namespace {

/// Returns whether the disk has room for the large files of a test.
bool has_room(const temp_directory& run) {
  constexpr std::uint64_t bytes = std::uint64_t{1} << 30;
  struct statvfs status {};
  const bool enough =
      statvfs(run.path().c_str(), &status) == 0 && status.f_bavail * status.f_frsize > bytes;
  if (!enough) lotus_test::skip("needs 1 GiB in " + run.path().string());
  return enough;
}

void write_sparse(const fs::path& path, std::uint64_t bytes) {
  std::ofstream{path} << "namespace elsewhere 1\n";
  fs::resize_file(path, bytes);
}

/// Records one scope, without creating a side log. Returns 0 on success.
int record_once(const fs::path& directory) {
  lotus::options o = noting(directory);
  o.cpu_time = false;
  if (!lotus::start(o)) return 1;
  { LOTUS_SCOPE("One"); }
  lotus::stop();
  return 0;
}

/// A forged ring file, split into its blocks.
struct ring_parts {
  std::string header;
  std::string names;
  std::string ring;

  explicit ring_parts(const forged_ring& forged) {
    const std::string all = forged.bytes();
    const std::size_t ring_at = all.size() - forged.ring_bytes();
    header = all.substr(0, forged_ring::header_bytes);
    names = all.substr(forged_ring::header_bytes, ring_at - forged_ring::header_bytes);
    ring = all.substr(ring_at);
  }
};

}  // namespace

TEST_CASE("large and numerous information files do not slow down opening a log") {
  const temp_directory run;
  for (int i = 0; i < 500; ++i) {
    write_sparse(run.path() / (".lotus_info_1_" + std::to_string(i)), std::uint64_t{1} << 30);
  }
  const int status = in_child([&] {
    const std::uint32_t tid = layout::thread_id();
    std::ofstream{run.path() / worker_log(tid)} << "Sbefore,1,1\n";
    return record_once(run.path());
  });
  CHECK(status == 0);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sbefore") == 1);
  CHECK(count_named(lines, "SOne") == 1);
}

TEST_CASE("recovery reads no more blocks of a ring file than a process can have") {
  const temp_directory run{in_memory()};
  if (!has_room(run)) return;
  forged_ring forged;
  forged.capacity = 64;
  forged.records = 0;
  ring_parts parts{forged};
  REQUIRE(parts.ring.size() == layout::min_page_bytes);
  std::ofstream file{run.path() / ".lotus_ring_1_1", std::ios::binary};
  file << parts.header << parts.names;
  for (std::uint32_t i = 0; i < 65'536; ++i) file << parts.ring;
  forged.records = 1;
  file << ring_parts{forged}.ring;
  file.close();
  const auto result = recover(run.path());
  CHECK(result.doubted == 1);
  CHECK(result.records == 0);
  CHECK(count_files(run.path(), ".lotus_ring_") == 1);  // the rejected file must remain
}

TEST_CASE("names in a ring file take bounded memory, and records of later names are unnamed") {
  const temp_directory run{in_memory()};
  if (!has_room(run)) return;
  // In the log, each byte of this name is escaped as three bytes, so the name becomes three times
  // as long.
  forged_ring forged;
  forged.name = std::string(255, '\1');
  const std::size_t entry = layout::padded_name_bytes(forged.name.size());
  ring_parts parts{forged};
  auto& block = *reinterpret_cast<layout::names_block*>(parts.names.data());
  const std::size_t per_block = (parts.names.size() - sizeof(layout::names_block)) / entry;
  block.used_bytes = per_block * entry;
  std::ofstream file{run.path() / ".lotus_ring_1_1", std::ios::binary};
  file << parts.header;
  std::uint32_t id = 0;
  while (id < 400'000) {
    for (std::size_t i = 0; i < per_block; ++i) {
      const layout::stored_name head{++id, static_cast<std::uint32_t>(forged.name.size())};
      std::memcpy(block.entries() + i * entry, &head, sizeof(head));
      std::memcpy(block.entries() + i * entry + sizeof(head), forged.name.data(),
                  forged.name.size());
    }
    file << parts.names;
  }
  auto& ring = *reinterpret_cast<layout::ring_block*>(parts.ring.data());
  ring.published[0] = 2;
  ring.slot(0, 0) = {10, 20, layout::record_tag{layout::event_kind::operation, 1}};
  ring.slot(0, 1) = {11, 21, layout::record_tag{layout::event_kind::operation, id}};
  file << parts.ring;
  file.close();
  const auto result = recover(run.path());
  CHECK(result.doubted == 1);
  CHECK(result.records == 2);
  const std::string log = read_file(run.path() / worker_log(forged.tid));
  CHECK(log.find("S%01%01") == 0);
  CHECK(log.find("\nSname_lost,") != std::string::npos);
}

TEST_CASE("a process that stops and starts has one information file per directory") {
  const temp_directory run;
  const temp_directory other;
  const int status = in_child([&] {
    for (int i = 0; i < 50; ++i) {
      if (record_once(i % 10 == 0 ? other.path() : run.path()) != 0) return 1;
    }
    for (int i = 0; i < 3; ++i) {
      if (record_once(run.path()) != 0) return 2;
    }
    return 0;
  });
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "SOne") == 48);
  // The process has created a new information file in `run` each time it recorded there again after
  // a recording in `other`.
  CHECK(count_files(run.path(), ".lotus_info_") == 5);
  CHECK(count_files(other.path(), ".lotus_info_") == 5);
  std::string reported;
  for (const auto& entry : fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) == 0) {
      reported += read_file(entry.path());
    }
  }
  CHECK(reported.find("\nrecords 12 0\n") != std::string::npos);
}
