import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * The files of the modules: the file of each module and all files in its folder, unless that folder contains
 * Hearth.
 */
export class ModuleFiles {
  readonly #byFile = new Map<string, string>();
  readonly #byFolder = new Map<string, string>();

  /** @param module its name in the configuration @param url of its file */
  add(module: string, url: string): void {
    if (!url.startsWith('file:')) return;
    const file = fileURLToPath(url);
    const folder = `${dirname(file)}/`;
    this.#byFile.set(file, module);
    if (!import.meta.filename.startsWith(folder)) this.#byFolder.set(folder, module);
  }

  /** Paths and URLs of the files of all modules, and of their folders with a slash at the end. */
  get all(): readonly string[] {
    const paths = [...this.#byFile.keys(), ...this.#byFolder.keys()];
    return paths.flatMap((path) => [path, pathToFileURL(path).href]);
  }

  /** Returns the module to which a file belongs. @param url its path or URL */
  ownerOf(url: string): string | undefined {
    const file = url.startsWith('file://') ? pathOf(url) : url;
    return this.#byFile.get(file) ?? this.#byFolder.get(file.slice(0, file.lastIndexOf('/') + 1));
  }

  /** Returns the module whose files are in the stack of an error. */
  ownerInStack(error: unknown): string | undefined {
    const stack = error instanceof Error ? (error.stack ?? '') : '';
    const owners = stack
      .matchAll(/((?:file:\/\/)?\/[^\n()]*?):\d+:\d+/g)
      .map(([, file = '']) => this.ownerOf(file));
    return owners.find((owner) => owner !== undefined);
  }
}

/** Returns the path of a URL with `file:`; an empty one when the URL is not valid. */
function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch {
    return '';
  }
}
