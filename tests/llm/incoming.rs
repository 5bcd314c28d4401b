//! Models whose files arrive in pieces.

use super::on_gpu;
use super::random_models::{LLAMA, SHAPES, random_model};
use crate::support::Random;
use relampago::llm::{IncomingModel, LanguageModel, LoadOptions};
use relampago::{Backend, Error, GpuDevice};

/// The bytes of the head: more than the metadata, and of some files part of the weights, too.
const HEAD: usize = 1 << 16;

fn begin(bytes: &[u8], len: u64) -> Result<IncomingModel, Error> {
    let head = bytes[..bytes.len().min(HEAD)].to_vec();
    IncomingModel::new(head, len, on_gpu())
}

/// Writes a file in pieces of random sizes.
fn write(incoming: &mut IncomingModel, mut bytes: &[u8], random: &mut Random) {
    while !bytes.is_empty() {
        let len = (random.below(20_000) + 1).min(bytes.len());
        let (piece, rest) = bytes.split_at(len);
        incoming.write(piece).unwrap();
        bytes = rest;
    }
}

#[test]
fn models_in_pieces_are_whole_models() {
    let random = &mut Random(5);
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let (bytes, _) = random_model(shape, seed as u64);
        let whole = LanguageModel::from_bytes(bytes.clone(), on_gpu()).unwrap();
        // The size may not be known.
        let len = [bytes.len() as u64, u64::MAX][seed % 2];
        let mut incoming = begin(&bytes, len).unwrap();
        write(&mut incoming, &bytes, random);
        let model = incoming.finish().unwrap();
        assert_eq!(model.info(), whole.info());
        let mut session = model.session().unwrap();
        let mut expected = whole.session().unwrap();
        for tokens in [&[1, 2, 3, 4][..], &[5]] {
            assert_eq!(
                session.prefill(tokens).unwrap(),
                expected.prefill(tokens).unwrap()
            );
        }
        // A saved session is of this file, however the model was loaded.
        let saved = expected.save().unwrap();
        assert_eq!(session.save().unwrap(), saved);
        let mut loaded = model.load_session(&saved, &[]).unwrap();
        assert_eq!(loaded.decode(6).unwrap(), session.decode(6).unwrap());
    }
}

#[test]
fn models_in_pieces_stay_on_their_gpu() {
    let (bytes, _) = random_model(LLAMA, 1);
    let mut incoming = begin(&bytes, bytes.len() as u64).unwrap();
    incoming.write(&bytes).unwrap();
    let mut model = incoming.finish().unwrap();
    let simd = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let error = model.move_to(&simd).unwrap_err();
    assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    assert_eq!(model.info().backend, Backend::Gpu);
    assert!(model.session().unwrap().prefill(&[1]).is_ok());
}

#[test]
fn heads_of_the_least_size_make_the_same_sessions() {
    let (bytes, _) = random_model(LLAMA, 1);
    let len = bytes.len() as u64;
    let mut head = 24;
    let mut incoming = loop {
        match IncomingModel::new(bytes[..head].to_vec(), len, on_gpu()) {
            Ok(incoming) => break incoming,
            Err(Error::LimitExceeded { value, .. }) if value as usize > head => {
                head = value as usize;
            }
            Err(error) => panic!("{error}"),
        }
    };
    incoming.write(&bytes).unwrap();
    let model = incoming.finish().unwrap();
    let whole = LanguageModel::from_bytes(bytes, on_gpu()).unwrap();
    let mut session = whole.session().unwrap();
    session.prefill(&[1, 2]).unwrap();
    let saved = session.save().unwrap();
    assert_eq!(model.load_session(&saved, &[]).unwrap().tokens(), &[1, 2]);
}

#[test]
fn a_piece_that_was_not_taken_breaks_the_model() {
    let (bytes, _) = random_model(LLAMA, 1);
    let options = on_gpu();
    let device = options.device.clone().unwrap();
    let mut incoming = IncomingModel::new(bytes.clone(), bytes.len() as u64, options).unwrap();
    device.as_wgpu().unwrap().destroy();
    let error = incoming.write(&bytes).unwrap_err();
    assert_eq!(error.code(), "DEVICE_LOST", "{error}");
    for error in [incoming.write(&bytes), incoming.finish().map(drop)] {
        let error = error.unwrap_err();
        assert_eq!(error.code(), "INVALID_MODEL", "{error}");
        assert!(error.to_string().contains("not taken"), "{error}");
    }
}

#[test]
fn incomplete_models_are_errors() {
    let (bytes, _) = random_model(LLAMA, 1);
    let len = bytes.len() as u64;
    for end in [0, HEAD, bytes.len() - 40_000] {
        let mut incoming = begin(&bytes, len).unwrap();
        incoming.write(&bytes[..end]).unwrap();
        let error = incoming.finish().unwrap_err();
        assert_eq!(error.code(), "INVALID_MODEL", "{error}");
        assert!(
            error.to_string().contains(&format!("byte {end}")),
            "{error}"
        );
    }
    let error = IncomingModel::new(bytes[..100].to_vec(), len, on_gpu()).unwrap_err();
    assert_eq!(error.code(), "LIMIT_EXCEEDED", "{error}");
    let mut on_simd = LoadOptions::default();
    on_simd.device = GpuDevice::builder().backend(Backend::Simd).build().ok();
    for options in [LoadOptions::default(), on_simd] {
        let error = IncomingModel::new(bytes.clone(), len, options).unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    }
}
