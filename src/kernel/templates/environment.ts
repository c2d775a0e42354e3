import type { Environment } from '@11ty/nunjucks';
import nunjucks from '@11ty/nunjucks';
import { installJinja } from './jinja/install.ts';
import { pythonFormat } from './jinja/python-format.ts';
import type { TemplateFolders } from './template-folders.ts';

installJinja();

/** A function called by `{{ value | name(argument) }}`. Its result is escaped like any other value. */
export type TemplateFilter = (value: unknown, ...args: unknown[]) => unknown;

/**
 * Returns a nunjucks environment for the templates in `folders`. This module is loaded only when the first template is
 * needed.
 */
export function createEnvironment(
  folders: TemplateFolders,
  autoescape: boolean,
  filters: Readonly<Record<string, TemplateFilter>>,
): Environment {
  const environment = new nunjucks.Environment(folders, { autoescape });
  // Templates look up filters, tests and globals by name. The lookup must not find members of Object.prototype.
  for (const kind of ['filters', 'tests', 'globals'] as const) {
    environment[kind] = Object.assign(Object.create(null), environment[kind]);
  }
  Object.assign(environment.filters, filters, {
    format: (text: unknown, ...values: unknown[]) => pythonFormat(String(text), values),
  });
  return environment;
}
