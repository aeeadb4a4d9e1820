// Builds batches of clips from video files. FFmpeg decodes several frames at the same time on its
// own threads, which have no scopes. Therefore the operation "Decode" mostly waits for these
// threads, as its CPU time shows; lotus-tool map shows which functions they run. Argument: a folder
// of videos (default: clips/, which is created if it is missing).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <future>
#include <iostream>
#include <lotus/lotus.hpp>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "next_step.hpp"
#include "video/clip.hpp"
#include "video/ffmpeg.hpp"

namespace {

using clip = std::vector<std::uint8_t>;  // RGB frames, one after the other
constexpr int size_px = 112;
constexpr int decoder_threads = 2;

void make_clips(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (int i = 0; i < 8; ++i) {
    video::write_clip(directory / ("clip_" + std::to_string(i) + ".avi"), 320, 240, 48);
  }
}

/// Converts frames to small RGB pictures.
class scaler {
 public:
  void append(const AVFrame& in, clip& out) {
    LOTUS_SCOPE("Scale");
    context_.reset(sws_getCachedContext(context_.release(), in.width, in.height,
                                        static_cast<AVPixelFormat>(in.format), size_px, size_px,
                                        AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr));
    constexpr int row_bytes = 3 * size_px;
    const std::size_t before = out.size();
    out.resize(before + std::size_t{row_bytes} * size_px);
    std::uint8_t* const to = out.data() + before;
    sws_scale(context_.get(), in.data, in.linesize, 0, in.height, &to, &row_bytes);
  }

 private:
  struct free_context {
    void operator()(SwsContext* p) const { sws_freeContext(p); }
  };
  std::unique_ptr<SwsContext, free_context> context_;
};

clip make(const std::string& file, std::size_t number) {
  LOTUS_BATCH_PREPROCESSED(number);
  video::clip_reader reader{file, decoder_threads};
  scaler scale;
  clip made;
  while (const AVFrame* frame = reader.next()) scale.append(*frame, made);
  return made;
}

std::uint64_t train(const clip& c) {
  return std::accumulate(c.begin(), c.end(), std::uint64_t{0});
}

std::uint64_t run(const std::vector<std::string>& files) {
  std::uint64_t loss = 0;
  const auto ask = [&](std::size_t i) { return std::async(std::launch::async, make, files[i], i); };
  std::future<clip> coming = ask(0);
  for (std::size_t i = 0; i < files.size(); ++i) {
    lotus::batch_wait wait;
    const clip c = coming.get();
    wait.consumed(i);
    if (i + 1 < files.size()) coming = ask(i + 1);
    loss += train(c);
  }
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::filesystem::path directory = argc > 1 ? argv[1] : "clips";
    if (argc < 2 && !exists(directory)) make_clips(directory);
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator{directory}) {
      files.push_back(entry.path());
    }
    if (files.empty()) throw std::runtime_error(directory.string() + ": no videos");
    std::sort(files.begin(), files.end());
    if (!lotus::start("run/lotustrace_log")) return 1;
    std::cout << "loss: " << run(files) << "\n";
    print_next_step("run/lotustrace_log");
  } catch (const std::exception& error) {
    std::cerr << "ffmpeg_clips: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
