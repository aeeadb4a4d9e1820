// Tests a directory to which other users can write. Whatever they put there, nothing outside the
// directory may change, nothing may hang, and the lines of other runs must remain.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "forged_ring.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using namespace support;

TEST_CASE("recovery does not write through a link in place of a log") {
  const temp_directory run;
  const temp_directory outside;
  const fs::path target = outside.path() / "target";
  const std::string text = "precious\n";
  std::ofstream{target} << text;
  forged_ring forged;
  bool hard = false;
  SECTION("symbolic link to a file, with records to append") {
    fs::create_symlink(target, run.path() / worker_log(77));
  }
  SECTION("symbolic link to a file, with a torn append to cut off") {
    fs::create_symlink(target, run.path() / worker_log(77));
    struct stat status {};
    stat(target.c_str(), &status);
    forged.logs[1] = {status.st_ino, 0, true};
    forged.records = 0;
  }
  SECTION("symbolic link to a file that does not exist") {
    fs::create_symlink(outside.path() / "new", run.path() / worker_log(77));
  }
  SECTION("hard link") {
    hard = true;
    fs::create_hard_link(target, run.path() / worker_log(77));
  }
  forged.write(run.path() / ".lotus_ring_1_1");
  const auto result = recover(run.path());
  if (forged.records > 0) {
    CHECK(result.error == (hard ? lotus::detail::has_other_names : ELOOP));
    CHECK(std::string{result.failed_log} == worker_log(77));
  }
  CHECK(read_file(target) == text);
  CHECK(!fs::exists(outside.path() / "new"));
  // A link has the name of the log. start(), which recovers the ring, must not write through this
  // link, and must report the name of the log if the ring contains records.
  CHECK(in_child([&] {
          if (record_one(run.path()) != 0) return 1;
          return forged.records == 0 || heard(worker_log(77)) ? 0 : 2;
        }) == 0);
  CHECK(read_file(target) == text);
}

TEST_CASE("recovery does not truncate a log by more than one append may have left") {
  const temp_directory run;
  const fs::path log = run.path() / worker_log(77);
  const std::string lines(200'000, 'x');
  std::ofstream{log} << lines;
  struct stat status {};
  stat(log.c_str(), &status);
  forged_ring forged;
  forged.records = 0;
  forged.logs[1] = {status.st_ino, 0, true};
  forged.write(run.path() / ".lotus_ring_1_1");
  recover(run.path());
  CHECK(fs::file_size(log) == lines.size());
}

TEST_CASE("recording does not write through a symbolic link in place of a log") {
  const temp_directory run;
  const temp_directory outside;
  const fs::path target = outside.path() / "target";
  std::ofstream{target} << "precious\n";
  const int status = in_child([&] {
    fs::create_symlink(target, run.path() / worker_log(static_cast<std::uint32_t>(gettid())));
    if (!lotus::start(noting(run.path()))) return 1;
    { LOTUS_SCOPE("One"); }
    lotus::flush();
    { LOTUS_SCOPE("Two"); }
    lotus::flush();
    lotus::stop();
    // The library must report once that the log is a symbolic link, with the name of the log.
    if (support::collected_messages::count("is a symbolic link") != 1) return 2;
    return heard("worker_pid_") ? 0 : 3;
  });
  CHECK(status == 0);
  CHECK(read_file(target) == "precious\n");
  // The records must be kept, so that they can be recovered after the link was removed.
  for (const auto& entry : fs::directory_iterator(run.path())) {
    if (entry.is_symlink()) fs::remove(entry.path());
  }
  recover(run.path());
  CHECK(read_logs(run.path()).size() == 2);
}

TEST_CASE("names and prefix of a forged ring create no extra lines and no files elsewhere") {
  const temp_directory run;
  forged_ring forged;
  forged.name = "SGood,1,2\nSBatchWait_7,";
  forged.write(run.path() / ".lotus_ring_1_1");
  CHECK(recover(run.path()).records == 1);
  const auto lines = read_logs(run.path());  // read_logs() throws if a line is malformed
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].name.find("Wait_7") != std::string::npos);
  CHECK(lines[0].name.find('%') != std::string::npos);

  fs::create_directory(run.path() / "deep");
  for (const char* prefix : {"../up", "/tmp/abs", "", "a\nb"}) {
    forged_ring other;
    other.prefix = prefix;
    other.write(run.path() / "deep" / ".lotus_ring_1_1");
    CHECK(recover(run.path() / "deep").damaged == 1);
  }
  CHECK(count_files(run.path(), "up") == 0);
}

TEST_CASE("is_line_start accepts names as the library writes them, and no malformed ones") {
  for (const char* raw : {"Crop, twice", "Batch", " x ", "100%", "\"q\"", "\xc3\xa4", "", "%2C"}) {
    char line[lotus::detail::max_line_name_bytes + 1];
    std::size_t bytes = lotus::detail::write_line_name(raw, line);
    line[bytes++] = ',';
    CHECK(lotus::detail::is_line_start({line, bytes}));
  }
  for (const char* bad :
       {"", "S", "Sa", "a,", "Sa\n,", "Sa,b,", "SBatchWait_1,", "S%2,", "S%2c,"}) {
    CHECK_FALSE(lotus::detail::is_line_start(bad));
  }
}

TEST_CASE("a huge sparse ring of zeros adds no lines") {
  const temp_directory run;
  forged_ring forged;
  forged.records = 0;
  std::string bytes = forged.bytes();
  auto* ring = reinterpret_cast<lotus::detail::ring_block*>(bytes.data() +
                                                            forged_ring::header_bytes + 65536);
  ring->capacity = 1U << 24;
  ring->published[0] = 1U << 24;
  ring->header.bytes = (lotus::detail::ring_block::bytes_for(1U << 24) + 4095) / 4096 * 4096;
  const fs::path path = run.path() / ".lotus_ring_1_1";
  std::ofstream{path, std::ios::binary} << bytes;
  fs::resize_file(path, forged_ring::header_bytes + 65536 + ring->header.bytes);
  CHECK(in_child([&] {
          if (!lotus::start(noting(run.path()))) return 1;
          lotus::stop();
          return heard("damaged") ? 0 : 2;
        }) == 0);
  CHECK(read_logs(run.path()).empty());
}

TEST_CASE("recovery keeps the records before one that no process can have stored") {
  const temp_directory run;
  forged_ring forged;
  forged.records = 100;
  std::string bytes = forged.bytes();
  auto* ring = reinterpret_cast<lotus::detail::ring_block*>(bytes.data() +
                                                            forged_ring::header_bytes + 65536);
  ring->slot(0, 60).tag = lotus::detail::record_tag{static_cast<lotus::detail::event_kind>(200), 1};
  std::ofstream{run.path() / ".lotus_ring_1_1", std::ios::binary} << bytes;
  const auto result = recover(run.path());
  CHECK(result.records == 60);
  CHECK(result.doubted == 1);
  CHECK(read_logs(run.path()).size() == 60);
  // The ring file is kept, because it contains a damaged record that is in no log. A second
  // recovery must add nothing to the logs.
  CHECK(fs::exists(run.path() / ".lotus_ring_1_1"));
  CHECK(recover(run.path()).records == 0);
  CHECK(in_child([&] {
          if (!lotus::start(noting(run.path()))) return 1;
          lotus::stop();
          return heard(".lotus_ring_1_1 is damaged") ? 0 : 2;
        }) == 0);
  CHECK(read_logs(run.path()).size() == 60);
  CHECK(fs::exists(run.path() / ".lotus_ring_1_1"));
}

TEST_CASE("a name id with two different names is damage, and the ring file is kept") {
  const temp_directory run;
  const std::string again = GENERATE("SForged,", "SForger,");
  const bool harm = again != "SForged,";
  forged_ring forged;
  forged.records = 100;
  forged.aggregates = true;
  std::string bytes = forged.bytes();
  auto* names =
      reinterpret_cast<lotus::detail::names_block*>(bytes.data() + forged_ring::header_bytes);
  char* const second = names->entries() + names->used_bytes;
  const lotus::detail::stored_name head{1, static_cast<std::uint32_t>(again.size())};
  std::memcpy(second, &head, sizeof(head));
  std::copy(again.begin(), again.end(), second + sizeof(head));
  names->used_bytes += lotus::detail::padded_name_bytes(again.size());
  std::ofstream{run.path() / ".lotus_ring_1_1", std::ios::binary} << bytes;
  for (int i = 0; i < 2; ++i) {
    const auto result = recover(run.path());
    CHECK(result.records == (harm || i == 1 ? 0 : 100));
    CHECK(result.doubted == (harm ? 1 : 0));
    CHECK(fs::exists(run.path() / ".lotus_ring_1_1") == harm);
  }
}

TEST_CASE("recovering a kept ring file again does not append its aggregates again") {
  const temp_directory run;
  forged_ring forged;
  forged.aggregates = true;
  std::string bytes = forged.bytes();
  bytes += std::string(4096, '\xff');  // a block whose kind does not exist
  std::ofstream{run.path() / ".lotus_ring_1_1", std::ios::binary} << bytes;
  CHECK(recover(run.path()).doubted == 1);
  const fs::path file = run.path() / ".lotus_aggregated_lotustrace_log_1";
  const std::string once = support::read_file(file);
  CHECK(!once.empty());
  CHECK(recover(run.path()).doubted == 1);
  CHECK(support::read_file(file) == once);
  CHECK(read_logs(run.path()).size() == 1);
  CHECK(fs::exists(run.path() / ".lotus_ring_1_1"));
}

TEST_CASE("pipes and links to devices in the directory do not hang the library") {
  const temp_directory run;
  const char* const names[] = {".lotus_new_1_1", ".lotus_ring_1_1", ".lotus_info_1_1",
                               ".lotus_samples_1_1", "lotustrace_log_main_pid_1"};
  const bool pipes = GENERATE(true, false);
  for (const char* name : names) {
    const fs::path path = run.path() / name;
    if (pipes) {
      REQUIRE(mkfifo(path.c_str(), 0666) == 0);
    } else {
      fs::create_symlink("/dev/zero", path);
    }
  }
  const int status = in_child([&] {
    const fs::path own = run.path() / worker_log(static_cast<std::uint32_t>(gettid()));
    if (pipes ? mkfifo(own.c_str(), 0666) != 0 : symlink("/dev/full", own.c_str()) != 0) return 9;
    forged_ring forged;
    forged.write(run.path() / ".lotus_ring_2_2");
    const fs::path log = run.path() / worker_log(77);
    if (pipes ? mkfifo(log.c_str(), 0666) != 0 : symlink("/dev/full", log.c_str()) != 0) return 8;
    if (record_one(run.path()) != 0) return 1;
    recover(run.path());
    return heard(pipes ? "is no regular file" : "is a symbolic link") ? 0 : 2;
  });
  CHECK(status == 0);
}

TEST_CASE("a ring that changes and shrinks during recovery does no harm") {
  const temp_directory run;
  fs::create_directory(run.path() / "deep");
  forged_ring forged;
  forged.capacity = 65536;
  forged.records = 65536;
  const std::string bytes = forged.bytes();
  const fs::path path = run.path() / "deep" / ".lotus_ring_1_1";
  for (int round = 0; round < 25; ++round) {
    std::ofstream{path, std::ios::binary} << bytes;
    // This child process plays another user, who keeps shortening the file and extending it to its
    // old size. If the reader used a shared mapping of the file, a read beyond its end would cause
    // SIGBUS.
    const pid_t attacker = fork();
    if (attacker == 0) {
      const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
      const std::uint32_t index[] = {0, 1, 0x7fffffff, 0xffffffff};
      const std::size_t ring = forged_ring::header_bytes + 65536;
      for (std::uint32_t i = 0;; ++i) {
        const auto put = [&](const void* data, std::size_t n, std::size_t at) {
          if (pwrite(fd, data, n, static_cast<off_t>(at)) < 0) _exit(0);
        };
        put(&index[i % 4], 4, ring + offsetof(lotus::detail::ring_block, commit_index));
        put(i % 2 == 0 ? "../E" : "lotu", 4, offsetof(lotus::detail::ring_file_header, prefix));
        put(&index[i % 4], 4, offsetof(lotus::detail::ring_file_header, clock_index));
        if (i % 64 == 63) {
          if (ftruncate(fd, static_cast<off_t>(i / 64 % 7 * bytes.size() / 7)) != 0) _exit(0);
          put(bytes.data(), bytes.size(), 0);
        }
      }
    }
    usleep(static_cast<useconds_t>(round * 40));
    CHECK(in_child([&] {
            recover(run.path() / "deep");
            return 0;
          }) == 0);
    kill(attacker, SIGKILL);
    waitpid(attacker, nullptr, 0);
    for (const auto& entry : fs::directory_iterator(run.path())) {
      CHECK(entry.path().filename() == "deep");
    }
    fs::remove_all(run.path() / "deep");
    fs::create_directory(run.path() / "deep");
  }
}

TEST_CASE("a message stays one line if it contains a file name with a line break") {
  const temp_directory run;
  std::ofstream{run.path() / ".lotus_ring_1\n\x1b[2J"} << "x";
  CHECK(in_child([&] {
          if (record_one(run.path()) != 0) return 1;
          return heard("is not a ring file") && !heard("\x1b") ? 0 : 2;
        }) == 0);
}
