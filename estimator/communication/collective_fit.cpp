#include "estimator/communication/collective_fit.h"

#include <stdexcept>
#include <string_view>

#include "estimator/base/database.h"
#include "estimator/base/interpolate.h"

namespace onerank_data {
extern const std::string_view collective_fit_json;
}

namespace estimator {
double ShareCurve::at(int64_t bytes) const {
  std::vector<CurvePoint> curve;
  curve.reserve(points.size());
  for (const SharePoint& point : points) {
    curve.push_back({static_cast<double>(point.bytes), point.share});
  }
  return interpolate_log(curve, static_cast<double>(bytes));
}

const LaunchFloor& CollectiveFit::floor(const Link& link) const {
  for (const std::string& name : {link.id, link.kind}) {
    for (const LaunchFloor& row : launch_floors) {
      if (row.link == name) return row;
    }
  }
  throw std::logic_error("collective_fit.json has no floor for links of kind " + link.kind);
}

const CollectiveFit& collective_fit() {
  static const auto fit =
      read_document<CollectiveFit>(onerank_data::collective_fit_json, "collective_fit.json");
  return fit;
}

}  // namespace estimator
