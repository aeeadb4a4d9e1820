#include "imagenet/images/image_folder.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

namespace imagenet {
namespace {

bool is_jpeg_name(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg";
}

std::vector<std::string> jpegs_below(const fs::path& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator{directory}) {
    if (entry.is_regular_file() && is_jpeg_name(entry.path())) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<labelled_file> list_all(const std::string& directory) {
  std::vector<fs::path> classes;
  for (const auto& entry : fs::directory_iterator{directory}) {
    if (entry.is_directory()) classes.push_back(entry.path());
  }
  std::sort(classes.begin(), classes.end());
  std::vector<labelled_file> files;
  std::int32_t label = 0;
  for (const fs::path& folder : classes) {
    for (std::string& path : jpegs_below(folder)) files.push_back({std::move(path), label});
    ++label;
  }
  return files;
}

}  // namespace

std::vector<labelled_file> list_images(const std::string& directory) {
  try {
    std::vector<labelled_file> files = list_all(directory);
    if (!files.empty()) return files;
  } catch (const fs::filesystem_error& error) {
    const fs::path& where = error.path1().empty() ? fs::path{directory} : error.path1();
    throw std::runtime_error{where.string() + ": " + error.code().message()};
  }
  throw std::runtime_error{directory + ": no images; expected " + directory + "/CLASS/*.jpg"};
}

}  // namespace imagenet
