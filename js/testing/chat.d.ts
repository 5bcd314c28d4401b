/** Replaces an instance that a trap ended. */
export function renew(): void;

export default function load(options: { module_or_path: any }): Promise<unknown>;
