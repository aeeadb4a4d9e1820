// Fuzzes the reader of files of waits: it must read or reject any lines. Every sample must have a
// known reason, a time that is not before that of the previous one, and a text of one line.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/diagnostics.hpp"
#include "fuzz.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/waits/wait_reasons.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/join/blocked_on.hpp"

namespace {

namespace fs = std::filesystem;

struct workplace {
  workplace() {
    std::string name = std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") +
                       "/lotus_waits_fuzz_XXXXXX";
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
    std::ofstream out(place.path / (std::string(lotus::detail::waits_file_start) + "1_a"),
                      std::ios::binary);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));  // NOLINT
  }
  std::ostringstream err;
  lotus::tool::diagnostic_log diagnostics(err, false);
  lotus::tool::run_files run;
  run.dir = run.info_dir = place.path.string();
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
