// What products of two matrices are given, and memory to rearrange it in.

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace pernn {

// Memory that a thread keeps from one call to the next: fresh pages cost more than the products.
class Buffer {
 public:
  template <typename T>
  T* take(int64_t numbers) {
    const int64_t bytes = (numbers * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    if (bytes > size_) {
      data_.reset(std::aligned_alloc(64, bytes));
      size_ = data_ ? bytes : 0;
      TORCH_CHECK(data_, "no memory for ", bytes, " bytes");
    }
    return static_cast<T*>(data_.get());
  }

 private:
  std::unique_ptr<void, decltype(&std::free)> data_{nullptr, std::free};
  int64_t size_ = 0;
};

// A matrix; its rows or its columns lie in one piece.
struct Matrix {
  const float* data;
  int64_t rows, columns, row_stride, column_stride;

  explicit Matrix(const at::Tensor& tensor)
      : data(tensor.const_data_ptr<float>()),
        rows(tensor.size(0)),
        columns(tensor.size(1)),
        row_stride(tensor.stride(0)),
        column_stride(tensor.stride(1)) {
    TORCH_CHECK(column_stride == 1 || row_stride == 1 || rows == 1 || columns == 1,
                "rows or columns must lie in one piece");
  }

  Matrix(const float* data, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride = 1)
      : data(data), rows(rows), columns(columns), row_stride(row_stride), column_stride(column_stride) {}

  Matrix t() const { return {data, columns, rows, column_stride, row_stride}; }
  bool by_rows() const { return column_stride == 1 || columns == 1; }
  const float* at(int64_t row, int64_t column) const {
    return data + row * row_stride + column * column_stride;
  }
};

// out = left · right, or added to it, by matrix units; false where there are none.
bool multiply_by_units(const Matrix& left, const Matrix& right, float* out, int64_t stride, int64_t parts,
                       bool add);

// Where a part of rows or columns ends: whole panels for all but the last.
inline int64_t cut(int64_t size, int64_t panel, int64_t part, int64_t parts) {
  return std::min(size, (size + panel - 1) / panel * part / parts * panel);
}

}  // namespace pernn
