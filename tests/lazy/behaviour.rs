//! The programs that are planned, the operations that run, and the depth of graphs.

use super::random::Random;
use relampago::{Backend, GpuCommandBatch, Result, Tensor};

#[test]
fn another_factor_and_other_values_plan_nothing() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    for step in 1..10_u8 {
        let factor = f32::from(step);
        let x = tensors.tensor(&[factor, 2.0], &[2])?;
        let y = x.mul(factor)?.add(0.5)?.sum(0)?;
        assert_eq!(y.item()?, factor * factor + 2.0 * factor + 1.0);
    }
    assert_eq!(tensors.planned(), 1);
    // A bound belongs to the structure, to the sign of zero.
    let x = tensors.ones(&[2])?;
    for bound in [0.0, -0.0, 0.0] {
        x.minimum(1.0)?.clip(bound, 4.0)?.read()?;
    }
    assert_eq!(tensors.planned(), 3);
    Ok(())
}

#[test]
fn the_cache_drops_the_program_that_was_used_longest_ago() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let run = |len: usize| tensors.ones(&[len])?.exp()?.sum(0)?.item();
    for len in 1..=64 {
        run(len)?;
    }
    run(1)?;
    run(65)?;
    assert_eq!((tensors.planned(), tensors.cached()), (65, 64));
    run(1)?;
    assert_eq!(tensors.planned(), 65);
    run(2)?;
    assert_eq!(tensors.planned(), 66);
    Ok(())
}

#[test]
fn loops_plan_once() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let mut x = tensors.tensor(&[0.5, 0.25], &[2])?;
    for _ in 0..20 {
        x = x.mul(3.7)?.mul(&x.neg()?.add(1.0)?)?.run()?;
    }
    let mut expected = [0.5_f32, 0.25];
    for _ in 0..20 {
        expected = expected.map(|x| 3.7 * x * (1.0 - x));
    }
    let values = x.read()?;
    assert!(
        values
            .iter()
            .zip(expected)
            .all(|(x, want)| (x - want).abs() < 1e-3),
        "{values:?}"
    );
    assert_eq!(tensors.planned(), 1);
    Ok(())
}

#[test]
fn results_may_be_leaves_views_and_each_other() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
        let (y, turned) = (x.add(1.0)?, x.transpose()?);
        let none = tensors.zeros(&[0, 3])?;
        let same = x.reshape(&[4])?;
        let list = [&x, &y, &y, &turned, &none, &same];
        let own = [1.0, 2.0, 3.0, 4.0];
        let sums = [2.0, 3.0, 4.0, 5.0];
        let expected: [&[f32]; 6] = [&own, &sums, &sums, &[1.0, 3.0, 2.0, 4.0], &[], &own];
        assert_eq!(tensors.read(&list)?, expected);
        tensors.run(&list)?;
        assert_eq!(tensors.read(&list)?, expected);
        assert_eq!(tensors.planned(), 1);
    }
    Ok(())
}

#[test]
fn buffers_are_used_where_they_are() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let buffer = tensors.device().upload(&[1.0, 2.0, 3.0])?;
        let x = tensors.from_buffer(buffer.clone(), &[3, 1])?;
        assert_eq!(x.add(&x.transpose()?)?.sum(0)?.read()?, [9.0, 12.0, 15.0]);
        drop(x);
        assert_eq!(buffer.read()?, [1.0, 2.0, 3.0]);
    }
    Ok(())
}

#[test]
fn graphs_may_be_deeper_than_the_stack() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let deep = |depth: usize| -> Result<Tensor> {
        let one = tensors.ones(&[1])?;
        let mut x = tensors.zeros(&[1])?;
        for _ in 0..depth {
            x = x.add(&one)?;
        }
        Ok(x)
    };
    drop(deep(100_000)?);
    assert_eq!(deep(2_000)?.item()?, 2_000.0);
    Ok(())
}

#[test]
fn threads_share_tensors() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let x = tensors.tensor(&[1.0, 2.0], &[2])?;
    let y = x.mul(2.0)?.add(1.0)?;
    std::thread::scope(|scope| {
        let read = || scope.spawn(|| y.run()?.read());
        let threads: Vec<_> = (0..4).map(|_| read()).collect();
        for thread in threads {
            let values = thread.join().expect("no panic");
            assert_eq!(values, Ok(vec![3.0, 5.0]));
        }
    });
    Ok(())
}

#[cfg(feature = "gpu")]
#[test]
fn several_results_are_submitted_together() -> Result<()> {
    use relampago::Tensors;

    // Without the features that a device of `build` has, with which results need no copy.
    let (device, _) = crate::device::opened(|_| ());
    let queue = device.queue().expect("a GPU");
    let tensors = Tensors::new(&device);
    let number = || {
        let index = format!("{:?}", queue.submit([]));
        let digits: String = index.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().expect("an index")
    };
    let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
    let (sums, product) = (x.sum(0)?, x.matmul(&x.transpose()?)?.relu()?);
    let submissions = |list: &[&Tensor]| {
        let before = number();
        let values = tensors.read(list)?;
        // The last one asks for the index.
        Ok::<_, relampago::Error>((number() - before - 1, values))
    };
    // The first run also prepares the device.
    submissions(&[&sums, &product])?;
    let (sums_alone, _) = submissions(&[&sums])?;
    let (product_alone, _) = submissions(&[&product])?;
    let (together, values) = submissions(&[&sums, &product])?;
    assert_eq!(values, [vec![4.0, 6.0], vec![5.0, 11.0, 11.0, 25.0]]);
    // wgpu submits a part of its own for each buffer that is mapped, but the work itself is submitted once.
    assert!(together + 1 < sums_alone + product_alone);
    Ok(())
}

#[test]
fn special_values_are_recognised() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let values = [1.0, f32::NAN, f32::INFINITY, -f32::INFINITY, f32::MAX, -0.0];
        let x = tensors.tensor(&values, &[2, 3])?;
        // Alone, and fused to other operations.
        let computed = x.abs()?.sqrt()?.sub(f32::INFINITY)?;
        let results = [x.is_nan()?, x.is_finite()?, computed.is_nan()?];
        let expected = [
            [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
            [0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
        ];
        assert_eq!(tensors.read(&results.each_ref())?, expected);
    }
    Ok(())
}

#[test]
fn bytes_come_back_whatever_is_moved_between() -> Result<()> {
    for backend in super::backends() {
        let tensors = super::tensors(backend);
        let mut random = Random(3);
        for [rows, cols, channels] in [[1, 1, 1], [3, 5, 3], [7, 1, 2], [33, 41, 4], [0, 5, 4]] {
            let len = rows * cols * channels;
            let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
            let image = tensors.from_bytes(&bytes, &[rows, cols, channels])?;
            assert_eq!(image.to_bytes()?, bytes, "{backend}");
            let planes = image.permute(&[2, 0, 1])?;
            let want = (0..len).map(|i| bytes[i % (rows * cols) * channels + i / (rows * cols)]);
            assert_eq!(planes.to_bytes()?, want.collect::<Vec<_>>(), "{backend}");
            let wider = planes.mul(1000.0)?.to_bytes()?;
            assert!(
                wider.iter().all(|byte| [0, 255].contains(byte)),
                "{backend}"
            );
            let repeated = image
                .unsqueeze(0)?
                .broadcast_to(&[2, rows, cols, channels])?;
            assert_eq!(repeated.to_bytes()?, bytes.repeat(2), "{backend}");
        }
        let error = tensors.from_bytes(&[1, 2, 3], &[2, 2]).unwrap_err();
        assert_eq!(error.code(), "SHAPE_MISMATCH");
    }
    Ok(())
}

/// The package's tests have the same four bit patterns.
#[test]
fn random_tensors_are_those_of_the_seed() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let normal = tensors.random_normal(&[2, 2], 1)?.read()?;
        let known = [1_052_951_523, 3_197_612_476, 3_196_008_204, 3_212_869_053];
        assert_eq!(
            normal.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            known
        );
        let uniform = tensors.random_uniform(&[3, 1000], u64::MAX)?;
        assert_eq!(uniform.shape(), [3, 1000]);
        let mut expected = vec![0.0; 3000];
        relampago::random::Philox::new(u64::MAX).uniform(0, &mut expected);
        assert_eq!(uniform.read()?, expected);
        assert!(tensors.random_uniform(&[0, 5], 0)?.read()?.is_empty());
        tensors.random_normal(&[1; 7], 0).unwrap_err();
        tensors.random_normal(&[usize::MAX, 2], 0).unwrap_err();
    }
    Ok(())
}

#[test]
fn a_tensor_goes_to_a_batch_and_back() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = tensors.tensor(&[1.0, -2.0, 3.0, -4.0, 5.0, -6.0], &[2, 3])?;
        let buffer = x.transpose()?.mul(2.0)?.to_buffer()?;
        assert_eq!(buffer.read()?, [2.0, -8.0, -4.0, 10.0, 6.0, -12.0]);
        let mut batch = GpuCommandBatch::new(tensors.device().clone());
        let input = batch.input(&buffer);
        let positive = batch.relu(input);
        batch.output(positive)?;
        batch.execute_sync()?;
        let output = batch.keep(positive)?;
        let back = tensors.from_buffer(output, &[3, 2])?;
        assert_eq!(back.sum(0)?.read()?, [8.0, 10.0]);
        // A leaf's buffer, one of no elements, and the same one again.
        assert_eq!(x.to_buffer()?.read()?, x.read()?);
        assert!(tensors.zeros(&[0, 2])?.to_buffer()?.read()?.is_empty());
        assert_eq!(x.to_buffer()?.read()?, x.read()?);
    }
    Ok(())
}
