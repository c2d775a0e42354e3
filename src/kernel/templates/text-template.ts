import type { Environment } from '@11ty/nunjucks';
import type { TemplateFilter } from './environment.ts';

/** Renders a short text, for instance the value of an option, with the given values. Nothing is escaped. */
export type TextTemplate = (values: Readonly<Record<string, unknown>>) => string;

/**
 * Compiles a template in Jinja2's syntax that is given as a text. It can access the given values and nothing else.
 * Loads the template engine.
 * @param filters in addition to those of Jinja2
 * @throws Error when the template is faulty
 */
export async function compileText(
  text: string,
  filters: Readonly<Record<string, TemplateFilter>> = {},
): Promise<TextTemplate> {
  const [{ createEnvironment }, { TemplateFolders }, { default: nunjucks }] = await Promise.all([
    import('./environment.ts'),
    import('./template-folders.ts'),
    import('@11ty/nunjucks'),
  ]);
  const environment: Environment = createEnvironment(new TemplateFolders([]), false, filters);
  const template = nunjucks.compile(text, environment, undefined, true);
  return (values) => template.render(values);
}
