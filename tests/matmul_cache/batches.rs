//! Cached weights in batches and programs.

use relampago::{
    Backend, Error, GpuCommandBatch, GpuDevice, GpuDevicePool, GpuMatmulCache, TensorView,
};

use crate::support::Random;
use crate::{FORMATS, SHAPES, check, devices, rounded};

#[test]
fn batches_and_programs_multiply_by_cached_weights() {
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device.clone());
        let info = device.info();
        for [m, k, n] in SHAPES {
            let (input, weights) = (Random(1).values(m * k), Random(2).values(k * n));
            for format in FORMATS {
                let view = TensorView::new_2d(k, n).unwrap().bind(&weights).unwrap();
                cache.insert_view("w", &view, format).unwrap();
                let mut batch = GpuCommandBatch::new(device.clone());
                let x = batch.upload(&input);
                let turned = batch.neg(x);
                let product = batch.matmul_cached(&cache, "w", turned, m);
                let y = batch.relu(product);
                // What was recorded has its own weights.
                cache.insert("w", &[f32::NAN], 1, 1).unwrap();
                batch.output(product).unwrap();
                let program = batch.compile(&[product, y]).unwrap();
                batch.execute_sync().unwrap();
                let of_batch = [product, y].map(|id| batch.read_sync(id).unwrap());
                let of_program = program.read(&[]).unwrap();
                let (negated, rounded) = (
                    input.iter().map(|x| -x).collect::<Vec<_>>(),
                    rounded(&weights, k, n, format),
                );
                let what = format!("{m}×{k}×{n} in {format:?} on {info}");
                for [product, y] in [of_batch, of_program.try_into().unwrap()] {
                    check(&product, &negated, &rounded, [m, k, n], &what);
                    let positive: Vec<f32> = product.iter().map(|&x| x.max(0.0)).collect();
                    assert_eq!(y, positive, "{what}");
                }
            }
        }
    }
}

#[test]
fn recorded_matmuls_with_the_same_weights_are_one() {
    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let mut cache = GpuMatmulCache::new(device.clone());
    cache.insert("w", &[1.0, 2.0], 1, 2).unwrap();
    cache.insert("v", &[1.0, 2.0], 1, 2).unwrap();
    let mut batch = GpuCommandBatch::new(device);
    let x = batch.placeholder(1);
    let ids = ["w", "w", "v"].map(|name| batch.matmul_cached(&cache, name, x, 1));
    let program = batch.compile(&ids).unwrap();
    assert_eq!(program.explain().kernels.len(), 2);
    let again = batch.compile(&ids).unwrap();
    for program in [program, again] {
        let results = program.read(&[(&[3.0]).into()]).unwrap();
        assert_eq!(results, [[3.0, 6.0]; 3]);
    }
}

#[test]
fn mistakes_in_recording_cached_matmuls_return_errors() {
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device.clone());
        cache.insert("w", &[1.0, 2.0], 1, 2).unwrap();
        let mut other = GpuMatmulCache::new(GpuDevice::new().unwrap());
        other.insert("w", &[1.0, 2.0], 1, 2).unwrap();
        let error = |cache: &GpuMatmulCache, name: &str, len, m| {
            let mut batch = GpuCommandBatch::new(device.clone());
            let x = batch.placeholder(len);
            let y = batch.matmul_cached(cache, name, x, m);
            match batch.compile(&[y]).unwrap_err() {
                Error::Record { source, .. } => *source,
                error => error,
            }
        };
        assert_eq!(
            error(&cache, "v", 3, 3).to_string(),
            cache
                .matmul_cached("v", &[0.0; 3], &mut [0.0; 6], 3)
                .unwrap_err()
                .to_string()
        );
        let wrong = error(&cache, "w", 3, 4);
        let message = "`input` has 3 values, but must have 4 (m × k)";
        assert_eq!(
            (wrong.code(), &*wrong.to_string()),
            ("LENGTH_MISMATCH", message)
        );
        assert_eq!(error(&cache, "w", 0, usize::MAX).code(), "SHAPE_OVERFLOW");
        assert_eq!(error(&other, "w", 3, 3).code(), "FOREIGN");
    }
}

#[test]
fn pools_refuse_weights_of_one_device() {
    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let mut cache = GpuMatmulCache::new(device.clone());
    cache.insert("w", &[1.0, 2.0], 1, 2).unwrap();
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.placeholder(4);
    let y = batch.matmul_cached(&cache, "w", x, 4);
    let pool = GpuDevicePool::from_devices([device]).unwrap();
    let refused = pool.compile(&batch, &[y]).map(|_| ());
    assert_eq!(refused.unwrap_err().code(), "FOREIGN");
}
