import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import { keepObjectPrototype } from '../../kernel/process/index.ts';
import { StartFailure } from '../../kernel/start-failure.ts';
import type { ModuleFiles } from '../calls/module-files.ts';
import { foreignModuleRemark } from '../foreign-modules.ts';

/** The default export of a module. */
export type DefaultExport = (config: unknown, api: unknown) => unknown;

/**
 * Imports a module into this process.
 * @param name an absolute path, or the name of a package that is installed beside Hearth
 * @param files records the file of the module
 * @throws StartFailure when it cannot be imported, or its default export is not a function
 */
export async function importModule(name: string, files: ModuleFiles): Promise<DefaultExport> {
  const specifier = isAbsolute(name) ? pathToFileURL(name).href : name;
  keepObjectPrototype();
  let imported: { readonly default?: unknown };
  try {
    files.add(name, import.meta.resolve(specifier));
    imported = (await import(specifier)) as typeof imported;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const remark = foreignModuleRemark(name);
    throw new StartFailure(
      remark === undefined
        ? `the module ${name} cannot be imported: ${reason}`
        : `the module ${name} ${remark}`,
      { cause: error },
    );
  }
  const { default: found } = imported;
  if (typeof found === 'function') return found as DefaultExport;
  throw new StartFailure(`the module ${name} has no function as its default export`);
}
