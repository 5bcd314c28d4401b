//! Splits matmuls of very many rows into bands of rows: rows map to the second axis of the grid,
//! which has at most 65,535 blocks.

/// The largest number of rows of one launch. With that many rows, every kernel's blocks compute at
/// least 64 rows each.
const MOST: usize = 65_535 * 64;

/// Yields the first row and the number of rows of each band.
pub(super) fn bands(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let band = move |first| (first, MOST.min(rows - first));
    (0..rows).step_by(MOST).map(band)
}

#[cfg(test)]
mod tests {
    use super::{MOST, bands};
    use crate::cuda::Argument;
    use relampago_ptx::PtxType::BF16;
    use relampago_ptx::kernels::{QuantFormat, Tile};
    use relampago_ptx::{GemmKernel, Kernel, QuantizeKernel, Target};

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
            // The parameters of the sizes follow three matrices.
            for (place, size) in [MOST, 32, 32].into_iter().enumerate() {
                arguments[3 + place] = Argument::U32(size as u32);
            }
            let grid = built.grid(&arguments.as_slice(), 132);
            assert!(grid.is_ok(), "{}: {grid:?}", kernel.name());
        }
    }
}
