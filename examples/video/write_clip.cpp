#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "video/clip.hpp"
#include "video/ffmpeg.hpp"

namespace video {
namespace {

constexpr int frames_per_second = 24;

owned<AVCodecContext> open_encoder(const std::string& path, int width_px, int height_px) {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
  if (codec == nullptr) throw std::runtime_error(path + ": this FFmpeg has no MPEG-4 encoder");
  owned<AVCodecContext> encoder{avcodec_alloc_context3(codec)};
  encoder->width = width_px;
  encoder->height = height_px;
  encoder->pix_fmt = AV_PIX_FMT_YUV420P;
  encoder->time_base = {1, frames_per_second};
  encoder->bit_rate = 1'000'000;
  check(avcodec_open2(encoder.get(), codec, nullptr), path);
  return encoder;
}

void draw(AVFrame& frame, std::int64_t number) {
  frame.pts = number;
  for (int plane = 0; plane < 3; ++plane) {
    const int shrink = plane == 0 ? 1 : 2;
    for (int y = 0; y < frame.height / shrink; ++y) {
      std::uint8_t* const row =
          frame.data[plane] + static_cast<std::ptrdiff_t>(y) * frame.linesize[plane];
      for (int x = 0; x < frame.width / shrink; ++x) {
        row[x] = static_cast<std::uint8_t>(x * y / 16 + (plane + 2) * number);
      }
    }
  }
}

/// Writes the packets that the encoder has finished so far to the file.
void write_packets(AVCodecContext& encoder, AVFormatContext& file, const std::string& path) {
  const owned<AVPacket> packet{av_packet_alloc()};
  while (true) {
    const int status = avcodec_receive_packet(&encoder, packet.get());
    if (status == AVERROR(EAGAIN) || status == AVERROR_EOF) return;
    check(status, path);
    av_packet_rescale_ts(packet.get(), encoder.time_base, file.streams[0]->time_base);
    packet->duration = 1;
    check(av_interleaved_write_frame(&file, packet.get()), path);
  }
}

}  // namespace

void write_clip(const std::string& path, int width_px, int height_px, int frames) {
  const owned<AVCodecContext> encoder = open_encoder(path, width_px, height_px);
  AVFormatContext* made = nullptr;
  check(avformat_alloc_output_context2(&made, nullptr, "avi", path.c_str()), path);
  const owned<AVFormatContext> file{made};
  AVStream* const stream = avformat_new_stream(made, nullptr);
  stream->time_base = encoder->time_base;
  check(avcodec_parameters_from_context(stream->codecpar, encoder.get()), path);
  check(avio_open(&made->pb, path.c_str(), AVIO_FLAG_WRITE), path);
  check(avformat_write_header(made, nullptr), path);

  const owned<AVFrame> frame{av_frame_alloc()};
  frame->format = encoder->pix_fmt;
  frame->width = width_px;
  frame->height = height_px;
  check(av_frame_get_buffer(frame.get(), 0), path);
  for (int number = 0; number < frames; ++number) {
    check(av_frame_make_writable(frame.get()), path);
    draw(*frame, number);
    check(avcodec_send_frame(encoder.get(), frame.get()), path);
    write_packets(*encoder, *made, path);
  }
  check(avcodec_send_frame(encoder.get(), nullptr), path);
  write_packets(*encoder, *made, path);
  check(av_write_trailer(made), path);
}

}  // namespace video
