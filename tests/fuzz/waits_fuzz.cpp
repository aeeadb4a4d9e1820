// Fuzzes the reader of files of waits: it must read or reject any lines. Every sample must have a
// known reason, a time that is not before that of the previous one, and a text of one line.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/diagnostics.hpp"
#include "fuzz.hpp"
#include "fuzz_folder.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/waits/wait_reasons.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/join/blocked_on.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz_folder place("waits");
  place.write(std::string(lotus::detail::waits_file_start) + "1_a", data, size);
  std::ostringstream err;
  lotus::tool::diagnostic_log diagnostics(err, false);
  lotus::tool::run_files run;
  run.dir = run.info_dir = place.path().string();
  const std::string word = "a\xff\n";
  for (const lotus::tool::process_waits& process : lotus::tool::read_waits(run, diagnostics)) {
    require(process.ending == "1_a" && !process.samples.empty());
    std::int64_t last_ns = INT64_MIN;
    for (const lotus::tool::wait_sample& sample : process.samples) {
      require(static_cast<std::size_t>(sample.reason) < lotus::detail::wait_reasons);
      require(sample.time_ns >= last_ns);
      last_ns = sample.time_ns;
      lotus::tool::blocked_on one;
      one.reason = sample.reason;
      one.what = lotus::tool::what_of(sample);
      one.held_by = word;
      // A phrase is part of one line of a table.
      require(lotus::tool::wait_phrase(one, word).find('\n') == std::string::npos);
    }
  }
  return 0;
}
