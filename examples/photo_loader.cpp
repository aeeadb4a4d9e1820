// A loader with a mistake that is easily made: training compares two views of each photograph,
// which are two random parts of it, and the loader decodes the photograph for each view anew.
// tools/demo.sh records this program, applies the change that lotus-tool suggests first, and
// records it again. Usage: photo_loader [workers=N] [decode=each_view|once]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <lotus/lotus.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bounded_queue.hpp"
#include "imagenet/images/drawing.hpp"
#include "imagenet/images/image.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/images/resize.hpp"

namespace {

constexpr std::size_t batches = 60;
constexpr std::size_t photos_per_batch = 5;
constexpr int view_px = 224;

using jpeg = std::vector<std::uint8_t>;

struct batch {
  std::size_t number = 0;
  std::vector<float> values;
};

/// Draws some photographs of about a million pixels.
std::vector<jpeg> make_photos() {
  constexpr std::size_t different = 5;
  std::vector<jpeg> photos;
  photos.reserve(different);
  for (std::size_t i = 0; i < different; ++i) {
    photos.push_back(imagenet::encode_jpeg(imagenet::draw_picture(1, i, 1e6), 60));
  }
  return photos;
}

class loader {
 public:
  loader(std::size_t workers, bool decode_once) : decode_once_{decode_once} {
    for (std::size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  loader(const loader&) = delete;
  loader& operator=(const loader&) = delete;
  ~loader() {
    ready_.close();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Waits for the batch that is ready next; batches may come in any order.
  batch next() { return ready_.pop().value(); }

 private:
  void work() {
    for (std::size_t i = next_++; i < batches; i = next_++) ready_.push(build(i));
  }

  batch build(std::size_t number) const {
    LOTUS_BATCH_PREPROCESSED(number);
    batch b{number, {}};
    for (std::size_t i = 0; i < photos_per_batch; ++i) {
      const std::vector<imagenet::image> decoded = decode(photos_[(number + i) % photos_.size()]);
      append(crop(decoded.front(), 0), b);
      append(crop(decoded.back(), 1), b);
    }
    return b;
  }

  /// Returns a copy of the photograph for each view, or one for both.
  std::vector<imagenet::image> decode(const jpeg& photo) const {
    LOTUS_SCOPE("Decode");
    std::vector<imagenet::image> copies;
    const std::size_t wanted = decode_once_ ? 1 : 2;
    copies.reserve(wanted);
    for (std::size_t i = 0; i < wanted; ++i) copies.push_back(imagenet::decode_jpeg(photo));
    return copies;
  }

  static imagenet::image crop(const imagenet::image& photo, int view) {
    LOTUS_SCOPE("Crop");
    const int px = std::min(photo.width, photo.height) / 2;
    return imagenet::crop_and_resize(photo, {view * px / 2, px / 3, px, px}, view_px, view_px);
  }

  static void append(const imagenet::image& view, batch& b) {
    LOTUS_SCOPE("Normalize");
    for (const std::uint8_t value : view.pixels)
      b.values.push_back(static_cast<float>(value) / 255);
  }

  const bool decode_once_;
  const std::vector<jpeg> photos_ = make_photos();
  std::atomic<std::size_t> next_{0};
  bounded_queue<batch> ready_{4};
  std::vector<std::thread> threads_;
};

/// Stands for a step on a GPU, during which the CPUs are free.
void train(const batch&) {
  std::this_thread::sleep_for(std::chrono::milliseconds{8});
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t workers = 2;
  bool decode_once = false;
  for (int i = 1; i < argc; ++i) {
    const std::string setting = argv[i];
    if (setting == "decode=once" || setting == "decode=each_view") {
      decode_once = setting == "decode=once";
    } else if (setting.rfind("workers=", 0) == 0) {
      workers = std::clamp<std::size_t>(std::strtoul(&setting[8], nullptr, 10), 1, 64);
    } else {
      std::cerr << "usage: photo_loader [workers=N] [decode=each_view|once]\n";
      return 2;
    }
  }
  try {
    loader loader{workers, decode_once};
    for (std::size_t i = 0; i < batches; ++i) {
      lotus::batch_wait wait;
      const batch b = loader.next();
      wait.consumed(b.number);
      train(b);
    }
  } catch (const std::exception& error) {
    std::cerr << "photo_loader: " << error.what() << "\n";
    return 1;
  }
}
