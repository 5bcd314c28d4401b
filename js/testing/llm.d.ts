// The classes of the module of language models, as wasm-bindgen makes them; `src/js_llm` has their documentation.

interface Freed {
    free(): void;
}

export class Device {
    private constructor();
    static open(device?: string): Promise<Device>;
    readonly backend: string;
    begin(bytes: ModelBytes, size: number, options: any): Promise<IncomingModel>;
    add(type: string, blocks: Uint8Array, rows: number, cols: number): Promise<QuantizedMatrix>;
}
export interface Device extends Freed {}

export class ModelBytes {
    constructor(length: number);
    addPart(length: number): void;
    write(piece: Uint8Array): void;
    hasHead(size: number): boolean;
    inspect(sizes: number[], options: any): object;
    finish(): ModelFile;
}
export interface ModelBytes extends Freed {}

export interface ModelFile extends Freed {
    hasChatTemplate(): boolean;
    load(options: any): Promise<Model>;
}

export interface IncomingModel extends Freed {
    write(piece: Uint8Array): Promise<void>;
    hasChatTemplate(): boolean;
    finish(): Promise<Model>;
}

export interface QuantizedMatrix extends Freed {
    matmul(x: Float32Array, m: number): Promise<Float32Array>;
}

/** A model or a session, which answer. */
interface Answering extends Freed {
    chat(conversation: string, options: any): Generation;
    complete(prompt: string, options: any): Generation;
}

export interface Model extends Answering {
    info(): { vocabulary: number; backend: string };
    tokenize(text: string, special: boolean): Uint32Array;
    detokenize(tokens: ArrayLike<number>): string;
    explain(): object;
    addLora(bytes: Uint8Array, alpha: number | undefined): Promise<Iterable<number>>;
    removeLora(number: number): void;
    tokensToEmbed(text: string, options: any): Uint32Array;
    embed(tokens: Uint32Array[], options: any, isCancelled: () => boolean): Promise<Float32Array>;
    tokensToRank(query: string, text: string, options: any): Uint32Array;
    rank(pairs: Uint32Array[], isCancelled: () => boolean): Promise<Float32Array>;
    session(saved: Uint8Array | undefined, lora: number[]): Promise<Session>;
    /** Of modules that tune: `onStep` gets the progress, and returns whether to end. */
    tune(examples: string[], options: any, onStep: (progress: any) => boolean): Promise<any>;
}

export interface Session extends Answering {
    prefill(tokens: Uint32Array): Promise<Float32Array>;
    logits(tokens: Uint32Array): Promise<Float32Array>;
    remove(start: number, end: number): Promise<Float32Array>;
    rewind(length: number): void;
    fork(): Promise<Session>;
    save(): Promise<Uint8Array>;
    tokens(): Uint32Array;
}

export interface Generation extends Freed {
    readonly promptTokens: number;
    readonly finishReason: string | undefined;
    step(isCancelled: () => boolean): Promise<string | undefined>;
    divide(text: string, hasEnded: boolean): string[];
    rest(): string;
    tokensAfter(known: number): Uint32Array;
    logprobsAfter(known: number): Float64Array;
}

/** Of modules whose threads share memory. */
export function runThread(): void;
export function startThreads(count: number): void;

export default function load(options: { module_or_path: any; memory?: WebAssembly.Memory }): Promise<{ memory: WebAssembly.Memory }>;

/** The bytes after which a file's metadata end, which unit tests set. */
export const file: { headBytes: number };
