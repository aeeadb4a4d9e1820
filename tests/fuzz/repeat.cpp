// Runs a fuzzer without libFuzzer, on all inputs of a corpus, which includes inputs that once
// crashed. Each input is used unchanged, and then several times with a few bytes changed.
// Usage: repeat_NAME FOLDER TIMES
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int changed_times = std::stoi(argv[2]);
  std::mt19937_64 random(1);
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    for (int n = 0; n < changed_times && !bytes.empty(); ++n) {
      std::vector<std::uint8_t> changed = bytes;
      for (std::uint64_t k = random() % 4 + 1; k > 0; --k) {
        changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      }
      changed.resize(changed.size() - random() % 2 * (random() % changed.size()));
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
    }
    ++inputs;
  }
  std::cout << inputs << " inputs repeated\n";
  return inputs > 0 ? 0 : 1;
}
