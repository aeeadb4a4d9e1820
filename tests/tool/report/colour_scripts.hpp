// Scripts with which the browser test checks the colors of the report.
#ifndef LOTUS_TESTS_COLOUR_SCRIPTS_HPP
#define LOTUS_TESTS_COLOUR_SCRIPTS_HPP

namespace lotus::tool_test {

/// Computes color distances in OKLab (B. Ottosson 2020), and how people without green or red cones
/// see colors (G. Machado et al., A Physiologically-based Model for Simulation of Color Vision
/// Deficiency, IEEE TVCG 2009).
inline constexpr const char* how_eyes_see = R"(
  var linear = function (hex) { return [1, 3, 5].map(function (at) {
    var c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4); }); };
  var sum = function (row, v) { return row[0] * v[0] + row[1] * v[1] + row[2] * v[2]; };
  var times = function (m, v) { return m.map(function (row) { return sum(row, v); }); };
  var lab = function (v) { return times([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660]], times([[0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]],
    v.map(function (c) { return Math.min(Math.max(c, 0), 1); })).map(Math.cbrt)); };
  var eyes = { all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]] };
)";

inline constexpr const char* look_at_colours = R"(
  Object.keys(eyes).forEach(function (eye) {
    var labs = palette.map(function (hex) { return lab(times(eyes[eye], linear(hex))); });
    var least = 9;
    labs.forEach(function (a, i) { labs.slice(i + 1).forEach(function (b) {
      least = Math.min(least, Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])); }); });
    put("apart_" + eye, Math.floor(least * 1000));
  });
  var contrast = function (a, b) {
    var l = [luminance(a), luminance(b)].sort(function (x, y) { return y - x; });
    return (l[0] + 0.05) / (l[1] + 0.05); };
  var texts = ["ink", "quiet", "accent", "bad", "warn"].map(function (name) {
    return Math.min(contrast(cssColour(name), cssColour("page")), contrast(cssColour(name), cssColour("panel"))); });
  put("text_contrast", Math.floor(Math.min.apply(null, texts) * 100));
  put("slice_contrast", Math.floor(Math.min.apply(null, palette.concat(["batch", "wait", "step", "no-cpu", "blocked"].map(cssColour))
    .map(function (hex) { return contrast(hex, textOn(hex)); })) * 100));
  put("wait_beside_step", Math.floor(contrast(cssColour("wait"), cssColour("step")) * 100));
  put("page", cssColour("page"));
  put("same_by_name", giveLooks(["Loader", "Crop"]).get("Loader") === giveLooks(["Zip", "Loader"]).get("Loader"));
)";

/// Must come after how_eyes_see, on a page with 48 operations. Draws each operation as the timeline
/// does, compares every two of them, and returns the share of pixels in which the two most similar
/// ones differ.
inline constexpr const char* look_at_patterns = R"(
  var names = report.op_names.map(shownName);
  put("names", names.length);
  put("plain", names.filter(function (name) { return operationPattern(name) === 0; }).length);
  var slices = names.map(function (name) {
    var slice = document.createElement("canvas");
    slice.width = 24;
    slice.height = 12;
    var c = slice.getContext("2d");
    c.fillStyle = operationFill(c, name);
    c.fillRect(0, 0, 24, 12);
    var data = c.getImageData(0, 0, 24, 12).data;
    var pixels = [];
    for (var i = 0; i < data.length; i += 4) {
      pixels.push("#" + [0, 1, 2].map(function (n) { return data[i + n].toString(16).padStart(2, "0"); }).join("")); }
    return pixels;
  });
  Object.keys(eyes).forEach(function (eye) {
    var known = {};
    var seenAs = function (hex) { return known[hex] || (known[hex] = lab(times(eyes[eye], linear(hex)))); };
    var least = 1;
    slices.forEach(function (a, i) { slices.slice(i + 1).forEach(function (b) {
      var apart = a.filter(function (hex, n) {
        var p = seenAs(hex), q = seenAs(b[n]);
        return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]) >= 0.075; }).length;
      least = Math.min(least, apart / a.length); }); });
    put("differ_" + eye, Math.floor(least * 100));
  });
  var boxes = Array.from(document.querySelectorAll("#legend i")).slice(-names.length);
  put("legend", new Set(boxes.map(function (box) { return box.style.background; })).size);
)";

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_COLOUR_SCRIPTS_HPP
