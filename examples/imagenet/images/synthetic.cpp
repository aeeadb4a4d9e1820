#include "imagenet/images/synthetic.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "imagenet/images/drawing.hpp"
#include "imagenet/images/image.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/random_source.hpp"

namespace fs = std::filesystem;

namespace imagenet {
namespace {

/// Returns the probability that a standard normal variable is below x.
double normal_probability(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}

/// Returns the inverse of normal_probability().
double normal_quantile(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double x = (low + high) / 2;
    (normal_probability(x) < p ? low : high) = x;
  }
  return low;
}

/// Returns log-normal file sizes with the mean and standard deviation of ImageNet, in random order.
/// Divides the distribution into equally likely intervals and returns their means, so that even a
/// few sizes have nearly the right standard deviation.
std::vector<double> draw_file_sizes(std::size_t count, std::uint64_t seed) {
  const double relative_std = std_bytes / mean_bytes;
  const double sigma = std::sqrt(std::log(1 + relative_std * relative_std));
  const auto n = static_cast<double>(count);
  // Returns how much all values below the p-quantile contribute to the mean of the distribution.
  const auto mean_below = [&](double p) {
    return mean_bytes * normal_probability(normal_quantile(p) - sigma);
  };
  std::vector<double> sizes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto segment = static_cast<double>(i);
    sizes.push_back(n * (mean_below((segment + 1) / n) - mean_below(segment / n)));
  }
  random_source random{seed};
  shuffle(sizes, random);
  return sizes;
}

/// Returns by how much libjpeg scales its quantization tables for a quality, in percent, as
/// jpeg_quality_scaling() does.
double table_scale(int quality) {
  return quality < 50 ? 5000.0 / quality : 200.0 - 2.0 * quality;
}

int quality_of_scale(double scale) {
  const double quality = scale > 100 ? 5000.0 / scale : (200.0 - scale) / 2;
  return static_cast<int>(std::clamp(quality, 5.0, 97.0));
}

/// Encodes a picture to a file of about `file_bytes` bytes, by trying different qualities. The file
/// size is roughly proportional to table_scale()^-0.65, so the second attempt is usually close
/// enough.
std::vector<std::uint8_t> encode_to_size(const image& picture, double file_bytes) {
  int quality = 84;
  std::vector<std::uint8_t> bytes = encode_jpeg(picture, quality);
  for (int tries = 0; tries < 3; ++tries) {
    const double factor = static_cast<double>(bytes.size()) / file_bytes;
    if (factor > 0.97 && factor < 1.03) break;
    quality = quality_of_scale(table_scale(quality) * std::pow(factor, 1 / 0.65));
    bytes = encode_jpeg(picture, quality);
  }
  return bytes;
}

void write_file(const fs::path& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream file{path, std::ios::binary};
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error{path.string() + ": cannot be written"};
}

constexpr std::size_t class_count = 10;

fs::path class_folder(const fs::path& directory, std::size_t label) {
  return directory / ("class_" + std::to_string(label));
}

/// Calls work(0) … work(count - 1) in parallel on all CPUs. Rethrows the first exception.
template <class F>
void for_each_index(std::size_t count, const F& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard hold{failure_lock};
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads(std::max(1U, std::thread::hardware_concurrency()));
  for (std::thread& thread : threads) thread = std::thread{run};
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void make_images(const std::string& directory, std::size_t count, std::uint64_t seed) {
  const fs::path unfinished = directory + ".unfinished";
  fs::remove_all(unfinished);
  for (std::size_t label = 0; label < class_count; ++label) {
    fs::create_directories(class_folder(unfinished, label));
  }
  const std::vector<double> sizes = draw_file_sizes(count, seed);
  for_each_index(count, [&](std::size_t i) {
    write_file(class_folder(unfinished, i % class_count) / ("image_" + std::to_string(i) + ".jpg"),
               encode_to_size(draw_picture(seed, i, sizes[i]), sizes[i]));
  });
  fs::rename(unfinished, directory);
}

file_sizes measure_images(const std::string& directory) {
  file_sizes sizes;
  double sum = 0;
  double sum_of_squares = 0;
  for (const labelled_file& file : list_images(directory)) {
    const auto bytes = static_cast<double>(fs::file_size(file.path));
    sum += bytes;
    sum_of_squares += bytes * bytes;
    ++sizes.count;
  }
  const auto n = static_cast<double>(sizes.count);
  sizes.mean_bytes = sum / n;
  sizes.std_bytes =
      std::sqrt(std::max(0.0, sum_of_squares / n - sizes.mean_bytes * sizes.mean_bytes));
  return sizes;
}

}  // namespace imagenet
