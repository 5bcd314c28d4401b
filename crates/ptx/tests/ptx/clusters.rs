//! Clusters of blocks: valid and invalid accesses to the shared memory of other blocks.

use relampago_ptx::PtxType::{F32, U32};
use relampago_ptx::interp::{Argument, Memory, Program};
use relampago_ptx::{
    Builder, Error, Extent, Launch, Op, Operand, PtxKernel, PtxModule, Reg, Result, Special, Target,
};

fn build(target: Target, cluster: u32, body: impl FnOnce(&mut Builder)) -> Result<PtxKernel> {
    let grid = [Extent::Fixed(4), Extent::Fixed(1), Extent::Fixed(1)];
    let launch = Launch::new(32, grid).clustered([cluster, 1, 1]);
    let mut k = Builder::new("kernel", target, launch);
    body(&mut k);
    k.finish()
}

/// Each block of two writes its rank, and stores what `read` gives of the other's place.
fn exchange(
    before: impl FnOnce(&mut Builder),
    read: impl FnOnce(&mut Builder, Reg) -> Reg,
    after: impl FnOnce(&mut Builder),
) -> Result<Vec<f32>> {
    let kernel = build(Target::Sm90, 2, |k| {
        let to = k.pointer("to", F32);
        let place = k.shared("place", F32, 32);
        let (thread, rank) = (k.special(Special::TidX), k.special(Special::ClusterCtaRank));
        let own = k.fma(thread, 4, place);
        let value = k.convert(Op::CvtF32U32, F32, &[rank.into()]);
        k.st_shared(F32, own, 0, value);
        before(k);
        let other = k.xor(rank, 1);
        let theirs = k.op(Op::Mapa, U32, U32, &[own.into(), other.into()]);
        let value = read(k, theirs);
        after(k);
        let block = k.special(Special::CtaidX);
        let index = k.fma(block, 32, thread);
        let to = k.at(to, index, 4);
        k.st_global(F32, to, 0, value);
    })?;
    let text = PtxModule::new(Target::Sm90).with(kernel.clone())?.emit();
    let mut memory = Memory::new();
    let to = memory.upload_f32(&[f32::NAN; 128]);
    Program::parse(&text)?.launch(&kernel, &[Argument::Pointer(to)], &mut memory)?;
    Ok(memory.read_f32(to))
}

fn load(k: &mut Builder, from: Reg) -> Reg {
    k.op(Op::LdCluster, F32, F32, &[Operand::At(from, 0)])
}

fn message(result: Result<Vec<f32>>) -> String {
    match result {
        Err(Error::Fault { message, .. }) => message,
        other => panic!("no fault, but {other:?}"),
    }
}

#[test]
fn blocks_of_a_cluster_read_each_other() {
    let values = exchange(Builder::cluster_barrier, load, Builder::cluster_barrier).unwrap();
    let expected: Vec<f32> = (0..128).map(|i| (1 - i / 32 % 2) as f32).collect();
    assert_eq!(values, expected);
}

#[test]
fn access_before_a_block_begins_is_reported() {
    let said = message(exchange(|_| (), load, Builder::cluster_barrier));
    assert!(said.contains("may not have begun"), "{said}");
}

#[test]
fn access_after_a_block_ends_is_reported() {
    let said = message(exchange(Builder::cluster_barrier, load, |_| ()));
    assert!(said.contains("may be over"), "{said}");
}

#[test]
fn ranks_beyond_the_cluster_are_reported() {
    let far = |k: &mut Builder, from: Reg| {
        let from = k.add(from, 2 << 24);
        load(k, from)
    };
    let said = message(exchange(
        Builder::cluster_barrier,
        far,
        Builder::cluster_barrier,
    ));
    assert!(said.contains("no block of rank"), "{said}");
}

#[test]
fn unbalanced_cluster_barriers_are_reported() {
    let arrive = |k: &mut Builder| k.act(Op::ClusterArrive, &[]);
    let twice = |k: &mut Builder| {
        arrive(k);
        arrive(k);
    };
    let said = message(exchange(twice, load, |_| ()));
    assert!(said.contains("barrier twice"), "{said}");
    let said = message(exchange(|k| k.act(Op::ClusterWait, &[]), load, |_| ()));
    assert!(said.contains("without arriving"), "{said}");
}

#[test]
fn invalid_clusters_return_errors() {
    let error = build(Target::Sm80, 2, |_| ());
    let needed = Target::Sm90;
    assert!(
        matches!(error, Err(Error::Target { needed: first, .. }) if first == needed),
        "{error:?}"
    );
    let error = build(Target::Sm90, 16, |_| ());
    assert!(
        matches!(
            error,
            Err(Error::Limit {
                value: 16,
                limit: 8,
                ..
            })
        ),
        "{error:?}"
    );
    let kernel = build(Target::Sm90, 8, |_| ()).unwrap();
    let none: &[Argument] = &[];
    let error = kernel.grid(&none, 132);
    assert!(
        matches!(error, Err(Error::Invalid { what: "grid", .. })),
        "{error:?}"
    );
}
