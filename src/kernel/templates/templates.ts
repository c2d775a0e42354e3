import type { Environment } from '@11ty/nunjucks';
import type { TemplateFilter } from './environment.ts';
import { TemplateFolders } from './template-folders.ts';

export interface TemplateOptions {
  /** Folders of templates, absolute; the first folder that contains a file wins. */
  readonly folders: readonly string[];
  /** Filters in addition to those of Jinja2. */
  readonly filters?: Readonly<Record<string, TemplateFilter>>;
}

/** File names of templates whose values are escaped, as in Jinja2. Other templates are plain texts. */
const escapedEndings = /\.(html|htm|xml|svg)$/;

interface Environments {
  readonly escaping: Environment;
  readonly plain: Environment;
}

/**
 * Templates in Jinja2's syntax. They can access the given values and other templates of the folders, and nothing else
 * of the process or the disk. Values are escaped in HTML and XML unless a template applies the filter `safe`.
 */
export class Templates {
  readonly #options: TemplateOptions;
  #environments: Promise<Environments> | undefined;

  constructor(options: TemplateOptions) {
    this.#options = options;
  }

  /**
   * Renders a template. Loads the template engine for the first template, so that the start of the server is short.
   * @throws Error when the template is missing or faulty
   */
  async render(name: string, values: Readonly<Record<string, unknown>>): Promise<string> {
    this.#environments ??= this.#open();
    const { escaping, plain } = await this.#environments;
    return (escapedEndings.test(name) ? escaping : plain).render(name, values);
  }

  /** Reads changed files again. */
  reload(): void {
    this.#environments = undefined;
  }

  async #open(): Promise<Environments> {
    const { createEnvironment } = await import('./environment.ts');
    const create = (autoescape: boolean) =>
      createEnvironment(new TemplateFolders(this.#options.folders), autoescape, this.#options.filters ?? {});
    return { escaping: create(true), plain: create(false) };
  }
}
