/** Path of the built program; `undefined` when it was not built, or when a source file has changed since. */
export function builtProgram(): string | undefined;
