#include "base/files/byte_stream.hpp"

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "base/errors.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using lotus::tool::byte_stream;
using lotus::tool_test::temp_dir;

namespace {

constexpr std::size_t mebibytes = 70;
constexpr std::size_t mebibyte = std::size_t{1} << 20U;

std::string gzip_of(const temp_dir& dir, const std::string& block) {
  std::string path = dir.path() + "/a.gz";
  gzFile out = gzopen(path.c_str(), "wb1");
  for (std::size_t i = 0; i < mebibytes; ++i) {
    gzwrite(out, block.data(), static_cast<unsigned>(block.size()));
  }
  gzclose(out);
  return path;
}

std::uint64_t bytes_of(const std::string& path) {
  byte_stream in(path);
  return in.pass(UINT64_MAX, [](std::string_view) {});
}

}  // namespace

TEST_CASE("gzip that expands beyond its limit is rejected with advice to gunzip it") {
  const temp_dir dir;
  const std::string zeros(mebibyte, '\0');
  CHECK_THROWS_WITH(bytes_of(gzip_of(dir, zeros)), Catch::Contains("gunzip it"));
  // The reader limits how much a file expands, not how long it is. So it must accept an
  // uncompressed file of the same length.
  std::string plain;
  for (std::size_t i = 0; i < mebibytes; ++i) plain += zeros;
  CHECK(bytes_of(dir.file("a", plain)) == plain.size());
}

TEST_CASE("gzip that expands as much as a trace does is read to the end") {
  const temp_dir dir;
  std::mt19937 random(1);
  std::string block;
  while (block.size() < mebibyte) {
    block += "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::copy_\", \"ts\": " +
             std::to_string(random()) + "}, ";
  }
  CHECK(bytes_of(gzip_of(dir, block)) == mebibytes * block.size());
}
