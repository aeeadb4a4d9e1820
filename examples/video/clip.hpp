// Provides classes and functions that write and decode video files with FFmpeg.
#ifndef EXAMPLES_VIDEO_CLIP_HPP
#define EXAMPLES_VIDEO_CLIP_HPP

#include <memory>
#include <string>

struct AVCodecContext;
struct AVFormatContext;
struct AVFrame;
struct AVPacket;

namespace video {

/// Deleters for objects that FFmpeg allocated.
struct freed {
  void operator()(AVCodecContext* p) const;
  void operator()(AVFormatContext* p) const;
  void operator()(AVFrame* p) const;
  void operator()(AVPacket* p) const;
};
template <class T>
using owned = std::unique_ptr<T, freed>;

/// Decodes a video file. FFmpeg decodes several frames at the same time on its own threads. Throws
/// std::runtime_error, which names the file.
class clip_reader {
 public:
  clip_reader(const std::string& path, int threads);

  /// Returns the next frame, which is valid until the next call; null at the end of the video.
  const AVFrame* next();

 private:
  void read_packet();

  std::string path_;
  owned<AVFormatContext> file_;
  owned<AVCodecContext> decoder_;
  owned<AVPacket> packet_;
  owned<AVFrame> frame_;
  int stream_ = -1;
  bool wants_packet_ = true;
};

/// Writes a clip with a moving pattern as an MPEG-4 video in an AVI file. Throws
/// std::runtime_error, which names the file.
void write_clip(const std::string& path, int width_px, int height_px, int frames);

}  // namespace video

#endif  // EXAMPLES_VIDEO_CLIP_HPP
