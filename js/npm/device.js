import { GpuDevice as Device } from '#computing';
import { requireNames } from '../common/options.js';
import { traced } from '../common/stack.js';
import { mapped } from '../common/table.js';
import { GpuCommandBatch } from './batch.js';
import { DeviceBuffer } from './device_buffer.js';
import { GpuMatmulCache } from './matmul_cache.js';
import { guard, named, namedLater } from './methods.js';
import { explained, requireOwner } from './mix_ups.js';
import { open } from './opening.js';
import { computing } from './operations.js';
import { Program } from './program.js';
import { COMPUTING, RECORDING, RandomTensors } from './tensor/device.js';
import { extended } from './tensor/extension.js';
import { MADE, Owner, ownedBy } from '../common/owner.js';
import { partOf } from './parts.js';
import { programsOf } from './tensor/run.js';
import { TensorView } from './tensor_view.js';
import { remember, tune, verify } from './tuning.js';

/** @import { DeviceExecutor } from './executors.js' */

const OPTIONS = ['backend', 'halfPrecision', 'policy', 'signal', 'threads', 'worker'];
const POLICY = ['elementwise', 'transcendental', 'reduction', 'softmax', 'matmul', 'convolution', 'movement'];

/** The function of a device that a method with the name of a reduction calls. */
const reducing = (/** @type {string} */ reduction) => (/** @type {any} */ device, /** @type {any[]} */ ...values) =>
    device.tiledReduce2d(reduction, ...values);

const REDUCING = { tiledSum2d: reducing('sum'), tiledMax2d: reducing('max'), tiledMin2d: reducing('min') };

/**
 * Wraps functions of a device and their arguments as methods.
 * @param {Record<string, (device: any, ...values: any[]) => any>} functions
 * @param {(name: string, call: (this: any, ...values: any[]) => any) => Function} wrap
 */
const methodsOf = (functions, wrap) => mapped(functions, (name, call) => wrap(name, function (...values) {
    return call(this, ...values);
}));

/** @extends {Owner<DeviceExecutor>} */
export class GpuDevice extends Owner {
    static name = 'GpuDevice';

    static {
        guard(
            this,
            'device',
            ['batch', 'matmulCache'],
            {
                upload: 1, matmulView: 4, tiledReduce2d: 4, tiledReducePartial: 4, rebuild: 0, tune: 1, verify: undefined,
            },
        );
        /**
         * @param {string} name
         * @param {(...values: any[]) => any} call
         */
        const later = (name, call) => traced(
            /**
             * @this {any}
             * @param {any[]} values
             */
            async function (...values) {
                requireOwner(this, GpuDevice, 'device', name);
                return call.apply(this, values);
            },
        );
        Object.assign(
            this.prototype,
            computing(this),
            methodsOf(REDUCING, (name, call) => namedLater(this, 'device', name, call, 3)),
            methodsOf(RECORDING, (name, call) => named(this, 'device', name, call)),
            methodsOf(COMPUTING, later),
        );
    }

    /** Why there is one thread where there could be more. */
    #threadsReason;

    /**
     * @param {DeviceExecutor} executor
     * @param {symbol} key
     * @param {string} [threadsReason]
     */
    constructor(executor, key, threadsReason) {
        super(executor, key);
        this.#threadsReason = threadsReason;
    }

    static create = traced(
        /** @param {any} [options] */
        async function created(options) {
            try {
                options == null || requireNames(options, OPTIONS);
                options?.policy == null || requireNames(options.policy, POLICY, '`policy`: ');
                const [{ executor, threadsReason }] = await Promise.all([open(options), extended()]);
                await remember(executor);
                return new GpuDevice(executor, MADE, threadsReason);
            } catch (error) {
                throw explained(error, [], created, 'create');
            }
        },
    );

    // The name that the Rust crate has for it.
    static newAsync = this.create;

    static isAvailable() {
        return Device.isAvailable();
    }

    get backend() {
        return ownedBy(this).backend;
    }

    get info() {
        const { info } = ownedBy(this);
        return this.#threadsReason ? { ...info, threadsReason: this.#threadsReason } : info;
    }

    get policy() {
        return ownedBy(this).policy;
    }

    get gpuDevice() {
        return ownedBy(this).gpuDevice;
    }

    /** @param {any} [options] */
    async rebuild(options) {
        return new GpuDevice(await ownedBy(this).rebuild(options), MADE, this.#threadsReason);
    }

    /**
     * @param {any} values
     * @param {any} [options]
     */
    async upload(values, options) {
        return new DeviceBuffer(await ownedBy(this).upload(values, options), MADE);
    }

    /**
     * Copies values and waits for nothing, where the device is one of this thread.
     * @param {Float32Array} values
     */
    uploadNow(values) {
        const buffer = ownedBy(this).uploadNow(values);
        return buffer && new DeviceBuffer(buffer, MADE);
    }

    /**
     * Whether a buffer is on this device.
     * @param {DeviceBuffer} buffer
     */
    owns(buffer) {
        const [executor, part] = [ownedBy(this), ownedBy(buffer)];
        return executor.link === part.link && (executor.link !== undefined || executor.owns(part));
    }

    batch() {
        return new GpuCommandBatch(ownedBy(this).batch(), MADE);
    }

    matmulCache() {
        return new GpuMatmulCache(ownedBy(this).matmulCache(), MADE);
    }

    /**
     * @param {any} aView
     * @param {any} a
     * @param {any} bView
     * @param {any} b
     * @param {any} [options]
     */
    async matmulView(aView, a, bView, b, options) {
        const [aPart, bPart] = [partOf('aView', aView, TensorView), partOf('bView', bView, TensorView)];
        return ownedBy(this).matmulView(aPart, a, bPart, b, options);
    }

    /**
     * @param {any} operations
     * @param {any} [options]
     */
    async tune(operations, options) {
        return tune(ownedBy(this), operations, options);
    }

    /** @param {any} [options] */
    async verify(options) {
        return verify(ownedBy(this), options);
    }

    /** The kernels that `tune` found, as bytes that `tuning.js` stores. */
    choices() {
        return ownedBy(this).choices();
    }

    /**
     * Plans a graph of tensors, as `tensor/node.js` describes it.
     * @param {Float32Array} words
     * @param {number[]} sizes the lengths of the results
     * @returns {Promise<[Program | undefined, ...number[]]>}
     */
    async planGraph(words, sizes) {
        const [program, ...places] = await ownedBy(this).planGraph(words, sizes);
        return [program && new Program(program, MADE), ...places];
    }

    get tensors() {
        const { planned, cached } = programsOf(this);
        return { planned, cached };
    }

    get random() {
        return new RandomTensors(this);
    }
}
