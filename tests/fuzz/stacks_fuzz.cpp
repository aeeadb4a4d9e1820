// Fuzzes the reader of files of stacks: it must read or reject any lines, and it must be possible
// to unwind every stack.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "fuzz.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/stack_files.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace {

namespace fs = std::filesystem;

struct workplace {
  workplace() {
    std::string name = std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") +
                       "/lotus_stacks_fuzz_XXXXXX";
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
  {
    std::ofstream out(place.path / (std::string(lotus::detail::stacks_file_start) + "1_a"),
                      std::ios::binary);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));  // NOLINT
  }
  std::ostringstream err;
  lotus::tool::diagnostic_log diagnostics(err, false);
  lotus::tool::run_files run;
  run.dir = run.info_dir = place.path.string();
  std::vector<lotus::tool::process_waits> processes(1);
  processes[0].ending = "1_a";
  processes[0].samples.resize(1);
  processes[0].samples[0].time_ns = 1;
  processes[0].samples[0].tid = 1;
  lotus::tool::find_stacks(run, processes, diagnostics);
  lotus::tool::unwound_stacks stacks(run, diagnostics);
  const lotus::tool::process_stacks& recorded = stacks.read("1_a");
  constexpr int max_unwound = 20;
  int unwound = 0;
  for (const auto& [number, stack] : recorded.by_number) {
    require(stack.code < recorded.code.size());
    require(stack.copy.bytes.size() <= lotus::tool::stack_copy::max_bytes);
    if (unwound++ < max_unwound) stacks.add("1_a", number);
  }
  stacks.name_all();
  for (const auto& [number, stack] : recorded.by_number) stacks.of("1_a", number);
  return 0;
}
