#include "base/files/output_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/files/unfinished.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using lotus::tool::input_error;
using lotus::tool::output_file;
using lotus::tool_test::read_file;
using lotus::tool_test::temp_dir;
namespace fs = std::filesystem;

TEST_CASE("an output appears only when it is complete, without other files") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.path() + "/a.json";
  const std::string text(1'000'000, 'x');
  {
    output_file file(path, out);
    file.write(text);
    CHECK_FALSE(fs::exists(path));
    file.commit();
  }
  CHECK(read_file(path) == text);
  CHECK(dir.names().size() == 1);
}

TEST_CASE("without commit the old output stays and the new one is deleted") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.file("a.json", "old");
  { output_file(path, out).write(std::string(1'000'000, 'x')); }
  CHECK(read_file(path) == "old");
  CHECK(dir.names().size() == 1);
}

TEST_CASE("an output replaces a symbolic link and leaves its target unchanged") {
  const temp_dir dir;
  std::ostringstream out;
  dir.file("real/old.json", "old");
  fs::create_symlink("real/old.json", dir.path() + "/link");
  fs::create_symlink("real/new.json", dir.path() + "/dangling");
  fs::create_symlink("/dev/null", dir.path() + "/device");
  for (const auto* name : {"/link", "/dangling", "/device"}) {
    output_file file(dir.path() + name, out);
    file.write("new");
    file.commit();
    CHECK_FALSE(fs::is_symlink(dir.path() + name));
    CHECK(read_file(dir.path() + name) == "new");
  }
  CHECK(read_file(dir.path() + "/real/old.json") == "old");
  CHECK_FALSE(fs::exists(dir.path() + "/real/new.json"));
  fs::create_directory_symlink("real", dir.path() + "/folder");
  CHECK_THROWS_AS(output_file(dir.path() + "/folder", out), input_error);
}

TEST_CASE("an output can be an open descriptor, whose existing content is kept") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.file("appended", "before,");
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  for (const auto* folder : {"/dev/fd/", "/proc/self/fd/"}) {
    output_file file(folder + std::to_string(descriptor), out);
    file.write("behind,");
    file.commit();
  }
  ::close(descriptor);
  CHECK(read_file(path) == "before,behind,behind,");
  CHECK_THROWS_AS(output_file("/dev/fd/" + std::to_string(descriptor), out), input_error);
}

TEST_CASE("an output can be a named pipe") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.path() + "/pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  output_file file(path, out);
  file.write("through");
  file.commit();
  std::array<char, 16> got{};
  CHECK(::read(reader, got.data(), got.size()) == 7);
  CHECK(std::string(got.data()) == "through");
  ::close(reader);
  CHECK(fs::is_fifo(path));
}

TEST_CASE("an output keeps the permissions of the file that it replaces") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.file("a.json", "old");
  REQUIRE(::chmod(path.c_str(), 0604) == 0);
  output_file file(path, out);
  file.commit();
  CHECK((fs::status(path).permissions() & fs::perms::all) == fs::perms{0604});
}

TEST_CASE("a device is written directly, and - means standard output") {
  std::ostringstream out;
  output_file nowhere("/dev/null", out);
  nowhere.write("x");
  nowhere.commit();
  CHECK(fs::exists("/dev/null"));
  output_file standard("-", out);
  standard.write("to the stream");
  standard.commit();
  CHECK(out.str() == "to the stream");
}

TEST_CASE("an output that cannot be written is an error that says why") {
  const temp_dir dir;
  std::ostringstream out;
  CHECK_THROWS_WITH(output_file(dir.path() + "/no/where.json", out),
                    Catch::Contains("there is no directory"));
  CHECK_THROWS_AS(output_file(dir.path(), out), input_error);
  output_file full("/dev/full", out);
  full.write("x");
  CHECK_THROWS_WITH(full.commit(), Catch::Contains("No space left"));
}

TEST_CASE("gunzip can read a compressed output") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.path() + "/a.gz";
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i);
  output_file file(path, out, true);
  file.write(text);
  file.commit();
  std::string back;
  gzFile in = gzopen(path.c_str(), "rb");
  std::array<char, 65536> block{};
  int n = 0;
  while ((n = gzread(in, block.data(), block.size())) > 0)
    back.append(block.data(), static_cast<std::size_t>(n));
  gzclose(in);
  CHECK(back == text);
  CHECK(fs::file_size(path) < text.size());
}

namespace {

/// Runs `body` in a child process that is then killed, so it cannot remove its temporary files.
template <class Body>
void killed(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace

TEST_CASE("the next output deletes the leftovers of a killed process and no other file") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.path() + "/o.k";
  output_file living(path, out);
  killed([&] { new output_file(path, out); });
  killed([&] { new output_file(dir.path() + "/other", out); });
  dir.file(".o.k.backup", "a user's");
  dir.file(".o.k.lotus_backups", "a user's");
  fs::create_symlink(".o.k.backup", dir.path() + "/.o.k.lotus_aaaaaa");
  REQUIRE(dir.names().size() == 6);
  {
    output_file next(path, out);
    // A new temporary file exists; the one of the killed process was removed.
    CHECK(dir.names().size() == 6);
    next.commit();
  }
  living.commit();
  const std::vector<std::string> left = dir.names();
  REQUIRE(left.size() == 5);
  CHECK(left[0] == ".o.k.backup");
  CHECK(left[1] == ".o.k.lotus_aaaaaa");
  CHECK(left[2] == ".o.k.lotus_backups");
  CHECK(left[3].rfind(".other.lotus_", 0) == 0);
  CHECK(left[4] == "o.k");
}

TEST_CASE("a scratch folder of a killed process is deleted, and that of a running one is kept") {
  const temp_dir dir;
  const lotus::tool::scratch_folder living(dir.path());
  killed([&] {
    const auto* const left = new lotus::tool::scratch_folder(dir.path());
    std::ofstream(left->file("a")) << "text";
  });
  REQUIRE(dir.names().size() == 2);
  const lotus::tool::scratch_folder next(dir.path());
  CHECK(dir.names().size() == 2);
  CHECK(fs::exists(living.path()));
  CHECK(fs::exists(next.path()));
}

TEST_CASE("an output can have a name of the maximum length") {
  const temp_dir dir;
  std::ostringstream out;
  const std::string path = dir.path() + '/' + std::string(255, 'x');
  output_file(path, out).commit();
  CHECK(fs::exists(path));
}
