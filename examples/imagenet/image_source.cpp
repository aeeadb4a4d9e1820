#include "imagenet/image_source.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/synthetic.hpp"
#include "imagenet/options.hpp"

namespace fs = std::filesystem;

namespace imagenet {
namespace {

std::string make_temporary_directory() {
  std::string path = (fs::temp_directory_path() / "imagenet_pipeline.XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    throw std::system_error{errno, std::generic_category(), path};
  return path;
}

/// Makes sure that only one process at a time generates images in a directory. Creates the
/// directory if it is missing.
class directory_lock {
 public:
  explicit directory_lock(const std::string& path) {
    fs::create_directories(path);
    descriptor_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX) != 0) {
      throw std::system_error{errno, std::generic_category(), path};
    }
  }
  directory_lock(const directory_lock&) = delete;
  directory_lock& operator=(const directory_lock&) = delete;
  ~directory_lock() { close(descriptor_); }

 private:
  int descriptor_;
};

std::string kilobytes(double bytes) {
  return std::to_string(std::lround(bytes / 1000)) + " KB";
}

/// Generates the images, unless an earlier run did so. Returns their directory.
std::string made_images(const std::string& parent, const pipeline_options& chosen) {
  const fs::path set = fs::path{parent} / ("images_" + std::to_string(chosen.count) + "_seed_" +
                                           std::to_string(chosen.seed));
  const directory_lock alone{parent};
  const bool exists = fs::exists(set);
  if (!exists) {
    std::cout << "making " << chosen.count << " images ..." << std::endl;
    make_images(set.string(), chosen.count, chosen.seed);
  }
  const file_sizes sizes = measure_images(set.string());
  std::cout << (exists ? "found " : "made ") << sizes.count << " images in " << set.string()
            << ": mean " << kilobytes(sizes.mean_bytes) << ", std " << kilobytes(sizes.std_bytes)
            << " (ImageNet: " << kilobytes(mean_bytes) << ", " << kilobytes(std_bytes) << ")"
            << std::endl;
  return set.string();
}

}  // namespace

image_source::image_source(const pipeline_options& chosen) {
  if (!chosen.images.empty()) {
    files_ = list_images(chosen.images);
    return;
  }
  std::string parent = chosen.make_images;
  if (parent.empty()) parent = temporary_directory_ = make_temporary_directory();
  try {
    files_ = list_images(made_images(parent, chosen));
  } catch (...) {
    remove_temporary_directory();
    throw;
  }
}

image_source::~image_source() {
  remove_temporary_directory();
}

void image_source::remove_temporary_directory() {
  std::error_code ignored;
  if (!temporary_directory_.empty()) fs::remove_all(temporary_directory_, ignored);
}

}  // namespace imagenet
