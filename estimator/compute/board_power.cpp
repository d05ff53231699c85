#include "estimator/compute/board_power.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view power_json;
}

namespace estimator {

template <class Visitor>
void visit_fields(Visitor& visit, ProductEnergy& product) {
  visit("dtype", product.dtype, "of the operands");
  visit("joules_per_teraflop", product.joules_per_teraflop, "at full speed");
}

namespace {

struct ChipRow {
  std::vector<std::string> gpus;
  BoardPower power;
  std::string long_wait_source;
};
template <class Visitor>
void visit_fields(Visitor& visit, ChipRow& row) {
  BoardPower& power = row.power;
  visit("gpus", row.gpus, "ids of the GPU database");
  visit("static_watts", power.static_watts, "at any time");
  visit("energy_exponent", power.energy_exponent, "of the speed");
  visit("products", power.products, "matrix products, by type");
  visit("attention_watts", power.attention_watts, "of fused attention at any rate");
  visit("attention_joules_per_teraflop", power.attention_joules_per_teraflop, "added to that");
  visit("memory_watts", power.memory_watts, "of a kernel that waits for memory");
  visit("long_wait_seconds", power.long_wait_seconds, "in which nothing is saved for later");
  visit("long_wait_source", row.long_wait_source, "where it was read");
  visit("source", power.source, "where it was read");
}

struct LimitRow {
  std::vector<std::string> gpus;
  double watts = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, LimitRow& row) {
  visit("gpus", row.gpus, "ids of the GPU database");
  visit("watts", row.watts, "that the board may take");
  visit("source", row.source, "where it was read");
}

struct PowerTables {
  std::vector<ChipRow> chips;
  std::vector<LimitRow> limits;
};
template <class Visitor>
void visit_fields(Visitor& visit, PowerTables& tables) {
  visit("chips", tables.chips, "what the work of a chip needs");
  visit("limits", tables.limits, "of boards");
}

std::map<std::string, BoardPower> boards() {
  const auto tables = read_document<PowerTables>(onerank_data::power_json, "power.json");
  std::map<std::string, BoardPower> boards;
  for (const ChipRow& chip : tables.chips) {
    for (const LimitRow& limit : tables.limits) {
      for (const std::string& gpu : limit.gpus) {
        if (!contains(chip.gpus, gpu)) continue;
        boards[gpu] = chip.power;
        boards[gpu].limit_watts = limit.watts;
      }
    }
  }
  return boards;
}

}  // namespace

double BoardPower::product_joules(const std::string& dtype, double flops) const {
  const auto row = std::find_if(products.begin(), products.end(), [&](const ProductEnergy& each) {
    return dtype.starts_with(each.dtype);
  });
  const ProductEnergy& energy = row == products.end() ? products.front() : *row;
  return energy.joules_per_teraflop * flops * 1e-12;
}

double BoardPower::attention_joules(double flops, double seconds) const {
  return attention_watts * seconds + attention_joules_per_teraflop * flops * 1e-12;
}

double BoardPower::energy_share(double speed) const { return std::pow(speed, energy_exponent); }

double BoardPower::watts(double joules, double seconds, double speed) const {
  return static_watts + joules * energy_share(speed) / seconds;
}

const BoardPower* board_power(const Gpu& gpu) {
  static const std::map<std::string, BoardPower> all = boards();
  const auto row = all.find(gpu.id);
  return row == all.end() ? nullptr : &row->second;
}

double speed_within_limit(const BoardPower& board, const StepEnergy& step, double played) {
  const double at_full_speed = step.arithmetic_seconds * played;
  const auto watts_at = [&](double speed) {
    const double seconds = step.seconds - step.arithmetic_seconds + at_full_speed / speed;
    return board.watts(step.joules, seconds, speed);
  };
  if (watts_at(1) <= board.limit_watts) return 1;
  constexpr double kSlowest = 0.1, kExact = 1e-4;
  double slow = kSlowest, fast = 1;
  while (fast - slow > kExact) {
    const double speed = (slow + fast) / 2;
    (watts_at(speed) <= board.limit_watts ? slow : fast) = speed;
  }
  return slow;
}

}  // namespace estimator
