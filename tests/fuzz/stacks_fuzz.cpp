// Fuzzes the reader of files of stacks: it must read or reject any lines, and it must be possible
// to unwind every stack.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "fuzz.hpp"
#include "fuzz_folder.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/stack_files.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/stacks/unwound_stacks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz_folder place("stacks");
  place.write(std::string(lotus::detail::stacks_file_start) + "1_a", data, size);
  std::ostringstream err;
  lotus::tool::diagnostic_log diagnostics(err, false);
  lotus::tool::run_files run;
  run.dir = run.info_dir = place.path().string();
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
