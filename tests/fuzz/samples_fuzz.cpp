// Fuzzes the reader of sample files: it must read or reject any bytes. Every sample must have a
// time and, if its address was mapped, a module.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "fuzz.hpp"
#include "fuzz_file.hpp"
#include "sampling/read/sample_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz_file place("samples");
  place.write(data, size);
  std::ostringstream err;
  lotus::tool::diagnostic_log diagnostics(err, false);
  try {
    const lotus::tool::samples_file file = lotus::tool::read_samples(place.path(), diagnostics);
    for (const lotus::tool::sample& s : file.samples) {
      require(file.own_threads.count(s.tid) == 0);
      require(file.to_epoch_ns(s.time_ns) >= 0 || !file.clocks.empty());
      const auto* const code = file.modules.find(s);
      require(code == nullptr || (code->begin <= s.address && s.address < code->end));
    }
  } catch (const lotus::tool::input_error&) {
    return 0;  // the input was rejected
  }
  return 0;
}
