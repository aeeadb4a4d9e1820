// Fuzzes the merging of a run into a profiler's trace: any bytes must be read without an error. If
// the input is accepted as a trace, the result with an added event must be valid JSON.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "accelerator/trace/torch_trace.hpp"
#include "base/files/byte_stream.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/json_reader.hpp"
#include "fuzz.hpp"

using namespace lotus::tool;

namespace {

class memory_file {
 public:
  /// Replaces the content of the file by the `size` bytes at `data`. Returns the path of the file.
  const std::string& holding(const void* data, std::size_t size) {
    require(ftruncate(file_, 0) == 0);
    require(pwrite(file_, data, size, 0) == static_cast<ssize_t>(size));
    return path_;
  }

 private:
  int file_ = memfd_create("bytes", MFD_CLOEXEC);
  std::string path_ = "/proc/self/fd/" + std::to_string(file_);
};

bool is_json(const std::string& text) {
  static memory_file file;
  byte_stream stream(file.holding(text.data(), text.size()));
  json_events ignore;
  return !stream_json(stream, ignore);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static memory_file input;
  const std::string& path = input.holding(data, size);
  json_scan scan;
  try {
    scan = scan_json(path);
  } catch (const std::exception&) {
    return 0;  // the gzip data is damaged
  }
  if (scan.kind != json_kind::trace) return 0;
  std::ostringstream result;
  output_file out("-", result);
  scan.trace.copy_head(out, "\"lotus_tool\":\"1\"");
  out.write(scan.trace.has_events ? ",{\"ph\":\"X\"}" : "{\"ph\":\"X\"}");
  scan.trace.copy_rest(out);
  out.commit();
  require(is_json(result.str()));
  return 0;
}
