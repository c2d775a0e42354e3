import type { Environment } from '@11ty/nunjucks';
import type { TemplateFilter } from './environment.ts';
import { TemplateFolders } from './template-folders.ts';

export interface TemplateOptions {
  /** Folders of templates, absolute; of files with the same name the one in the first folder counts. */
  readonly folders: readonly string[];
  /** Beside those of Jinja2. */
  readonly filters?: Readonly<Record<string, TemplateFilter>>;
}

/** As in Jinja2: templates with other endings are texts, in which nothing is escaped. */
const escapedEndings = /\.(html|htm|xml|svg)$/;

interface Environments {
  readonly escaping: Environment;
  readonly plain: Environment;
}

/**
 * Templates in Jinja2's syntax. They see the values that they are given and other templates of the folders, and nothing
 * else of the process or the disk. Values are escaped in HTML and XML unless a template says `| safe`.
 */
export class Templates {
  readonly #options: TemplateOptions;
  #environments: Promise<Environments> | undefined;

  constructor(options: TemplateOptions) {
    this.#options = options;
  }

  /**
   * Fills in a template. Its code is loaded with the first one, to keep the start short.
   * @throws Error when there is no such template, or it is faulty
   */
  async render(name: string, values: Readonly<Record<string, unknown>>): Promise<string> {
    this.#environments ??= this.#open();
    const { escaping, plain } = await this.#environments;
    return (escapedEndings.test(name) ? escaping : plain).render(name, values);
  }

  /** Reads files again that have changed. */
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
