// Runs lotus-tool and reads its JSON output. Benchmarks use it to measure how accurate the tool is.
#ifndef LOTUS_BENCH_ASKED_TOOL_HPP
#define LOTUS_BENCH_ASKED_TOOL_HPP

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// A temporary folder. The constructor creates it and throws std::runtime_error if that fails; the
/// destructor removes it.
class temporary_folder {
 public:
  temporary_folder() {
    char folder[] = "/tmp/lotus-whatif-XXXXXX";
    if (mkdtemp(folder) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = folder;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  /// Returns the path of an empty folder inside the temporary folder. If the folder exists, empties
  /// it.
  std::string empty(const std::string& name) const {
    const std::filesystem::path folder = path_ / name;
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    return folder.string();
  }

 private:
  std::filesystem::path path_;
};

class asked_tool {
 public:
  /// @param tool  the path of lotus-tool.
  asked_tool(std::string tool, const temporary_folder& folder)
      : tool_(std::move(tool)), out_(folder.empty("answers") + "/answer.json") {}

  /// Runs a command of lotus-tool and returns its JSON output. Throws std::runtime_error if the
  /// command fails.
  nlohmann::json ask(const std::string& words) const {
    const std::string command = "'" + tool_ + "' " + words + " --json -q >'" + out_ + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    std::ifstream in(out_);
    return nlohmann::json::parse(in);
  }

 private:
  std::string tool_;
  std::string out_;
};

inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1];
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

}  // namespace bench

#endif  // LOTUS_BENCH_ASKED_TOOL_HPP
