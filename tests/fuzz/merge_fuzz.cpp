// Merging into a profiler trace: any bytes are read without a fault, and where an event is put
// into what was taken for a trace the result is JSON.
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "fuzz.hpp"
#include "output_file.hpp"
#include "torch_trace.hpp"

using namespace lotus::tool;

namespace {

/// A file in memory with the input as its content.
const std::string& input_path(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("input", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  require(ftruncate(file, 0) == 0);
  require(pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  return path;
}

bool is_json(const std::string& text) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  rapidjson::BaseReaderHandler<> ignore;
  constexpr unsigned flags = rapidjson::kParseIterativeFlag |
                             rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  return !reader.Parse<flags>(stream, ignore).IsError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string& path = input_path(data, size);
  json_scan scan;
  try {
    scan = scan_json(path);
  } catch (const std::exception&) {
    return 0;  // damaged gzip
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
