//! Unsupported types and sizes: types that tensor cores do not multiply, and sizes beyond all
//! memory.

use relampago_ptx::PtxType::{self, BF16, F16, F32};
use relampago_ptx::kernels::{QuantFormat, RowLayout};
use relampago_ptx::{AttentionKernel, Error, GemmKernel, Kernel, QuantizeKernel, Target};

const OTHERS: [PtxType; 8] = [
    PtxType::Pred,
    PtxType::U8,
    PtxType::S32,
    PtxType::B64,
    PtxType::F16x2,
    PtxType::TF32,
    PtxType::F32,
    PtxType::F64,
];

fn is_refused(kernel: &dyn Kernel) -> bool {
    let built = kernel.build(Target::Sm90a);
    matches!(built, Err(Error::Invalid { what: "type", .. }))
}

#[test]
fn unsupported_matmul_and_attention_types_return_errors() {
    let kernels: [fn(PtxType) -> Box<dyn Kernel>; 5] = [
        |ty| Box::new(GemmKernel::mma(ty)),
        |ty| Box::new(GemmKernel::wgmma(ty)),
        |ty| Box::new(GemmKernel::wgmma_split(ty, 128)),
        |ty| Box::new(AttentionKernel::flash(ty, 64)),
        |ty| Box::new(AttentionKernel::flash_mma(ty, 64)),
    ];
    for (i, kernel) in kernels.into_iter().enumerate() {
        for ty in [F16, BF16] {
            assert!(kernel(ty).build(Target::Sm90a).is_ok(), "{i} of {ty}");
        }
        for ty in OTHERS {
            // `mma` of f32 is that of tf32.
            let refused = i > 0 || ty != F32;
            assert_eq!(is_refused(&*kernel(ty)), refused, "{i} of {ty}");
        }
    }
}

#[test]
fn sizes_beyond_all_memory_return_errors() {
    let most = u32::MAX;
    let kernel = QuantizeKernel::gemm(QuantFormat::Q4K, F16).for_size(most, most);
    assert!(kernel.build(Target::Sm80).is_ok());
    for cols in [most, most - 3] {
        assert_eq!(RowLayout::for_cols(cols).max_cols(), None);
    }
    let layout = RowLayout::new(most, RowLayout::ANY.threads).with_held(2);
    assert_eq!(layout.max_cols(), Some(most));
}
