/** Matches the path of a Python class, `package.module.Class`, but no npm package: their names have no capital letters. */
const pythonClass = /^[a-z_]\w*(\.\w+)*\.[A-Z]\w*$/;

/**
 * Whether the configured name of a module is the path of a Python class, as in configurations of the reference server.
 */
export const isPythonClass = (name: string): boolean => pythonClass.test(name);
