// Outcomes as JSON, for ci/gate check counters and ci/explain.
#include <cstdio>
#include <sstream>

#include "count.hpp"
#include "sites.hpp"

namespace tilegate::simt::counted {
namespace {

constexpr const char* kKindNames[kKinds] = {
    "global_load", "global_store", "shared_load",     "shared_store",  "shared_copy",
    "bulk_load",   "bulk_store",   "shared_multiply", "global_atomic", "shared_atomic"};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void write(std::ostream& out, const Traffic& traffic, Kind kind) {
  const bool shared = is_shared(kind);
  out << "\"requests\":" << traffic.requests << ",\"" << (shared ? "wavefronts" : "sectors")
      << "\":" << traffic.units << ",\"" << (shared ? "conflicts" : "excess_sectors")
      << "\":" << traffic.excess << ",\"bytes\":" << traffic.bytes;
}

void write(std::ostream& out, const Line& line) {
  out << "{\"kind\":\"" << kKindNames[static_cast<std::size_t>(line.kind)] << "\",";
  write(out, line.traffic, line.kind);
  out << ",\"width\":" << line.worst.bytes << ",\"worst\":{\"units\":" << line.worst_cost.units
      << ",\"ideal\":" << line.worst_cost.ideal << ",\"addresses\":[";
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (lane > 0) out << ',';
    // Global addresses are relative to the lowest one, rounded down to a line of 128 bytes.
    if (!line.worst.has(lane)) {
      out << "null";
    } else {
      std::uint64_t base = 0;
      if (!is_shared(line.kind)) {
        base = ~std::uint64_t{0};
        for (unsigned i = 0; i < kWarpSize; ++i) {
          if (line.worst.has(i) && line.worst.address[i] < base) base = line.worst.address[i];
        }
        base = base / 128 * 128;
      }
      out << line.worst.address[lane] - base;
    }
  }
  out << "]},\"frames\":[";
  const char* separator = "";
  for (const Frame& frame : Sites::all().at(line.location)) {
    out << separator << "{\"file\":" << quoted(frame.file) << ",\"line\":" << frame.line
        << ",\"column\":" << frame.column << ",\"function\":" << quoted(frame.function) << '}';
    separator = ",";
  }
  out << "]}";
}

}  // namespace

std::string to_json(const std::string& name, const Outcome& outcome) {
  std::ostringstream out;
  out << "{\"case\":" << quoted(name);
  if (!outcome.status.ok()) {
    const bool unsupported = outcome.status.code() == Status::Code::kUnsupported;
    out << (unsupported ? ",\"not_applicable\":" : ",\"error\":")
        << quoted(outcome.status.message()) << '}';
    return out.str();
  }
  for (std::size_t i = 0; i < kKinds; ++i) {
    if (!outcome.counters.names(static_cast<Kind>(i))) continue;
    out << ",\"" << kKindNames[i] << "\":{";
    write(out, outcome.counters.traffic[i], static_cast<Kind>(i));
    out << '}';
  }
  out << ",\"barriers\":" << outcome.counters.barriers << ",\"fma\":" << outcome.counters.fma
      << ",\"lines\":[";
  const char* separator = "";
  for (const Line& line : outcome.counters.lines) {
    out << separator;
    write(out, line);
    separator = ",\n ";
  }
  out << "]}";
  return out.str();
}

}  // namespace tilegate::simt::counted
