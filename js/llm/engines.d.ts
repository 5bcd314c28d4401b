// An engine, of this thread or of a worker, as the classes of the interface use it.

import type { Delta, TokenLogprobs } from '../types/llm/index.js';

/** A piece of an answer: deltas, and the tokens that they come from; at the end of a session's answer the session's tokens. */
export interface Piece {
    deltas: Delta[];
    tokens: Iterable<number>;
    logprobs: TokenLogprobs[];
    promptTokens?: number;
    /** The number of tokens that existed before. */
    resumed?: number;
    /** Milliseconds to the first token. */
    toFirst?: number;
    /** Milliseconds since the first token. */
    sinceFirst?: number;
    read?: Uint32Array;
}

/** A request for an answer. */
export interface AnswerRequest {
    conversation?: string;
    prompt?: string;
    /** The number of the session that answers; a model answers without one. */
    session?: number;
    options: any;
}

/** A result that an engine of a worker gives later. */
type Later<T> = T | Promise<T>;

export interface AnyEngine {
    /** The number of pieces of a file that are written at the same time. */
    mostPieces: number;
    /** The threads of a model on SIMD. */
    readonly threads?: number;
    /** Whether it has no module of its own. */
    readonly isSharing?: boolean;
    start(module: WebAssembly.Module | undefined, size: number, options?: any): Promise<boolean>;
    startChat(module: WebAssembly.Module): Promise<void>;
    addPart(size: number): Later<void>;
    hasHead(size: number): Later<boolean>;
    inspect(sizes: number[], options: any): Later<object>;
    write(piece: Uint8Array): Later<void>;
    finish(): Promise<boolean>;
    open(options: any): Promise<any>;
    tokenize(text: string, special: boolean): Later<Uint32Array>;
    detokenize(tokens: ArrayLike<number>): Later<string>;
    explain(): Promise<object>;
    generate(number: number, request: AnswerRequest, push: (piece: Piece) => void): Promise<string | undefined>;
    addLora(bytes: Uint8Array, alpha: number | undefined): Promise<number[]>;
    removeLora(number: number): void;
    tune(number: number, examples: string[], options: any, push: (progress: any) => void): Promise<any>;
    embed(number: number, texts: string[], options: any): Promise<Float32Array[]>;
    rank(number: number, query: string, texts: string[], options: any): Promise<Float32Array>;
    openSession(saved: Uint8Array | undefined, lora: number[]): Promise<number>;
    openMatrix(type: string, blocks: Uint8Array, rows: number, cols: number, choice: string): Promise<[number, string]>;
    session(number: number, method: string, values: any[]): Promise<any>;
    closeSession(number: number): Promise<void>;
    cancel(number: number): void;
    memoryBytes(): Later<number>;
    dispose(): void;
}

/** The engine of a model, which a reload replaces, and the number of the last request, by which engines cancel them. */
export interface Current {
    engine: AnyEngine;
    requests: number;
}
