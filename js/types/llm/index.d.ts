import type { ModuleSource } from '../common/base.js';

export { type ErrorCode, type ModuleSource, RelampagoError, moduleUrl } from '../common/base.js';

/**
 * Loads the WebAssembly module. `LanguageModel.load` does that by itself; call it before only where a bundler or
 * a server puts the module somewhere else, or to load it early. Rejects with code `NOT_LOADED`.
 *
 * Chat templates and JSON schemas have a module of their own, which a model with a template or a request with a
 * `response_format` loads.
 *
 * @param source By default the file beside this one, for the engine's instruction set.
 * @param chatSource The module of chat templates and JSON schemas, to load it now: `chatModuleUrl()`, or where it is.
 */
export default function init(
    source?: ModuleSource | Promise<ModuleSource>,
    chatSource?: ModuleSource | Promise<ModuleSource>,
): Promise<void>;

/** The URL that the module of chat templates and JSON schemas is loaded from by default. */
export function chatModuleUrl(): URL;

/**
 * Where a GGUF file is: a URL, a `File` or `Blob`, or its bytes. In Node a string that is not a URL is a path.
 * Bytes are copied, and stay the caller's.
 */
export type ModelSource = string | URL | Blob | ArrayBufferLike | ArrayBufferView;

/**
 * A model: one file, or several files that it is split into, in order. The name of the first one, such as
 * `model-00001-of-00003.gguf`, stands for all of them.
 */
export type ModelSources = ModelSource | readonly ModelSource[];

export interface LoadOptions {
    /**
     * Where the model runs. `'auto'`, the default, is a hardware GPU if there is one that can hold the weights, else
     * SIMD; `'gpu'` is any GPU, one in software too, or an error.
     */
    device?: 'auto' | 'gpu' | 'simd' | undefined;
    /**
     * Whether a model from a URL is stored in the browser (in the Origin Private File System), and read from there the
     * next time: true by default. Where there is no such store, as in Node, or no room in it, models load without.
     */
    cache?: boolean | undefined;
    /** Cancels loading. Downloaded parts stay in the cache, and the next `load` continues from there. */
    signal?: AbortSignal | undefined;
    /**
     * Is called whenever bytes of the file arrive. It begins anew if the file changes during a download, or if `'auto'`
     * found a GPU that refuses the model.
     */
    onProgress?: ((progress: LoadProgress) => void) | undefined;
    /** The largest number of tokens of a conversation; by default 2048, or the model's own limit if that is smaller. */
    contextLength?: number | undefined;
    /**
     * The type of keys and values: `'f32'` by default. `'f16'` halves the memory of conversations, `'q8_0'` needs a third or
     * less of it; on a GPU the length of the model's heads must be a multiple of 8 or 16 then.
     */
    cacheType?: 'f16' | 'f32' | 'q8_0' | undefined;
    /**
     * Whether the model runs in a worker, so that the caller's thread stays responsive: by default where there is a page, and
     * where `threads` asks for several.
     */
    worker?: boolean | undefined;
    /**
     * The threads of a model on SIMD in a worker, from 1 to 64, or `'auto'`, which is the default there: one for each core,
     * at most 8. They share a memory, in Node, Bun and pages that are cross-origin isolated; elsewhere there is one, and
     * `info.threadsReason` says why. Answers are bit-identical for any number.
     */
    threads?: number | 'auto' | undefined;
}

export interface LoadProgress {
    /** The bytes so far. */
    loaded: number;
    /** The bytes of the file, if they are known; of several files, once the last one is read. */
    total: number | undefined;
}

export interface InspectOptions {
    /** The largest number of tokens of a conversation; by default 2048, or the model's own limit if that is smaller. */
    contextLength?: number | undefined;
    /**
     * The type of keys and values: `'f32'` by default. `'f16'` halves the memory of conversations, `'q8_0'` needs a third or
     * less of it; on a GPU the length of the model's heads must be a multiple of 8 or 16 then.
     */
    cacheType?: 'f16' | 'f32' | 'q8_0' | undefined;
    signal?: AbortSignal | undefined;
    /** Whether a worker does the work: by default where there is a page. */
    worker?: boolean | undefined;
}

/** The description of a model in its files, and the memory that the model needs. */
export interface ModelInspection {
    /** The architecture, such as `llama`. */
    readonly architecture: string;
    readonly name: string;
    /** The number of parameters. */
    readonly parameters: number;
    /** The number of tokens in the vocabulary. */
    readonly vocabulary: number;
    /** The largest number of tokens that the model was trained for. */
    readonly maxContextLength: number;
    /** The largest number of tokens of a conversation. */
    readonly contextLength: number;
    /** Whether the file has a chat template. */
    readonly hasChatTemplate: boolean;
    /** The types of the weights, such as `Q4_1`, with the bytes that each has in the files, the largest first. */
    readonly weightTypes: readonly { readonly type: string; readonly bytes: number }[];
    /** The size of the file in bytes, or of all files. */
    readonly fileBytes: number;
    /** The size of the memory for the keys and values of a full context in bytes. On SIMD it grows up to that. */
    readonly sessionBytes: number;
    /** The bytes that the model needs on SIMD: the files' and the session's. */
    readonly simdBytes: number;
    /** The bytes of a GPU's memory that the model needs, without those for the values of a token. */
    readonly gpuBytes: number;
}

export interface ModelInfo {
    /** The architecture, such as `llama`. */
    readonly architecture: string;
    readonly name: string;
    /** The number of parameters. */
    readonly parameters: number;
    /** The number of tokens in the vocabulary. */
    readonly vocabulary: number;
    /** The largest number of tokens that the model was trained for. */
    readonly maxContextLength: number;
    /** The largest number of tokens of a conversation. */
    readonly contextLength: number;
    /** Whether the file has a chat template: a model without one continues texts, and cannot `chat`. */
    readonly hasChatTemplate: boolean;
    /** The size of the file in bytes. */
    readonly fileBytes: number;
    /** The size of the memory for the keys and values of a full context in bytes. On SIMD it grows up to that. */
    readonly sessionBytes: number;
    readonly backend: 'gpu' | 'simd';
    /** Why it is that back-end. */
    readonly reason: string;
    /** The instruction set of the kernels. */
    readonly instructionSet: string;
    /** Whether the model runs in a worker. */
    readonly worker: boolean;
    /** The number of threads that compute on SIMD. */
    readonly threads: number;
    /** Why there is one thread; otherwise `undefined`. */
    readonly threadsReason?: string | undefined;
    /** Where the file came from: a server, the cache, or else a `File`, bytes or a path. */
    readonly source: 'network' | 'cache' | 'local';
    /** Whether the cache has the file now. */
    readonly cached: boolean;
}

/** The steps of one decoded token, without adapters, in the order in which they run. */
export interface ModelExplanation {
    readonly backend: 'gpu' | 'simd';
    /** The number of bytes of weights that all steps read. */
    readonly weightBytes: number;
    readonly steps: readonly ModelStep[];
}

/** One step of a decoded token: on a GPU one kernel, on SIMD one function. */
export interface ModelStep {
    /** The layer, by its index; null before the first layer and after the last one. */
    readonly layer: number | null;
    /** The names of the step's operations, in order. */
    readonly operations: readonly string[];
    /** The GPU's kernel, or the function on SIMD. */
    readonly kernel: string;
    /** The back-end that runs the step. */
    readonly backend: 'gpu' | 'simd';
    /** The shape of the step's matrix, rows before columns; of other steps, that of the result. */
    readonly shape: readonly number[];
    /** The names of the file's tensors that the matrix consists of. */
    readonly tensors: readonly string[];
    /** The type of the matrix in the file, such as `Q4_1`; null for steps without a matrix. */
    readonly weightType: string | null;
    /** The number of bytes of weights that the step reads where it runs. */
    readonly weightBytes: number;
}

/** A model in the cache. */
export interface CachedModel {
    readonly url: string;
    /** The bytes that are stored. */
    readonly bytes: number;
    /** The bytes of the file, if they are known. */
    readonly total: number | undefined;
    /** Whether the file is stored as a whole; otherwise `load` downloads only the missing parts. */
    readonly complete: boolean;
}

/** A part of a message's content. Parts of other types, such as images, are refused. */
export interface TextPart {
    type: 'text';
    text: string;
}

/** A message of a conversation, as OpenAI's API has it. Other properties are not read. */
export interface Message {
    role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
    /** The text, or parts that are joined; null, of an assistant that only calls tools, is an empty text. */
    content: string | readonly TextPart[] | null;
    /** The reasoning of an assistant; templates write it or leave it out. */
    reasoning_content?: string | null | undefined;
    /** The calls of an assistant. */
    tool_calls?: readonly ToolCall[] | null | undefined;
    /** The id of the call whose result the content is, of the role `tool`. */
    tool_call_id?: string | null | undefined;
}

/** A function that a model may call, as OpenAI's API has it. */
export interface Tool {
    type: 'function';
    function: {
        /** 1 to 64 letters, digits, `_`, `-` and `.`. */
        name: string;
        description?: string | undefined;
        /** The JSON schema of the arguments, an object. */
        parameters?: object | undefined;
        /** OpenAI's, and changes nothing: arguments always fit their schema. */
        strict?: boolean | null | undefined;
    };
}

/** The call of a function. */
export interface ToolCall {
    /** The id that the result's message names. */
    id: string;
    type: 'function';
    /** The name, and the arguments as JSON: complete and of the function's schema, unless the answer broke off within them. */
    function: { name: string; arguments: string };
}

/** Which functions a model calls: as it likes, none, at least one, or one of a name. */
export type ToolChoice = 'auto' | 'none' | 'required' | { type: 'function'; function: { name: string } };

/** A piece of an answer, as the `delta` of OpenAI's API. The name of a call comes first, then pieces of its arguments. */
export interface Delta {
    content?: string;
    reasoning_content?: string;
    tool_calls?: {
        /** The call's position in the answer. */
        index: number;
        id?: string;
        type?: 'function';
        function: { name?: string; arguments: string };
    }[];
}

/** A whole answer, to continue the conversation with. */
export interface AssistantMessage {
    role: 'assistant';
    content: string;
    reasoning_content?: string;
    tool_calls?: ToolCall[];
}

/** How a session answers; options that OpenAI's API has, too, have its names. */
export interface AnswerOptions {
    /** The largest number of tokens to generate, 512 by default; generation also ends where the context does. */
    max_tokens?: number | undefined;
    /** The newer name of `max_tokens` in OpenAI's API; only one of both may be given. */
    max_completion_tokens?: number | undefined;
    /** Divides logits: at least 0. With 0, the default, the likeliest token is always chosen. */
    temperature?: number | undefined;
    /** The number of the likeliest tokens to choose from; 0, the default, is all. */
    top_k?: number | undefined;
    /** The total probability of the likeliest tokens to choose from: from 0 to 1, by default 1. */
    top_p?: number | undefined;
    /** The least probability of a token to choose from, as a fraction of the likeliest one's: from 0 to 1, by default 0. */
    min_p?: number | undefined;
    /** Divides positive logits of tokens that occurred and multiplies negative ones: above 0. The default is 1, no penalty. */
    repetition_penalty?: number | undefined;
    /** Is subtracted from logits of tokens that occurred, 0 by default. */
    presence_penalty?: number | undefined;
    /** Is subtracted from logits once for each time that their token occurred, 0 by default. */
    frequency_penalty?: number | undefined;
    /** Is added to the logits of tokens, by their ids; `-Infinity` is not a number here, -100 forbids a token. */
    logit_bias?: Readonly<Record<number, number>> | undefined;
    /** Whether the answer has `logprobs`. */
    logprobs?: boolean | undefined;
    /** The number of likeliest tokens whose probabilities `logprobs` has, too: by default 0. It needs `logprobs: true`. */
    top_logprobs?: number | undefined;
    /**
     * Whether tokens are guessed from what the text has had before, and checked several in one pass, where that is faster; the
     * default is true. The answer is the one without guesses, up to the rounding of passes over several tokens.
     */
    guess?: boolean | undefined;
    /**
     * The form of the answer: any text, any JSON object, or JSON that a schema allows. `INVALID_ARGUMENT` for a schema that
     * needs what is not supported, has a keyword that does not exist, or takes too much work (the guide has the limits); no
     * part of it is ignored.
     */
    response_format?: ResponseFormat | undefined;
    /** The functions that the model may call in a conversation. Their arguments are held to their schemas. */
    tools?: readonly Tool[] | undefined;
    /** Which of them it calls; the default is `'auto'`. */
    tool_choice?: ToolChoice | undefined;
    /** Whether an answer may have several calls, where the model's format has them; the default is true. */
    parallel_tool_calls?: boolean | undefined;
    /** The form of calls; by default that of the template's family. */
    tool_format?: 'hermes' | 'llama3' | 'mistral' | 'mistral_args' | 'lfm2' | 'generic' | undefined;
    /** Further variables of the chat template, such as `{ enable_thinking: false }`. */
    chat_template_kwargs?: Readonly<Record<string, unknown>> | undefined;
    /**
     * Tokens of the answer that exist already, such as those of a generation that a lost device cut off, or the first words
     * of an answer (`await model.tokenize('The answer is')`). Generation goes on after them: it returns the text that
     * follows theirs. A stop string may begin in their text and end in the new one: the answer ends there. `tokens`,
     * `usage.completion_tokens` and `max_tokens` count them. `seed` has to be the same.
     */
    after?: ArrayLike<number> | undefined;
    /**
     * The seed of the choice, a whole number from 0 to 2⁵³ − 1; random by default. A request of a model with a seed reads
     * its whole prompt, so that the same request gives the same answer on the same back-end. Without a seed, and in
     * sessions, the tokens that the prompt has in common with the request before are not read again.
     */
    seed?: number | undefined;
    /** Texts that end the answer, without being part of it. */
    stop?: string | readonly string[] | undefined;
    /** Changes nothing: any answer can be iterated over piece by piece, and read as a whole with `text()`. */
    stream?: boolean | undefined;
    /** Cancels the generation at once; on SIMD the model is free for other requests 20 ms later, or after a longer product. */
    signal?: AbortSignal | undefined;
}

/** How a model answers. */
export interface GenerateOptions extends AnswerOptions {
    /** Adapters of the model to answer with. */
    lora?: LoraChoice | undefined;
}

export interface EmbedOptions {
    /** The vector of a text: the mean of its tokens, the last one, or the first one. By default as the file says, and the mean if it does not. */
    pooling?: 'mean' | 'last' | 'cls' | undefined;
    /** Whether vectors are divided by their lengths: true by default. */
    normalize?: boolean | undefined;
    /** The text before each text, such as `query: `. Models say which they were trained with. */
    prompt?: string | undefined;
    /** The number of elements of a vector: the first ones, divided by their own length. Only models that were trained for it (Matryoshka) give good vectors of fewer. */
    dimensions?: number | undefined;
    /** Whether texts that are longer than the context are cut. By default they are an error. */
    truncate?: boolean | undefined;
    signal?: AbortSignal | undefined;
}

export interface RankOptions {
    /** Whether texts that do not fit into the context with the query are cut. By default they are an error. */
    truncate?: boolean | undefined;
    signal?: AbortSignal | undefined;
}

/** As in OpenAI's API. */
export type ResponseFormat =
    | { type: 'text' }
    | { type: 'json_object' }
    | { type: 'json_schema'; json_schema: JsonSchemaFormat };

export interface JsonSchemaFormat {
    schema: object;
    /** The other properties are OpenAI's, and change nothing: the answer always follows the schema. */
    name?: string | undefined;
    description?: string | undefined;
    strict?: boolean | null | undefined;
}

/** An adapter of a model, with a factor of its effect, 1 by default; or several. */
export type LoraChoice = Lora | ScaledLora | readonly (Lora | ScaledLora)[];

export interface ScaledLora {
    lora: Lora;
    scale?: number | undefined;
}

/** A token, and the natural logarithm of the probability that the model gave it. */
export interface Candidate {
    id: number;
    /** Its text; a part of a character is `\ufffd`. */
    token: string;
    logprob: number;
}

/** The probabilities of a token of the answer: the softmax of the model's own logits. */
export interface TokenLogprobs extends Candidate {
    /** The likeliest tokens in its place, in descending order. */
    top_logprobs: Candidate[];
}

/** The tokens and the time of a generation so far. */
export interface Usage {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    /** The milliseconds from the beginning of generation to the first token; null before that. */
    time_to_first_token_ms: number | null;
    /** The tokens per second after the first new one; null before there are two new ones. */
    tokens_per_second: number | null;
}

/**
 * An answer, which begins to be generated when it is first iterated over or asked for its text. Each piece of text
 * ends with a whole character, unless the answer is cut off there. Leaving the loop cancels the rest; `content` has the
 * text so far. A second iteration gets the whole text as one piece.
 */
export interface Generation extends AsyncIterable<string> {
    /** The whole answer. */
    text(): Promise<string>;
    /** The pieces of the answer with its reasoning and calls, in place of the iteration over its text. */
    deltas(): AsyncIterable<Delta>;
    /** The text so far, which is also there after an error. */
    readonly content: string;
    /** The reasoning so far, which is no part of the text. */
    readonly reasoning_content: string;
    /** The calls so far. */
    readonly tool_calls: ToolCall[];
    /** The answer so far as a message, to continue the conversation with. */
    readonly message: AssistantMessage;
    /**
     * The ids of the tokens so far, those of the option `after` and of a stop string included, without the token that ends
     * the answer.
     */
    readonly tokens: number[];
    /** The probabilities of the tokens after those of `after`, if the option `logprobs` asked for them; otherwise empty. */
    readonly logprobs: TokenLogprobs[];
    readonly usage: Usage;
    /**
     * `'stop'` if the model or a stop string ended the answer, `'tool_calls'` if that has calls, `'length'` if a limit ended
     * it; null before that.
     */
    readonly finish_reason: 'stop' | 'length' | 'tool_calls' | null;
}

/** An example for a model: a text, or a conversation, whose answers it learns. Objects have the form of lines of JSONL files. */
export type TuneExample =
    | string
    | readonly Message[]
    | { text: string }
    | { messages: readonly Message[] };

/** The progress of tuning after a step. */
export interface TuneProgress {
    /** The number of steps that are done, those before a resumption included. */
    readonly step: number;
    /** The number of all steps. */
    readonly steps: number;
    /** The mean of `−ln p` of the tokens that the step learned, before it changed the adapter. */
    readonly loss: number;
    /** The learning rate of the step. */
    readonly learningRate: number;
    /** The number of tokens of examples that were read in a second, on average since the start. */
    readonly tokensPerSecond: number;
    /** The estimate of the remaining time in seconds. */
    readonly secondsLeft: number;
    /** The loss of the held-back examples, after the last step of an epoch. */
    readonly heldBackLoss?: number;
}

/** The linear layers that an adapter may change, by PEFT's names; `'all-linear'` stands for all of them. */
export type TuneTarget =
    | 'q_proj' | 'k_proj' | 'v_proj' | 'o_proj' | 'gate_proj' | 'up_proj' | 'down_proj'
    | 'qkv_proj' | 'gate_up_proj' | 'all-linear';

export interface TuneOptions {
    /** The rank of the adapter's matrices, 8 by default. */
    rank?: number | undefined;
    /** The numerator of the adapter's scale `alpha / rank`, 16 by default. */
    alpha?: number | undefined;
    /** The linear layers that get matrices: `['q_proj', 'v_proj']` by default. */
    targets?: TuneTarget | readonly TuneTarget[] | undefined;
    /** The layers that get matrices: the index of the first one, and of the one after the last. All by default. */
    layers?: readonly [start: number, end: number] | undefined;
    /** The number of times that each example is learned from, 3 by default. */
    epochs?: number | undefined;
    /** The largest learning rate, 2e-4 by default. */
    learningRate?: number | undefined;
    /** The course of the learning rate after `warmup`: it stays, or falls to 0 along a line or half a cosine, the default. */
    schedule?: 'constant' | 'linear' | 'cosine' | undefined;
    /** The number of first steps in which the learning rate rises along a line, 0 by default. */
    warmup?: number | undefined;
    /** The weight decay of AdamW, 0 by default. */
    weightDecay?: number | undefined;
    /** The largest norm of all gradients of a step together, 1 by default; longer ones are scaled. */
    maxNorm?: number | undefined;
    /**
     * The number of rows of a step, 4 by default. Each row has as many tokens as the longest example, and short examples
     * share a row.
     */
    batch?: number | undefined;
    /** The most tokens of an example, 256 by default. The rest of a longer example is left out. */
    maxTokens?: number | undefined;
    /** The share of the examples that is not learned from, 0 by default. Their loss is measured after each epoch. */
    heldBack?: number | undefined;
    /** The seed of the first matrices and of the order of examples, 0 by default. */
    seed?: number | undefined;
    /**
     * The point to go on from: the bytes of `adapter.state()`, with the same examples and options as before, or the file of an
     * adapter, which is learned further from step 0. An adapter in safetensors has the `alpha` of the options.
     */
    resume?: ArrayBuffer | ArrayBufferView | undefined;
    /** The threads on SIMD; by default those that `load` was asked for, and else one for each core, at most 8. */
    threads?: number | 'auto' | undefined;
    /** The model's file, which a model that was loaded from bytes needs again. */
    source?: ModelSources | undefined;
    /** Ends the tuning at once, without an adapter. */
    signal?: AbortSignal | undefined;
    /** Is called as the model's file arrives in the workers that tune. */
    onProgress?: ((progress: LoadProgress) => void) | undefined;
    /** Is called after each step. If it returns false, the tuning ends after the step that is running by then. */
    onStep?: ((progress: TuneProgress) => boolean | void) | undefined;
}

/** A low-rank adapter of a model's linear layers (LoRA), made by `model.loadLora` or `model.tune`. */
export class Lora {
    protected constructor();
    /** The number of linear layers that it changes. */
    readonly layers: number;
    /** Frees its memory, once no session and no generation that was asked for it uses it; new ones refuse it. */
    dispose(): void;
    [Symbol.dispose](): void;
}

/** An adapter that a model learned. It works at once, like any other one. */
export class TunedLora extends Lora {
    private constructor();
    /** The loss of each step. */
    readonly losses: Float32Array;
    /** The loss of the held-back examples after each epoch. */
    readonly heldBackLosses: Float32Array;
    /** The adapter as a GGUF file, for `loadLora` and llama.cpp. */
    toGguf(): Uint8Array & { readonly buffer: ArrayBuffer };
    /** The adapter as PEFT reads it: `adapter_model.safetensors`. */
    toSafetensors(): Uint8Array & { readonly buffer: ArrayBuffer };
    /** The text of `adapter_config.json`, which PEFT reads beside that file. */
    adapterConfig(): string;
    /** The bytes from which the option `resume` goes on. */
    state(): Uint8Array & { readonly buffer: ArrayBuffer };
}

/**
 * Tokens that a model has read, made by `model.session` or `model.loadSession`. Calls run one after the other. A
 * context that has no room for tokens gives `LIMIT_EXCEEDED`, and none of them is read.
 */
export class Session {
    private constructor();
    /** Reads tokens; returns the logits after the last one, one for each token of the vocabulary. */
    prefill(tokens: ArrayLike<number>): Promise<Float32Array>;
    /** Reads a token; returns the logits after it. */
    decode(token: number): Promise<Float32Array>;
    /** Reads tokens; returns the logits after each of them, row after row. */
    logits(tokens: ArrayLike<number>): Promise<Float32Array>;
    /**
     * Answers a conversation like `model.chat`, but reads only what the session has not read, such as the last message.
     * Afterwards the session has the conversation and the answer; if an end token ended the answer, its last token may be
     * missing. The session's adapters stay.
     */
    chat(messages: readonly Message[], options?: AnswerOptions): Generation;
    /** Continues a whole text like `model.complete`, but reads only the tokens that the session has not read. */
    complete(prompt: string, options?: AnswerOptions): Generation;
    /**
     * Forgets the tokens from `start` to before `end`, and reads those after them again at their new positions; returns the
     * logits after the last one. Rejects with `INVALID_ARGUMENT` if no token follows the range.
     */
    remove(start: number, end: number): Promise<Float32Array>;
    /** The tokens so far. */
    tokens(): Promise<Uint32Array>;
    /**
     * Forgets all tokens but the first `length`. Models with a window of positions may read the remaining tokens again at
     * the next call.
     */
    rewind(length: number): Promise<void>;
    /** Copies the session, so that both can be continued. */
    fork(): Promise<Session>;
    /** The session as bytes, for `model.loadSession`. */
    save(): Promise<Uint8Array & { readonly buffer: ArrayBuffer }>;
    /** Frees its memory. */
    dispose(): void;
    [Symbol.dispose](): void;
}

/** The types of weights in ggml's blocks. */
export type WeightType =
    | 'F32' | 'F16' | 'BF16' | 'Q8_0' | 'Q4_0' | 'Q4_1' | 'Q5_0' | 'Q5_1'
    | 'Q2_K' | 'Q3_K' | 'Q4_K' | 'Q5_K' | 'Q6_K' | 'IQ4_NL' | 'IQ4_XS';

/**
 * A matrix of weights in ggml's blocks, such as a tensor of a GGUF file, for matmuls without a model. The weights stay
 * quantised.
 */
export class QuantizedMatrix {
    private constructor();
    /**
     * Places the weights of `rows` rows of `cols` weights on a device; `blocks`, which are copied, have one row after the
     * other. `INVALID_ARGUMENT` if rows are not of whole blocks, `LENGTH_MISMATCH`.
     */
    static fromBlocks(
        type: WeightType,
        blocks: ArrayBuffer | ArrayBufferView,
        rows: number,
        cols: number,
        options?: {
            /** The back-end: by default a hardware GPU if there is one, else SIMD. */
            device?: 'auto' | 'gpu' | 'simd' | undefined;
            /** Whether a worker computes: by default where there is a page. All matrices share one. */
            worker?: boolean | undefined;
        },
    ): Promise<QuantizedMatrix>;
    readonly type: WeightType;
    readonly rows: number;
    readonly cols: number;
    readonly backend: 'gpu' | 'simd';
    /**
     * Computes `x · Wᵀ` of `m` rows of `cols` elements, by default one: `m` rows of `rows` elements, in `f32`.
     * `LENGTH_MISMATCH` if `x` has another length.
     */
    matmul(x: Float32Array, m?: number): Promise<Float32Array>;
    /** Frees its memory. */
    dispose(): void;
    [Symbol.dispose](): void;
}

/**
 * A language model from a GGUF file. Errors are `RelampagoError`s: `NETWORK` for a download that fails, `FILE` for
 * a path that Node cannot read, `INVALID_MODEL` for a file that is damaged or needs a feature that this version lacks,
 * `ABORTED` after a signal, `INVALID_ARGUMENT`, `EMPTY` for a text of no tokens, `LIMIT_EXCEEDED` if a prompt does
 * not fit the context, `OUT_OF_MEMORY`, `NO_GPU`, `DISPOSED`, `UNSUPPORTED`, and `DEVICE_LOST` if the GPU was lost or
 * the worker failed.
 */
export class LanguageModel {
    private constructor();
    /** Loads a model. Pieces of the file go into the module's memory or to the GPU as they arrive. */
    static load(source: ModelSources, options?: LoadOptions): Promise<LanguageModel>;
    /**
     * Reads the beginnings of a model's files, not their weights, and returns what they say and the memory that the model
     * needs. `INVALID_MODEL` for a file that is damaged or needs an unsupported feature, with the error of `load`.
     */
    static inspect(source: ModelSources, options?: InspectOptions): Promise<ModelInspection>;
    /** Lists the models in the cache, or their files; none where there is no cache, as in Node. */
    static cached(): Promise<CachedModel[]>;
    /**
     * Removes a model from the cache, with all parts that the name of the first one stands for, when no `load` of it is
     * running. Resolves to whether it was there.
     */
    static evict(url: string | URL): Promise<boolean>;
    /**
     * Loads the model anew from its source, which the cache has where there is one, after `DEVICE_LOST`: adapters are
     * loaded and sessions read again, running generations end with `DISPOSED`. An answer that was cut off goes on
     * with the option `after`. A model from bytes needs its source here. The model stays as it is if the source cannot be
     * opened. After a failure or an abort later than that, calls of the model end with `DISPOSED` until another `reload`
     * succeeds. A call during another one waits for it, and loads nothing if that succeeds with the same source.
     */
    reload(source?: ModelSources, options?: Pick<LoadOptions, 'signal' | 'onProgress'>): Promise<void>;
    /** The description of the model in its file, and the back-end that runs it. */
    readonly info: ModelInfo;
    /** Answers a conversation, by the file's chat template. Control tokens in messages are text. */
    chat(messages: readonly Message[], options?: GenerateOptions): Generation;
    /** Continues a text. */
    complete(prompt: string, options?: GenerateOptions): Generation;
    /**
     * Loads an adapter: a GGUF file, or a safetensors file with PEFT's names, which needs `alpha`, the `lora_alpha` of
     * its `adapter_config.json`. `INVALID_MODEL` if it does not fit the model.
     */
    loadLora(source: ModelSource, options?: { alpha?: number | undefined; signal?: AbortSignal | undefined }): Promise<Lora>;
    /**
     * Learns an adapter from examples. The model stays as it is, and answers meanwhile: a copy of it learns in workers of its
     * own, which read the file again, from the cache where it is stored. `EMPTY` without examples; `INVALID_ARGUMENT` for options
     * out of range, for a learning rate with which the loss or its gradients grow beyond all numbers, for an example of which nothing is learned,
     * for an encoder and for a mixture of experts; `INVALID_MODEL` for a resumption from other bytes; `UNSUPPORTED` where there
     * are no workers.
     */
    tune(examples: readonly TuneExample[], options?: TuneOptions): Promise<TunedLora>;
    /** Makes a session without tokens. */
    session(options?: { lora?: LoraChoice | undefined }): Promise<Session>;
    /** Restores a session that `session.save` returned for the same model and the same adapters. */
    loadSession(saved: ArrayBuffer | ArrayBufferView, options?: { lora?: LoraChoice | undefined }): Promise<Session>;
    /**
     * Returns a vector for each text: the mean of its tokens' values after the last norm, or those of one token,
     * divided by the vector's length unless `normalize` is false. Encoders read many short texts together.
     */
    embed(texts: string | readonly string[], options?: EmbedOptions): Promise<Float32Array[]>;
    /**
     * Returns a score for each text: the higher, the better it answers the query. The model is a reranker, whose file has
     * the `pooling_type` 4.
     */
    rank(query: string, texts: string | readonly string[], options?: RankOptions): Promise<Float32Array>;
    /** The tokens of a text; control tokens such as `<|im_end|>` are recognised in it only if `special` is true. */
    tokenize(text: string, options?: { special?: boolean | undefined }): Promise<Uint32Array>;
    /** The text of tokens, that of control tokens included; bytes that are not UTF-8 become U+FFFD. */
    detokenize(tokens: ArrayLike<number>): Promise<string>;
    /** Lists the steps of one decoded token, with the kernel or function and the weights of each. */
    explain(): Promise<ModelExplanation>;
    /** The size of the WebAssembly module's memory in bytes. Models without a worker share one module. */
    memoryBytes(): Promise<number>;
    /** Cancels running generations and frees the memory. */
    dispose(): void;
    [Symbol.dispose](): void;
}
