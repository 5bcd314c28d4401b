//! Indices beyond their limit: an error where the host had them, NaN where a device computed them.

use relampago::{Result, Tensor};

const INDICES: [f32; 4] = [7.0, 1.0, 0.0, 7.0];

fn message(result: Result<Tensor>) -> String {
    let error = result.expect_err("an index beyond the limit");
    assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    error.to_string()
}

#[test]
fn given_indices_beyond_the_limit_are_errors_wherever_they_are_now() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let table = tensors.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
        let needed = "but must be whole numbers from 0 and below 2";
        let first = format!("`indices` is 7 at position 0, {needed}");
        let both = |indices: &Tensor, expected: &str| {
            assert_eq!(message(table.gather(indices, 0)), expected, "{backend}");
            assert_eq!(message(table.gather(indices, -1)), expected, "{backend}");
            assert_eq!(message(indices.one_hot(2)), expected, "{backend}");
        };
        let indices = tensors.tensor(&INDICES, &[4])?;
        both(&indices, &first);
        both(&indices.reshape(&[2, 2])?, &first);
        // No position where the elements lie in another order, or are repeated.
        let anywhere = format!("`indices` is 7, {needed}");
        both(&indices.reshape(&[2, 2])?.transpose()?, &anywhere);
        both(&indices.broadcast_to(&[3, 4])?, &anywhere);
        both(&tensors.full(&[3], 7.0)?, &anywhere);
        // On the device from here on.
        let moved = indices.reshape(&[4, 1])?.run()?;
        both(&moved, &first);
        both(&indices.run()?, &first);
        for wrong in [-1.0, 0.5, f32::NAN, f32::INFINITY, 1e30] {
            let expected = format!("`indices` is {wrong} at position 1, {needed}");
            both(&tensors.tensor(&[0.0, wrong, 7.0], &[3])?, &expected);
        }
        let nothing = "`indices` is 0 at position 0, but must be absent, as there is nothing to \
                       choose from";
        let none = tensors.zeros(&[0, 2])?;
        let zero = tensors.tensor(&[0.0], &[1])?;
        assert_eq!(message(none.gather(&zero, 0)), nothing);
        assert_eq!(
            table.gather(&tensors.tensor(&[], &[0])?, 0)?.shape(),
            [0, 2]
        );
    }
    Ok(())
}

#[test]
fn computed_indices_beyond_the_limit_give_nan_on_every_back_end() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let table = tensors.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
        let indices = [
            7.0,
            1.0,
            0.0,
            2.0,
            -1.0,
            0.5,
            f32::NAN,
            f32::INFINITY,
            -0.0,
            1e30,
        ];
        let rows = |of: [[f32; 2]; 2]| {
            let row = |&index: &f32| match index {
                0.0 => of[0],
                1.0 => of[1],
                _ => [f32::NAN; 2],
            };
            indices.iter().flat_map(row).collect::<Vec<f32>>()
        };
        let bits = |values: &[f32]| -> Vec<u32> {
            let one = |x: &f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
            values.iter().map(one).collect()
        };
        let gathered = bits(&rows([[1.0, 2.0], [3.0, 4.0]]));
        let encoded = bits(&rows([[1.0, 0.0], [0.0, 1.0]]));
        let computed = tensors.tensor(&indices, &[10])?.mul(1.0)?;
        let settled = tensors.tensor(&indices, &[10])?.mul(1.0)?.run()?;
        let buffer = tensors.device().upload(&indices)?;
        let resident = tensors.from_buffer(buffer, &[10])?;
        // A part of what the host has counts as computed.
        let padded = [&indices[..], &[99.0]].concat();
        let part = tensors.tensor(&padded, &[11])?.slice(0, ..10)?;
        for indices in [&computed, &settled, &resident, &part] {
            let results = [table.gather(indices, 0)?, indices.one_hot(2)?];
            let values = tensors.read(&results.each_ref())?;
            assert_eq!(bits(&values[0]), gathered, "{backend}");
            assert_eq!(bits(&values[1]), encoded, "{backend}");
        }
    }
    Ok(())
}

#[test]
fn computed_classes_are_encoded_exactly() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = tensors.tensor(&[3.0, 1.0, 2.0, 5.0, 9.0, 4.0], &[2, 3])?;
        let classes = x.argmax(1)?.one_hot(3)?;
        let expected = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        assert_eq!(classes.read()?, expected, "{backend}");
        // Logical operations take it as they take every tensor.
        assert_eq!(classes.and(&x.greater(3.0)?)?.sum(..)?.item()?, 1.0);
        assert_eq!(classes.not()?.sum(..)?.item()?, 4.0);
    }
    Ok(())
}
