// Compiled, never run: the entry for PTX, as `tsc --strict` sees it.

import init, { PtxModule, RelampagoError, buildKernel, targetNames } from 'relampago/ptx';
import type { KernelDescription, Launch, Param, PtxKernel, TargetName } from 'relampago/ptx';

type IsAny<T> = 0 extends 1 & T ? true : false;
function exactly<T>(_value: IsAny<T> extends true ? never : T): void {}

export async function everything(): Promise<void> {
  exactly<void>(await init());
  exactly<TargetName[]>(targetNames());
  const description: KernelDescription = { kernel: 'gemm_tiled', epilogue: { bias: true, activation: 'silu' } };
  const kernel = buildKernel(description, 'sm_80');
  exactly<PtxKernel>(kernel);
  exactly<string>(kernel.text);
  exactly<TargetName>(kernel.target);
  exactly<Param[]>(kernel.params);
  exactly<Launch>(kernel.launch);
  exactly<[number, number, number]>(kernel.launch.block);
  exactly<Uint32Array>(kernel.grid({ m: 1, n: 1, k: 1 }, 132));
  const module = new PtxModule('sm_90a');
  exactly<void>(module.add(buildKernel({ kernel: 'activation', function: 'relu' })));
  exactly<string>(module.text);
}

export function wrong(error: RelampagoError): void {
  exactly<string>(error.code);
  // @ts-expect-error there is no such kernel
  buildKernel({ kernel: 'fft' });
  // @ts-expect-error there is no such type
  buildKernel({ kernel: 'gemm_mma', type: 'u8' });
  // @ts-expect-error there is no such option
  buildKernel({ kernel: 'softmax', columns: 4 });
  // @ts-expect-error there is no such target
  buildKernel({ kernel: 'softmax' }, 'sm_61');
}
