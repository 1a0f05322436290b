// Labels by bound-based exact aggregation: KARL (Chan, Yiu and U, ICDE 2019), written from its description.
//
// The support vectors of each sign form a tree. For a node with weights w, points p and W = sum w, the mean argument of
// exp(-x) is x = gamma (|q - mu|^2 + var), and the node's box or ball bounds all arguments between x1 and x2. Then
//     W exp(-x)  <=  sum w exp(-gamma |q - p|^2)  <=  W times the chord of exp(-.) over [x1, x2] at x,
// as exp(-.) is convex. Until the sign of the decision value is known, the node whose bounds are farthest apart is
// replaced by its children, or, if it is a leaf, summed.
//
// Leaves are scanned with fast kernels: blocks of 64 support vectors, feature by feature, with float32 multiply-adds
// for the row's nonzeros only, and exponentials one vector at a time. Bounds and sums are float64. As in the paper,
// their rounding is not bounded: a label near the boundary may be wrong.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

namespace {

using std::size_t;

typedef float Vector __attribute__((vector_size(64)));
typedef std::int32_t Bits __attribute__((vector_size(64)));
constexpr size_t n_lanes = 16, block_rows = 64, n_vectors = block_rows / n_lanes;

// exp(x) for -87 <= x <= 0, accurate to 2 units in the last place: the product of a power of two, made from its bits,
// and a polynomial on [-ln 2 / 2, ln 2 / 2]. Smaller arguments are clamped to -87.
inline Vector exponential(Vector x) {
    x = x < -87.0F ? Vector{} - 87.0F : x;
    const Vector magic = Vector{} + 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
    const Vector shifted = x * 1.44269504F + magic;
    const Vector n = shifted - magic;
    const Vector r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
    Vector p = r * (1.0F / 720.0F) + 1.0F / 120.0F;
    p = p * r + 1.0F / 24.0F;
    p = p * r + 1.0F / 6.0F;
    p = p * r + 0.5F;
    p = p * r + 1.0F;
    p = p * r + 1.0F;
    const Bits exponent = (reinterpret_cast<Bits>(shifted) - reinterpret_cast<Bits>(magic)) << 23;
    return reinterpret_cast<Vector>(reinterpret_cast<Bits>(p) + exponent);
}

struct Node {
    size_t first, last;       // support vectors, in tree order
    size_t left = 0;          // children are left and left + 1; a leaf has none
    double weight = 0;        // W
    double mean_sq_norm = 0;  // |mu|^2
    double variance = 0;
    double radius = 0;  // from mu, the center of the ball
};

struct Query {
    const float* row;
    double sq_norm;
    std::vector<std::uint32_t> features;  // of the nonzeros
    std::vector<float> values;
};

struct Interval {
    double lower, upper;
};

// One sign's support vectors.
class Tree {
  public:
    Tree(const float* points, const double* weights, std::vector<size_t> chosen, size_t d, double gamma, bool boxes,
         size_t leaf_rows)
        : d_(d), gamma_(gamma), boxes_(boxes), leaf_rows_(leaf_rows), order_(std::move(chosen)) {
        nodes_.push_back({0, order_.size()});
        for (size_t i = 0; i < nodes_.size(); ++i) build(i, points, weights);
        lay_out(points, weights);
    }

    bool is_empty() const { return order_.empty(); }
    const Node& node(size_t i) const { return nodes_[i]; }

    Interval bounds(size_t i, const Query& q) const {
        const Node& node = nodes_[i];
        const double* const mean = &means_[i * d_];
        double product = 0;
        for (size_t k = 0; k < q.features.size(); ++k) product += q.values[k] * mean[q.features[k]];
        const double to_mean_sq = std::max(0.0, q.sq_norm + node.mean_sq_norm - 2 * product);
        double least_sq, most_sq;
        if (boxes_) {
            box_distances(i, q, least_sq, most_sq);
        } else {
            const double to_mean = std::sqrt(to_mean_sq), inner = std::max(0.0, to_mean - node.radius);
            least_sq = inner * inner;
            most_sq = (to_mean + node.radius) * (to_mean + node.radius);
        }
        const double x = gamma_ * (to_mean_sq + node.variance);
        const double x1 = std::min(x, gamma_ * least_sq), x2 = std::max(x, gamma_ * most_sq);
        const double high = std::exp(-x1), low = std::exp(-x2);
        const double chord = x2 > x1 ? high + (low - high) * (x - x1) / (x2 - x1) : high;
        return {node.weight * std::exp(-x), node.weight * chord};
    }

    double sum(size_t i, const Query& q) const {
        const Node& node = nodes_[i];
        double total = 0;
        for (size_t block = node.first / block_rows; block * block_rows < node.last; ++block)
            total += sum_block(block, q);
        return total;
    }

  private:
    // Computes a node's mean, variance, box and radius; splits it at the median of the feature with the largest spread.
    void build(size_t i, const float* points, const double* weights) {
        Node node = nodes_[i];
        means_.resize(nodes_.size() * d_);
        least_.resize(nodes_.size() * d_, INFINITY);
        most_.resize(nodes_.size() * d_, -INFINITY);
        double* const mean = &means_[i * d_];
        for (size_t k = node.first; k < node.last; ++k) {
            const float* const p = points + order_[k] * d_;
            const double w = std::abs(weights[order_[k]]);
            node.weight += w;
            for (size_t j = 0; j < d_; ++j) {
                mean[j] += w * p[j];
                least_[i * d_ + j] = std::min(least_[i * d_ + j], p[j]);
                most_[i * d_ + j] = std::max(most_[i * d_ + j], p[j]);
            }
        }
        for (size_t j = 0; j < d_; ++j) mean[j] /= node.weight;
        node.mean_sq_norm = std::inner_product(mean, mean + d_, mean, 0.0);
        double most_sq = 0;
        for (size_t k = node.first; k < node.last; ++k) {
            const float* const p = points + order_[k] * d_;
            double sq = 0;
            for (size_t j = 0; j < d_; ++j) sq += (p[j] - mean[j]) * (p[j] - mean[j]);
            node.variance += std::abs(weights[order_[k]]) * sq / node.weight;
            most_sq = std::max(most_sq, sq);
        }
        node.radius = std::sqrt(most_sq);
        size_t widest = 0;
        for (size_t j = 1; j < d_; ++j)
            if (spread(i, j) > spread(i, widest)) widest = j;
        const size_t n = node.last - node.first;
        if (n > leaf_rows_ && n > block_rows && spread(i, widest) > 0) {
            const size_t half = (n / 2 + block_rows - 1) / block_rows * block_rows;  // blocks are full
            const auto at = order_.begin() + static_cast<std::ptrdiff_t>(node.first);
            std::nth_element(at, at + static_cast<std::ptrdiff_t>(half), at + static_cast<std::ptrdiff_t>(n),
                             [&](size_t a, size_t b) { return points[a * d_ + widest] < points[b * d_ + widest]; });
            node.left = nodes_.size();
            nodes_.push_back({node.first, node.first + half});
            nodes_.push_back({node.first + half, node.last});
        }
        nodes_[i] = node;
    }

    float spread(size_t i, size_t j) const { return most_[i * d_ + j] - least_[i * d_ + j]; }

    void lay_out(const float* points, const double* weights) {
        const size_t n_blocks = (order_.size() + block_rows - 1) / block_rows;
        columns_.assign(n_blocks * d_ * n_vectors, Vector{});
        arguments_.assign(n_blocks * n_vectors, Vector{});
        weights_.assign(n_blocks * n_vectors, Vector{});
        for (size_t k = 0; k < order_.size(); ++k) {
            const float* const p = points + order_[k] * d_;
            const size_t block = k / block_rows, vector = k % block_rows / n_lanes, lane = k % n_lanes;
            double sq_norm = 0;
            for (size_t j = 0; j < d_; ++j) {
                columns_[(block * d_ + j) * n_vectors + vector][lane] = static_cast<float>(2 * gamma_ * p[j]);
                sq_norm += static_cast<double>(p[j]) * p[j];
            }
            arguments_[block * n_vectors + vector][lane] = static_cast<float>(-gamma_ * sq_norm);
            weights_[block * n_vectors + vector][lane] = static_cast<float>(std::abs(weights[order_[k]]));
        }
    }

    double sum_block(size_t block, const Query& q) const {
        const Vector* const own = &arguments_[block * n_vectors];
        const Vector offset = Vector{} - static_cast<float>(gamma_ * q.sq_norm);
        Vector a = own[0] + offset, b = own[1] + offset, c = own[2] + offset, e = own[3] + offset;
        const Vector* const columns = &columns_[block * d_ * n_vectors];
        for (size_t k = 0; k < q.features.size(); ++k) {
            const Vector value = Vector{} + q.values[k];
            const Vector* const column = columns + q.features[k] * n_vectors;
            a += value * column[0];
            b += value * column[1];
            c += value * column[2];
            e += value * column[3];
        }
        const Vector* const w = &weights_[block * n_vectors];
        const Vector sums = (w[0] * exponential(capped(a)) + w[1] * exponential(capped(b))) +
                            (w[2] * exponential(capped(c)) + w[3] * exponential(capped(e)));
        double total = 0;
        for (size_t lane = 0; lane < n_lanes; ++lane) total += sums[lane];
        return total;
    }

    static Vector capped(Vector x) { return x > 0.0F ? Vector{} : x; }

    void box_distances(size_t i, const Query& q, double& least_sq, double& most_sq) const {
        const float* const low = &least_[i * d_];
        const float* const high = &most_[i * d_];
        float least = 0, most = 0;
        for (size_t j = 0; j < d_; ++j) {
            const float below = low[j] - q.row[j], above = q.row[j] - high[j];
            const float outside = std::max(std::max(below, above), 0.0F), far = std::max(-below, -above);
            least += outside * outside;
            most += far * far;
        }
        least_sq = least;
        most_sq = most;
    }

    size_t d_;
    double gamma_;
    bool boxes_;
    size_t leaf_rows_;
    std::vector<size_t> order_;
    std::vector<Node> nodes_;
    std::vector<double> means_;
    std::vector<float> least_, most_;
    std::vector<Vector> columns_, arguments_, weights_;  // of the blocks
};

struct Pending {
    double gap;
    Interval bounds;
    std::uint32_t node;
    bool is_negative;
    bool operator<(const Pending& other) const { return gap < other.gap; }
};

class Karl {
  public:
    Karl(const float* points, const double* weights, size_t n, size_t d, double gamma, double intercept, bool boxes,
         size_t leaf_rows)
        : d_(d), intercept_(intercept) {
        for (const bool is_negative : {false, true}) {
            std::vector<size_t> chosen;
            for (size_t i = 0; i < n; ++i)
                if ((weights[i] < 0) == is_negative && weights[i] != 0) chosen.push_back(i);
            trees_.push_back(std::make_unique<Tree>(points, weights, std::move(chosen), d, gamma, boxes, leaf_rows));
        }
    }

    // Returns true if the decision value is positive; counts the support vectors that were summed.
    bool is_positive(const float* row, size_t& n_visited) {
        take(row);
        pending_.clear();
        double lower = intercept_, upper = intercept_;  // bounds on the decision value
        const auto add = [&](size_t node, bool is_negative) {
            const Interval found = trees_[is_negative]->bounds(node, query_);
            lower += is_negative ? -found.upper : found.lower;
            upper += is_negative ? -found.lower : found.upper;
            pending_.push_back({found.upper - found.lower, found, static_cast<std::uint32_t>(node), is_negative});
            std::push_heap(pending_.begin(), pending_.end());
        };
        for (const bool is_negative : {false, true})
            if (!trees_[is_negative]->is_empty()) add(0, is_negative);
        while (lower <= 0 && upper > 0 && !pending_.empty()) {
            std::pop_heap(pending_.begin(), pending_.end());
            const Pending widest = pending_.back();
            pending_.pop_back();
            lower -= widest.is_negative ? -widest.bounds.upper : widest.bounds.lower;
            upper -= widest.is_negative ? -widest.bounds.lower : widest.bounds.upper;
            const Tree& tree = *trees_[widest.is_negative];
            const Node& node = tree.node(widest.node);
            if (node.left) {
                add(node.left, widest.is_negative);
                add(node.left + 1, widest.is_negative);
                continue;
            }
            const double sum = tree.sum(widest.node, query_);
            lower += widest.is_negative ? -sum : sum;
            upper += widest.is_negative ? -sum : sum;
            n_visited += node.last - node.first;
        }
        return lower + upper > 0;
    }

  private:
    void take(const float* row) {
        query_.row = row;
        query_.sq_norm = 0;
        query_.features.clear();
        query_.values.clear();
        for (size_t j = 0; j < d_; ++j) {
            if (row[j] == 0) continue;
            query_.features.push_back(static_cast<std::uint32_t>(j));
            query_.values.push_back(row[j]);
            query_.sq_norm += static_cast<double>(row[j]) * row[j];
        }
    }

    size_t d_;
    double intercept_;
    std::vector<std::unique_ptr<Tree>> trees_;  // for positive and for negative weights
    Query query_;
    std::vector<Pending> pending_;  // a heap
};

}  // namespace

extern "C" {

void* karl_build(const float* points, const double* weights, size_t n, size_t d, double gamma, double intercept,
                 int boxes, size_t leaf_rows) {
    return new Karl(points, weights, n, d, gamma, intercept, boxes != 0, leaf_rows);
}

// Writes 1 for each row with a positive value, else 0; returns the number of support vectors summed over all rows.
size_t karl_predict(void* karl, const float* rows, size_t n_rows, size_t d, unsigned char* is_positive) {
    size_t n_visited = 0;
    for (size_t i = 0; i < n_rows; ++i) is_positive[i] = static_cast<Karl*>(karl)->is_positive(rows + i * d, n_visited);
    return n_visited;
}

void karl_free(void* karl) {
    delete static_cast<Karl*>(karl);
}
}
