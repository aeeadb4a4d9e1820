// Fuzzes the reader of mappings: it must read or reject any text. If it reads a mapping, it must be
// possible to print the mapping, and to write it and read the same mapping again.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "commands/map/map_build.hpp"
#include "fuzz.hpp"
#include "fuzz_file.hpp"
#include "mapping/mapping.hpp"

namespace {

std::string written(const lotus::tool::mapping& m) {
  std::ostringstream text;
  lotus::tool::output_file out("-", text);
  lotus::tool::write_mapping(m, out);
  out.commit();
  return text.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz_file place("mapping");
  place.write(data, size);
  lotus::tool::mapping read;
  try {
    read = lotus::tool::read_mapping(place.path());
  } catch (const lotus::tool::input_error&) {
    return 0;  // the input was rejected
  }
  std::ostringstream printed;
  lotus::tool::print_mapping(read, printed);
  lotus::tool::print_mapping_csv(read, printed);
  const std::string text = written(read);
  place.write(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());  // NOLINT
  require(written(lotus::tool::read_mapping(place.path())) == text);
  return 0;
}
