//! Products of very many rows, by bands of them: blocks lie along a grid's second axis by rows, and
//! that axis is short.

/// The most rows of a launch: every kernel's blocks have 64 of them at least where there are so many.
const MOST: usize = 65_535 * 64;

/// Where a band of so many rows begins, and how many rows it has.
pub(super) fn bands(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let band = move |first| (first, MOST.min(rows - first));
    (0..rows).step_by(MOST).map(band)
}

#[cfg(test)]
mod tests {
    use super::{MOST, bands};
    use crate::cuda::Argument;
    use crate::ptx::PtxType::BF16;
    use crate::ptx::kernels::{QuantFormat, Tile};
    use crate::ptx::{GemmKernel, Kernel, QuantizeKernel, Target};

    #[test]
    fn bands_are_all_rows() {
        assert_eq!(bands(0).count(), 0);
        assert!(bands(5).eq([(0, 5)]));
        assert!(bands(MOST).eq([(0, MOST)]));
        assert!(bands(2 * MOST + 1).eq([(0, MOST), (MOST, MOST), (2 * MOST, 1)]));
    }

    #[test]
    fn a_grid_has_room_for_a_band() {
        let quantized = QuantizeKernel::gemm(QuantFormat::Q8_0, BF16);
        let kernels: [&dyn Kernel; 6] = [
            &GemmKernel::tiled_by(Tile::SMALL),
            &GemmKernel::tiled_by(Tile::LARGE.aligned()),
            &GemmKernel::mma(BF16),
            &GemmKernel::mma_tf32(),
            &GemmKernel::wgmma(BF16),
            &quantized.for_size(MOST as u32, 32),
        ];
        for kernel in kernels {
            let built = kernel.build(Target::Sm90a).unwrap();
            let mut arguments = vec![Argument::Pointer(0); built.params().len()];
            // After three matrices.
            for (place, size) in [MOST, 32, 32].into_iter().enumerate() {
                arguments[3 + place] = Argument::U32(size as u32);
            }
            let grid = built.grid(&arguments.as_slice(), 132);
            assert!(grid.is_ok(), "{}: {grid:?}", kernel.name());
        }
    }
}
