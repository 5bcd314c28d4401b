//! Bulk copies and their barriers: the interpreter's errors for kernels that omit a step.

use relampago_ptx::PtxType::{B32, BF16, F32, Pred, U32};
use relampago_ptx::interp::{Argument, Memory, Program, Tensor};
use relampago_ptx::{
    Builder, Error, Extent, Launch, Op, Operand, PtxKernel, PtxModule, Reg, Result, Special,
    Target, TensorBox,
};

const ROWS: u32 = 8;
const COLS: u32 = 64;

/// The steps that the kernel contains.
#[derive(Clone, Copy)]
struct Steps {
    /// A block barrier after the initialisation.
    barrier: bool,
    /// A wait of both warps for the end of the copy.
    wait: bool,
}

/// One thread copies a box to shared memory, and every thread waits for it.
fn kernel(steps: Steps) -> Result<PtxKernel> {
    let launch = Launch::new(64, [Extent::Fixed(1); 3]);
    let mut k = Builder::new("kernel", Target::Sm90, launch);
    let y = k.pointer("y", F32);
    let shape = [ROWS, COLS].map(Extent::Fixed);
    let map = k.tensor_map("x", TensorBox::new(BF16, [ROWS, COLS], shape));
    let place = k.dynamic_shared("place", ROWS * COLS * 2);
    let done = k.shared("done", U32, 2);
    let thread = k.special(Special::TidX);
    let first = k.eq(thread, 0);
    k.when(first, |k| {
        k.act(Op::MbarrierInit, &[Operand::At(done, 0), 1.into()]);
        k.act(Op::FenceMbarrierInit, &[]);
    });
    if steps.barrier {
        k.barrier();
    }
    k.when(first, |k| {
        let (zero, done) = (k.value(U32, 0), Operand::At(done, 0));
        k.act(Op::MbarrierExpect, &[done, (ROWS * COLS * 2).into()]);
        let from = Operand::Box(map, &[zero, zero]);
        k.act(Op::TmaLoad, &[Operand::At(place, 0), from, done]);
    });
    if steps.wait {
        wait(&mut k, done);
    }
    let to = k.at(y, thread, 4);
    k.st_global(F32, to, 0, 1.0f32);
    k.finish()
}

fn wait(k: &mut Builder, barrier: Reg) {
    k.repeat_while(|k| {
        let from = [Operand::At(barrier, 0), 0.into()];
        let over = k.op(Op::MbarrierTryWait, B32, Pred, &from);
        k.not(over)
    });
}

fn run(steps: Steps) -> Result<Vec<f32>> {
    let kernel = kernel(steps)?;
    let text = PtxModule::new(Target::Sm90).with(kernel.clone())?.emit();
    let mut memory = Memory::new();
    let y = memory.upload_f32(&[0.0; 64]);
    let x = memory.upload(&vec![0; (ROWS * COLS * 2) as usize]);
    let x = Tensor::new(x, BF16, [ROWS, COLS].map(u64::from), [ROWS, COLS]);
    let arguments = [Argument::Pointer(y), Argument::Tensor(x)];
    Program::parse(&text)?.launch(&kernel, &arguments, &mut memory)?;
    Ok(memory.read_f32(y))
}

fn fault(steps: Steps) -> String {
    match run(steps) {
        Err(Error::Fault { message, .. }) => message,
        other => panic!("no fault, but {other:?}"),
    }
}

const ALL: Steps = Steps {
    barrier: true,
    wait: true,
};

#[test]
fn a_copy_with_all_waits_succeeds() {
    assert_eq!(run(ALL).unwrap(), [1.0; 64]);
}

#[test]
fn waiting_for_an_uninitialised_barrier_is_reported() {
    let said = fault(Steps {
        barrier: false,
        ..ALL
    });
    assert!(said.contains("a race"), "{said}");
}

#[test]
fn ending_before_a_copy_completes_is_reported() {
    let said = fault(Steps { wait: false, ..ALL });
    assert!(said.contains("nobody waits"), "{said}");
}
