// Fuzzes the reader of information files: it must read any bytes without an error, and it must be
// possible to print the resulting information about processes.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz.hpp"
#include "log/process_info.hpp"

namespace {

namespace fs = std::filesystem;

struct workplace {
  workplace() {
    std::string name = std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") +
                       "/lotus_info_fuzz_XXXXXX";
    require(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~workplace() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  workplace(const workplace&) = delete;
  workplace& operator=(const workplace&) = delete;

  fs::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const workplace place;
  // The two halves of the input become the files of two processes, because a process may be the
  // parent of another one.
  const char* const text = reinterpret_cast<const char*>(data);  // NOLINT
  const auto half = static_cast<std::streamsize>(size / 2);
  std::ofstream(place.path / ".lotus_info_1_1", std::ios::binary).write(text, half);
  std::ofstream(place.path / ".lotus_info_2_2", std::ios::binary)
      .write(text + half, static_cast<std::streamsize>(size) - half);
  const auto processes = lotus::tool::run_processes::read(place.path.string());
  for (std::uint64_t tid = 0; tid < 32; ++tid) {
    const lotus::tool::process_info* process = processes.process_of(tid);
    if (process == nullptr) continue;
    require(!process->title().empty());
    processes.parent_of(*process);
  }
  return 0;
}
