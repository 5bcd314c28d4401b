//! Mistakes are errors at once, before anything runs.

use relampago::{
    Axes, Backend, Border, ConvOptions, Interpolation, PoolOptions, Result, Slice, Tensor, Tensors,
};

fn code(result: Result<Tensor>) -> &'static str {
    result.expect_err("a mistake").code()
}

fn given() -> (Tensors, Tensor) {
    let tensors = crate::tensors(Backend::Simd);
    let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    (tensors, x.expect("six elements"))
}

#[test]
fn axes_that_no_index_can_reach_are_refused() {
    let (tensors, _) = given();
    let error = tensors.zeros(&[1 << 63, 0]).expect_err("a long axis");
    assert_eq!(error.code(), "LIMIT_EXCEEDED");
}

#[test]
fn shapes_that_do_not_fit_are_errors_at_once() -> Result<()> {
    let (tensors, x) = given();
    let other = tensors.zeros(&[3, 2])?;
    let image = tensors.zeros(&[1, 2, 4, 4])?;
    let wrong = [
        tensors.tensor(&[1.0; 5], &[2, 3]),
        x.add(&other),
        x.mul(&other),
        x.less(&other),
        x.and(&other),
        x.select(&other, 1.0),
        x.matmul(&x),
        x.reshape(&[4, -1]),
        x.reshape(&[5]),
        x.broadcast_to(&[3, 3]),
        x.broadcast_to(&[3]),
        x.squeeze(0),
        x.permute(&[0]),
        x.permute(&[0, 0]),
        x.argmax([0, 1]),
        x.layer_norm(&other, &other, -1, 1e-5),
        Tensor::concat(&[&x, &other], 0),
        Tensor::stack(&[&x, &other], 0),
        tensors.ones(&[3])?.transpose(),
        x.conv2d(&image, ConvOptions::new()),
        image.conv2d(&tensors.ones(&[1, 3, 1, 1])?, ConvOptions::new()),
        image.conv2d(&tensors.ones(&[1, 2, 5, 1])?, ConvOptions::new()),
        x.pad_with(&[[1, 1]], 0.0),
        x.max_pool(&PoolOptions::new(&[3]))
            .and_then(|y| y.max_pool(&PoolOptions::new(&[2]))),
        x.avg_pool(&PoolOptions::new(&[1, 1, 1])),
        x.resize(&[1, 2, 3], Interpolation::Nearest),
        x.bincount(7, Some(&other)),
        x.fft(0),
        other.irfft(7, 0),
        other.istft(&tensors.ones(&[4])?, 2, 8),
        x.stft(&x, 2),
        Tensor::einsum("ij,ij->", &[&x, &other]),
    ];
    for (at, wrong) in wrong.into_iter().enumerate() {
        assert_eq!(code(wrong), "SHAPE_MISMATCH", "mistake {at}");
    }
    let scalar = tensors.ones(&[])?.top_k(1).map(|(values, _)| values);
    assert_eq!(code(scalar), "SHAPE_MISMATCH");
    assert_eq!(x.item().expect_err("six elements").code(), "SHAPE_MISMATCH");
    assert_eq!(tensors.planned(), 0);
    Ok(())
}

#[test]
fn values_out_of_range_are_errors_at_once() -> Result<()> {
    let (tensors, x) = given();
    let gain = tensors.ones(&[3])?;
    let image = tensors.ones(&[1, 1, 4, 4])?;
    let wrong = [
        x.sum(2),
        x.sum(-3),
        x.sum([0, -2]),
        x.softmax(5),
        x.unsqueeze(4),
        x.sum(..)?.sum(0),
        x.clip(2.0, 1.0),
        x.clip(f32::NAN, 1.0),
        x.one_hot(0),
        x.at(0, 2),
        x.at(1, -4),
        tensors.ones(&[0, 3])?.at(0, 0),
        x.slice(1, 0..4),
        x.slice(1, -4..),
        x.slice(1, Slice::from(3..).step(-1)),
        x.top_k(4).map(|(values, _)| values),
        image.conv2d(
            &tensors.ones(&[1, 1, 1, 1])?,
            ConvOptions::new().padding(4, 0).border(Border::Reflect),
        ),
        image.conv2d(
            &tensors.ones(&[1, 1, 3, 1])?,
            ConvOptions::new().dilation(usize::MAX, 1),
        ),
        x.slice(0, Slice::from(..).step(0)),
        x.reshape(&[-2, 3]),
        x.reshape(&[-1, -1]),
        x.rms_norm(&gain, -1, 0.0),
        x.matmul(&tensors.ones(&[])?),
        x.gather(&tensors.tensor(&[0.0, 2.0], &[2])?, 0),
        x.gather(&tensors.tensor(&[0.5], &[1])?, 0),
        image.conv2d(&image, ConvOptions::new().stride(0, 1)),
        image.conv2d(&image, ConvOptions::new().groups(0)),
        tensors.arange(0.0, 1.0, 0.0),
        tensors.arange(0.0, f32::INFINITY, 1.0),
        tensors.linspace(f32::NAN, 1.0, 3),
        x.pad(&[[2, 0], [0, 0]], Border::Reflect),
        x.repeat(2, 2),
        x.roll(1, -3),
        x.split(2, 1).map(|parts| parts[0].clone()),
        x.split_at(&[2, 1], 1).map(|parts| parts[0].clone()),
        x.norm(f32::NAN, ..),
        x.cumsum(2),
        x.sort(-3),
        x.dropout(1.5, 0),
        x.bincount(6, None),
        x.histogram(0, 0.0, 1.0),
        x.histogram(4, 1.0, 1.0),
        x.max_pool(&PoolOptions::new(&[2]).padding(&[2])),
        x.max_pool(&PoolOptions::new(&[2]).stride(&[0])),
        x.resize(&[0], Interpolation::Nearest),
        tensors.zeros(&[3, 2])?.fft(1),
        Tensor::einsum("ij->k", &[&x]),
        Tensor::einsum("ij,jk", &[&x]),
    ];
    for (at, wrong) in wrong.into_iter().enumerate() {
        assert_eq!(code(wrong), "INVALID_ARGUMENT", "mistake {at}");
    }
    assert_eq!(code(x.reshape(&[1, 1, 1, 1, 1, 2, 3])), "LIMIT_EXCEEDED");
    assert_eq!(code(tensors.ones(&[usize::MAX, 2])), "SHAPE_OVERFLOW");
    assert_eq!(code(tensors.ones(&[0, 3])?.max(0)), "EMPTY");
    assert_eq!(code(Tensor::stack(&[], 0)), "EMPTY");
    assert_eq!(tensors.planned(), 0);
    Ok(())
}

#[test]
fn tensors_of_different_caches_do_not_mix() -> Result<()> {
    let (tensors, x) = given();
    let (others, y) = given();
    assert_eq!(code(x.add(&y)), "FOREIGN");
    assert_eq!(code(x.matmul(&y.transpose()?)), "FOREIGN");
    assert_eq!(code(Tensor::concat(&[&x, &y], 0)), "FOREIGN");
    let read = others.read(&[&y, &x]);
    assert_eq!(read.expect_err("another cache").code(), "FOREIGN");
    let buffer = others.device().upload(&[1.0])?;
    assert_eq!(code(tensors.from_buffer(buffer, &[1])), "FOREIGN");
    Ok(())
}

#[test]
fn errors_name_the_argument_and_both_shapes() -> Result<()> {
    let (tensors, x) = given();
    let message = |result: Result<Tensor>| result.expect_err("a mistake").to_string();
    let other = tensors.zeros(&[3, 2])?;
    let expected = "add: `b` has shape [3, 2], which does not broadcast with [2, 3] of `a`";
    assert_eq!(message(x.add(&other)), expected);
    let expected = "`axis` is 2, but must be from -2 to 1 for shape [2, 3]";
    assert_eq!(message(x.sum(Axes::from(2).keep_dims())), expected);
    let expected = "matmul: `b` has shape [2, 3], but must have 3 rows for shape [2, 3] of `a`";
    assert_eq!(message(x.matmul(&x)), expected);
    let expected = "`index` is 3, but must be from -3 to 2 on axis 1 of shape [2, 3]";
    assert_eq!(message(x.at(1, 3)), expected);
    let expected = "`range` is 0..4, but must be from -3 to 3 for the 3 elements of axis 1";
    assert_eq!(message(x.slice(1, 0..4)), expected);
    let expected =
        "`range` is 3.. by steps of -1, but must be from -3 to 3 for the 3 elements of axis 1";
    assert_eq!(message(x.slice(1, Slice::from(3..).step(-1))), expected);
    let expected = "`k` is 9, but must be at most 3, the length of the last axis of shape [2, 3]";
    assert_eq!(message(x.top_k(9).map(|(values, _)| values)), expected);
    Ok(())
}

/// No message has a length that arithmetic made of those that were given.
#[test]
fn errors_of_long_shapes_name_the_shape_that_was_given() -> Result<()> {
    let (tensors, x) = given();
    let message = |result: Result<Tensor>| {
        let error = result.expect_err("more elements than an array can hold");
        assert_eq!(error.code(), "SHAPE_OVERFLOW", "{error}");
        error.to_string()
    };
    let most = "has more values than 2305843009213693951, the most of an array";
    let (max, half) = (usize::MAX, isize::MAX as usize);
    let expected = format!("`tensor` of shape [{max}, 2, 3] {most}");
    assert_eq!(message(x.broadcast_to(&[max, 2, 3])), expected);
    assert_eq!(message(tensors.full(&[max, 2, 3], 1.0)), expected);
    assert_eq!(message(tensors.tensor(&[], &[max, 2, 3])), expected);
    let expected = format!("`tensor` of shape [{half}, {half}] {most}");
    assert_eq!(message(x.reshape(&[isize::MAX, isize::MAX])), expected);
    let rows = tensors.ones(&[1 << 40, 1])?;
    let expected = format!("`result` of shape [{0}, {0}] {most}", 1_usize << 40);
    assert_eq!(message(rows.add(&rows.transpose()?)), expected);
    assert_eq!(message(rows.matmul(&rows.transpose()?)), expected);
    let expected = format!("`result` of shape [{0}, 1, {0}] {most}", 1_usize << 40);
    let indices = tensors.ones(&[])?.broadcast_to(&[1 << 40])?;
    let wide = tensors.ones(&[2, 1, 1 << 40])?;
    assert_eq!(message(wide.gather(&indices, 0)), expected);
    let all = rows
        .reshape(&[-1, isize::MAX, isize::MAX])
        .expect_err("no such part");
    let expected = format!(
        "reshape: shape [{0}, 1] of {0} elements does not divide into [-1, {half}, {half}]",
        1_usize << 40
    );
    assert_eq!(all.to_string(), expected);
    Ok(())
}
