interface Freed {
    free(): void;
}

export class PtxKernel {
    private constructor();
    readonly name: string;
    readonly target: string;
    readonly text: string;
    readonly params: object[];
    readonly launch: object;
    readonly registers: number;
    readonly sharedBytes: number;
    readonly dynamicSharedBytes: number;
    grid(sizes: any, multiprocessors: any): Uint32Array;
}
export interface PtxKernel extends Freed {}

export class PtxModule {
    constructor(target: any);
    readonly text: string;
    add(kernel: PtxKernel): void;
}
export interface PtxModule extends Freed {}

export function buildKernel(description: any, target?: any): PtxKernel;
export function targetNames(): string[];

export default function load(options: { module_or_path: any }): Promise<unknown>;
