import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names of files inside a folder: no segment begins with a dot, so none names a parent folder. */
const templateName = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;

/**
 * Matches Jinja2's `with context` and `without context`, which nunjucks does not know, in order to remove them: in
 * nunjucks, an included template always sees the variables of the template that includes it.
 */
const includeContext = /(\{%-?\s*include\b(?:(?!%\}).)*?)\s+with(?:out)?\s+context(?=\s*-?%\})/gs;

/** Finds templates in several folders; the first folder that contains a file wins. */
export class TemplateFolders {
  readonly #folders: readonly string[];

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  /** @returns null when no folder contains the template */
  getSource(name: string): { src: string; path: string; noCache: boolean } | null {
    if (!templateName.test(name)) return null;
    for (const folder of this.#folders) {
      const path = join(folder, name);
      const text = readIfThere(path);
      if (text !== undefined) return { src: text.replace(includeContext, '$1'), path, noCache: false };
    }
    return null;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return undefined;
    throw error;
  }
}
