//! A kernel of one's own: written, verified, printed, and run on the CPU.
//!
//! `cargo run --no-default-features --features ptx --example ptx_quickstart`

use relampago::ptx::PtxType::{F32, U32};
use relampago::ptx::interp::{Argument, Memory, Program};
use relampago::ptx::{Builder, Error, Extent, Launch, Op, PtxModule, Special, Target};

fn main() -> Result<(), Error> {
    // y = a · x + y: 256 threads a block, one value a thread.
    let one = Extent::Fixed(1);
    let launch = Launch::new(256, [Extent::Tiles("n", 256), one, one]);
    let mut k = Builder::new("saxpy", Target::Sm80, launch);
    let (x, y) = (k.pointer("x", F32), k.pointer("y", F32));
    let (a, n) = (k.scalar("a", F32), k.scalar("n", U32));
    let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
    let i = k.fma(block, 256, thread);
    let inside = k.lt(i, n);
    k.when(inside, |k| {
        let (x, y) = (k.at(x, i, 4), k.at(y, i, 4));
        let x = k.ld_global(F32, x, 0);
        let old = k.ld(Op::LdGlobal, F32, y, 0);
        let new = k.fma(a, x, old);
        k.st_global(F32, y, 0, new);
    });
    let kernel = k.finish()?;
    let text = PtxModule::new(Target::Sm80).with(kernel.clone())?.emit();
    println!("{text}");

    let mut memory = Memory::new();
    let x = memory.upload_f32(&[1.0, 2.0, 3.0]);
    let y = memory.upload_f32(&[10.0, 20.0, 30.0]);
    let arguments = [
        Argument::Pointer(x),
        Argument::Pointer(y),
        Argument::F32(2.0),
        Argument::U32(3),
    ];
    let statistics = Program::parse(&text)?.launch(&kernel, &arguments, &mut memory)?;
    println!("// y = {:?} after {statistics:?}", memory.read_f32(y));
    Ok(())
}
