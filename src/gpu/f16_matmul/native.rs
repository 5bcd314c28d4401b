//! wgpu's cooperative matrices.

use super::offered;
use crate::ops::HalfPrecision;

const FEATURES: wgpu::Features =
    wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SHADER_F16);

/// Adds the matrices to a device's descriptor where the adapter offers them. Returns whether it does.
pub(in crate::gpu) fn request_matrices(
    adapter: &wgpu::Adapter,
    descriptor: &mut wgpu::DeviceDescriptor<'_>,
) -> HalfPrecision {
    let matrices = adapter.features().contains(FEATURES)
        && adapter.cooperative_matrix_properties().iter().any(suits);
    let half_precision = offered(adapter, matrices);
    if half_precision == HalfPrecision::Used {
        descriptor.required_features |= FEATURES;
        // SAFETY: of the experimental features only cooperative matrices are enabled, and only two kernels use them,
        // with all invocations of each subgroup active: `shaders/kernels/matmul_halves.wgsl`, on memory whose bounds
        // its text shows, and `shaders/steps/multiply_blocks_f16.wgsl`, on memory that `f16_fits` checks.
        descriptor.experimental_features = unsafe { wgpu::ExperimentalFeatures::enabled() };
    }
    half_precision
}

/// Whether these are the matrices that the kernel is written for.
fn suits(matrices: &wgpu::CooperativeMatrixProperties) -> bool {
    use wgpu::CooperativeScalarType as Scalar;
    [matrices.m_size, matrices.n_size, matrices.k_size] == [16; 3]
        && matrices.ab_type == Scalar::F16
        && matrices.cr_type == Scalar::F32
}
