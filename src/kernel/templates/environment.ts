import type { Environment } from '@11ty/nunjucks';
import nunjucks from '@11ty/nunjucks';
import { installJinja } from './jinja/install.ts';
import { pythonFormat } from './jinja/python-format.ts';
import type { TemplateFolders } from './template-folders.ts';

installJinja();

/** What `{{ value | name(argument) }}` calls. The result is escaped as any other text is. */
export type TemplateFilter = (value: unknown, ...args: unknown[]) => unknown;

/** Makes nunjucks ready for these templates. The module is loaded with the first template only. */
export function createEnvironment(
  folders: TemplateFolders,
  autoescape: boolean,
  filters: Readonly<Record<string, TemplateFilter>>,
): Environment {
  const environment = new nunjucks.Environment(folders, { autoescape });
  // Templates look up filters, tests and globals by name: members of Object.prototype are none.
  for (const kind of ['filters', 'tests', 'globals'] as const) {
    environment[kind] = Object.assign(Object.create(null), environment[kind]);
  }
  Object.assign(environment.filters, filters, {
    format: (text: unknown, ...values: unknown[]) => pythonFormat(String(text), values),
  });
  return environment;
}
