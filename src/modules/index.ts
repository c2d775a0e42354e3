/** Modules of operators: third-party code that this process loads, and the callbacks that it registers. */

export { foreignModuleRemark } from './foreign-modules.ts';
export { type ModulesDeps, type ModulesOptions, type ModulesSlice, openModules } from './open.ts';
