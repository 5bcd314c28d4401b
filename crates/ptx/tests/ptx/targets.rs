//! Requirements of kernels on their target and launch, and the errors if they are not met.

use super::variants;
use relampago_ptx::kernels::{AttentionKernel, DecodeSumKernel, GemmKernel, Kernel};
use relampago_ptx::{Error, PtxType, Sizes, Target};

fn has(target: Target, needed: Target) -> bool {
    target == needed || (target > needed && needed != Target::Sm90a)
}

#[test]
fn kernels_build_exactly_for_supporting_targets() {
    for variant in variants::all() {
        let (name, needed) = (variant.kernel.name(), variant.kernel.first_target());
        for target in Target::ALL {
            let built = variant.kernel.emit_ptx_for_target(target);
            assert_eq!(built.is_ok(), has(target, needed), "{name} for {target}");
            if let Err(error) = built {
                let later = if needed == Target::Sm90a {
                    "itself"
                } else {
                    "or later"
                };
                let expected = format!(
                    "{name} needs {needed} {later}, and the target is {target}: ask for {needed}"
                );
                assert_eq!(error.to_string(), expected);
                assert_eq!(error.code(), "UNSUPPORTED");
            }
        }
    }
}

#[test]
fn errors_name_the_kernel_once() {
    let refused: [(Box<dyn Kernel>, &str); 4] = [
        (
            Box::new(AttentionKernel::simple(48)),
            "`dim` is 48, but must be",
        ),
        (
            Box::new(GemmKernel::wgmma_by(PtxType::BF16, 64)),
            "`cols` is 64, but must be 128 or 256",
        ),
        (
            Box::new(GemmKernel::wgmma(PtxType::F16).batched()),
            "`batched` is true, but must be false",
        ),
        (
            Box::new(DecodeSumKernel::new(PtxType::F32, 6)),
            "`dim` is 6, but must be a multiple of 4 up to 1024",
        ),
    ];
    for (kernel, message) in refused {
        let (name, error) = (kernel.name(), kernel.emit_ptx().unwrap_err().to_string());
        assert!(error.starts_with(&format!("{name}: {message}")), "{error}");
        assert_eq!(error.matches(&name).count(), 1, "{error}");
    }
}

/// Sizes by their names in one kernel.
struct Named<'a>(&'a dyn Fn(usize) -> u64);

impl Sizes for Named<'_> {
    fn size(&self, index: usize) -> Option<u64> {
        Some((self.0)(index))
    }
}

#[test]
fn empty_grids_are_allowed_and_too_large_ones_return_errors() {
    let grid = |kernel: &dyn Kernel, name: &str, value: u64| {
        let kernel = kernel.build(kernel.first_target()).unwrap();
        let params = kernel.params().to_vec();
        let sizes = |index: usize| {
            if params[index].name == name {
                value
            } else {
                64
            }
        };
        kernel.grid(&Named(&sizes), 108)
    };
    let product = grid(&GemmKernel::tiled(), "m", 0).unwrap();
    assert!(product.contains(&0), "{product:?}");
    for kernel in [
        AttentionKernel::simple(64),
        AttentionKernel::flash_tiled(64),
        AttentionKernel::flash_mma(PtxType::BF16, 64),
        AttentionKernel::flash(PtxType::BF16, 64),
    ] {
        for (name, axis) in [("batch", "z"), ("heads", "y")] {
            assert!(grid(&kernel, name, 65_535).is_ok(), "{}", kernel.name());
            let error = grid(&kernel, name, 65_536).unwrap_err();
            assert!(
                matches!(error, Error::Limit { limit: 65_535, .. }),
                "{error}"
            );
            let expected = format!(
                "{}: the grid along {axis}, which is `{name}`, is 65536, beyond the limit of 65535",
                kernel.name()
            );
            assert_eq!(error.to_string(), expected);
        }
    }
}
