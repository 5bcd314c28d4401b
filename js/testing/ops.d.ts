/** An operation: its name, its numbers of inputs and parameters, whether it is elementwise, and its options' names. */
export type Operation = [name: string, inputs: number, parameters: number, isElementwise: boolean, options?: string];

export const ops: Operation[];
