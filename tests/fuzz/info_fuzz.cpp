// Fuzzes the reader of information files: it must read any bytes without an error, and it must be
// possible to print the resulting information about processes.
#include <cstddef>
#include <cstdint>

#include "fuzz.hpp"
#include "fuzz_folder.hpp"
#include "log/process_info.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz_folder place("info");
  // The two halves of the input become the files of two processes, because a process may be the
  // parent of another one.
  const std::size_t half = size / 2;
  place.write(".lotus_info_1_1", data, half);
  place.write(".lotus_info_2_2", data + half, size - half);
  const auto processes = lotus::tool::run_processes::read(place.path().string());
  for (std::uint64_t tid = 0; tid < 32; ++tid) {
    const lotus::tool::process_info* process = processes.process_of(tid);
    if (process == nullptr) continue;
    require(!process->title().empty());
    processes.parent_of(*process);
  }
  return 0;
}
