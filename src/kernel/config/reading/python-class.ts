/** Matches the path of a Python class: `package.module.Class`. Names of npm packages contain no capital letters. */
const pythonClass = /^[a-z_]\w*(\.\w+)*\.[A-Z]\w*$/;

/**
 * Whether the configured name of a module is the path of a Python class, as in configurations of the reference server.
 */
export const isPythonClass = (name: string): boolean => pythonClass.test(name);
