// Each worker thread builds complete batches with OpenCV. The consumer receives batches in any
// order. Argument: a folder of JPEGs, such as images/ of imagenet_pipeline.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <future>
#include <iostream>
#include <lotus/lotus.hpp>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bounded_queue.hpp"
#include "next_step.hpp"

namespace {

using files = std::vector<std::string>;

struct batch {
  std::size_t number = 0;
  std::vector<cv::Mat> images;
};
constexpr std::size_t batch_images = 8;
constexpr int size_px = 224;

/// Returns a chain of operations. The log contains a line for each operation and one for the whole
/// chain.
auto transform() {
  return lotus::compose(
      lotus::operation{"Resize",
                       [](const cv::Mat& in) {
                         cv::Mat out;
                         cv::resize(in, out, {size_px, size_px}, 0, 0, cv::INTER_AREA);
                         return out;
                       }},
      lotus::operation{"Flip", [](cv::Mat& image) { cv::flip(image, image, 1); }},
      lotus::operation{"Normalize",
                       [](cv::Mat& image) { image.convertTo(image, CV_32FC3, 1 / 255.0); }});
}

files jpegs_in(const std::string& directory) {
  files found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory}) {
    if (entry.path().extension() == ".jpg") found.push_back(entry.path());
  }
  if (found.empty()) throw std::runtime_error(directory + ": no JPEGs");
  std::sort(found.begin(), found.end());
  return found;
}

cv::Mat load(const std::string& file) {
  LOTUS_SCOPE("Load");
  cv::Mat image = cv::imread(file, cv::IMREAD_COLOR);
  if (image.empty()) throw std::runtime_error(file + ": not an image");
  return image;
}

batch make(const files& all, std::size_t number) {
  LOTUS_BATCH_PREPROCESSED(number);
  batch b{number, {}};
  auto change = transform();
  for (std::size_t i = number * batch_images; i < all.size() && i < (number + 1) * batch_images;
       ++i) {
    b.images.push_back(change(load(all[i])));
  }
  return b;
}

double train(const batch& b) {
  double sum = 0;
  for (const cv::Mat& image : b.images) sum += cv::mean(image)[0];
  return sum;
}

double run(const std::string& directory) {
  const files all = jpegs_in(directory);
  const std::size_t batches = (all.size() + batch_images - 1) / batch_images;

  bounded_queue<batch> made{4};
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < batches; i = next++) made.push(make(all, i));
    } catch (...) {
      made.finish();  // otherwise the consumer would wait forever
      throw;
    }
  };
  std::future<void> workers[] = {std::async(std::launch::async, work),
                                 std::async(std::launch::async, work)};

  double loss = 0;
  for (std::size_t taken = 0; taken < batches; ++taken) {
    lotus::batch_wait wait;
    const std::optional<batch> b = made.pop();
    if (!b) break;
    wait.consumed(b->number);  // the number of the batch is known only after the wait
    loss += train(*b);
  }
  for (std::future<void>& worker : workers) worker.get();
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // Keep OpenCV from using its own threads. They have no scopes, so their work would not be
    // recorded.
    cv::setNumThreads(0);
    if (!lotus::start("run/lotustrace_log")) return 1;
    std::cout << "loss: " << run(argc > 1 ? argv[1] : "images") << "\n";
    print_next_step("run/lotustrace_log");
  } catch (const std::exception& error) {
    std::cerr << "opencv_workers: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
