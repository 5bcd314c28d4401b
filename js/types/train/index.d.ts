import type { DType, Tensor, TensorTree } from '../npm/index.js';

export * from '../common/base.js';
export { default } from '../common/base.js';

/** The tensors that an optimizer carries from step to step: the number of steps, and moments of the gradients. */
export interface OptimizerState<Parameters> {
    steps: Tensor;
    moments: Parameters[];
}

/** A rule by which steps move parameters, a tensor or arrays and objects of tensors, along their gradients. */
export interface Optimizer {
    /** Returns the state before the first step. */
    init<Parameters>(parameters: Parameters & TensorTree<Parameters>): OptimizerState<Parameters>;
    /**
     * Returns the parameters and the state after a step. Nothing runs yet: call it in a function of `device.jit`, or run its
     * results. A learning rate in place of the one of the options may change from step to step without a new plan.
     */
    step<Parameters>(
        parameters: Parameters & TensorTree<Parameters>,
        gradients: Parameters,
        state: OptimizerState<Parameters>,
        learningRate?: Tensor<DType> | number,
    ): { parameters: Parameters; state: OptimizerState<Parameters> };
}

export interface SgdOptions {
    /** The default is 0.01. */
    learningRate?: number | undefined;
    /** The part of the last direction that a step keeps; the default is 0. */
    momentum?: number | undefined;
    /** Whether the momentum is Nesterov's; the default is false. */
    nesterov?: boolean | undefined;
    /** The part of the parameters that is added to their gradients; the default is 0. */
    weightDecay?: number | undefined;
}

export interface AdamOptions {
    /** The default is 0.001. */
    learningRate?: number | undefined;
    /** The part of the mean of gradients that a step keeps; the default is 0.9. */
    b1?: number | undefined;
    /** The part of the mean of squares that a step keeps; the default is 0.999. */
    b2?: number | undefined;
    /** A number that is added to the root of the mean of squares; the default is 1e-8. */
    epsilon?: number | undefined;
    /** The part of the parameters that a step removes; the default is 0, and 0.0001 for `adamw`. */
    weightDecay?: number | undefined;
}

export interface LionOptions {
    /** The default is 0.0001. */
    learningRate?: number | undefined;
    /** The weight of the mean in the direction; the default is 0.9. */
    b1?: number | undefined;
    /** The part of the mean that a step keeps; the default is 0.99. */
    b2?: number | undefined;
    /** The part of the parameters that a step removes; the default is 0.001. */
    weightDecay?: number | undefined;
}

/** Stochastic gradient descent. */
export function sgd(options?: SgdOptions): Optimizer;
/** Adam (Kingma and Ba, 2015). */
export function adam(options?: AdamOptions): Optimizer;
/** AdamW (Loshchilov and Hutter, 2019): Adam with a weight decay that does not pass the moments. */
export function adamw(options?: AdamOptions): Optimizer;
/** Lion (Chen et al., 2023). */
export function lion(options?: LionOptions): Optimizer;
/** Scales gradients by one number, such that the norm of all their elements is at most `maxNorm`. */
export function clipByGlobalNorm<Gradients>(
    gradients: Gradients & TensorTree<Gradients>,
    maxNorm: Tensor<DType> | number,
): Gradients;
