//! Tests of measured thresholds and of the file that keeps them.

use std::fs;

use super::super::target::cache;
use crate::device::{Backend, DeviceBuilder, GpuDevice};
use crate::ops::policy::{Policy, PolicySource};
use crate::ops::{Op, OpClass};

fn builder(folder: &std::path::Path) -> DeviceBuilder {
    let builder = GpuDevice::builder().backend(Backend::Gpu).threads(1);
    builder.pipeline_cache(folder)
}

#[test]
fn measured_thresholds_are_stored_for_later_devices() {
    let folder = std::env::temp_dir().join(format!("relampago-thresholds-{}", std::process::id()));
    let device = builder(&folder).build().unwrap();
    let info = device.info();
    assert_eq!(info.policy_source, PolicySource::Default);
    assert_eq!(info.policy, Policy::default());
    let calibration = device.calibrate().unwrap();
    for class in OpClass::ALL {
        let samples = calibration
            .samples
            .iter()
            .filter(|sample| sample.class == class);
        let faster = samples.filter(|sample| sample.gpu < sample.simd);
        let least = faster.map(|sample| sample.work).min();
        let threshold = calibration.policy.threshold(class);
        assert_eq!(threshold, least.unwrap_or(Policy::NEVER), "{class:?}");
    }
    let info = device.info();
    assert_eq!(
        (info.policy, info.policy_source),
        (calibration.policy, PolicySource::Measured)
    );
    let later = |change: fn(DeviceBuilder) -> DeviceBuilder| {
        let info = change(builder(&folder)).build().unwrap().info();
        (info.policy, info.policy_source)
    };
    assert_eq!(
        later(|same| same),
        (calibration.policy, PolicySource::Measured)
    );
    // A policy of the caller's stands, and other threads make other thresholds.
    let given = (Policy::ALWAYS_GPU, PolicySource::Given);
    assert_eq!(later(|builder| builder.policy(Policy::ALWAYS_GPU)), given);
    let default = (Policy::default(), PolicySource::Default);
    assert_eq!(later(|builder| builder.threads(2)), default);
    // A damaged file is as none.
    let files = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let path = files
        .into_iter()
        .find(|path| path.to_string_lossy().contains("choices"));
    let path = path.expect("a file of choices");
    let mut bytes = fs::read(&path).unwrap();
    assert!(cache::read(&path).is_some());
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(later(|same| same), default);
    drop(device);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_given_policy_outlasts_a_calibration() {
    let given = Policy::default().with_threshold(OpClass::Matmul, 7);
    let builder = GpuDevice::builder().backend(Backend::Gpu).policy(given);
    let device = builder.build().unwrap();
    assert!(device.calibrate().unwrap().samples.len() >= OpClass::ALL.len());
    let info = device.info();
    assert_eq!(
        (info.policy, info.policy_source),
        (given, PolicySource::Given)
    );
}

#[test]
fn devices_without_a_gpu_have_nothing_to_measure() {
    let builder = GpuDevice::builder().backend(Backend::Simd);
    let device = builder.build().unwrap();
    assert!(device.calibrate().unwrap().samples.is_empty());
    assert_eq!(device.info().policy_source, PolicySource::Default);
    assert!(device.run(&Op::Relu, &[&[-1.0]]).is_ok());
}
